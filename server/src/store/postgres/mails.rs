//! E-mails: written with their change, leased to be sent, and what became of them. Whether one is worth sending is not
//! asked here.

use tokio_postgres::{Row, types::ToSql};

use super::{
    Store, audit,
    connection::{Connection, get, number, small},
    error::{DbResult, Failure},
    generations::{CURRENT, IS_CURRENT},
    outbox,
    pages::{delete_old, in_page},
};
use crate::{
    clock::Millis,
    domain::{
        AccountRowId, ParcelRowId, Tenant,
        audit::{AuditAction, AuditedChange, Author},
        mail::{
            BURST, Dropped, LEASE, LoggedMail, MailDecision, MailKind, MailLease, MailRecipient,
            MailStatus, MailsOff, NewMail, OptOut,
        },
    },
    store::StoreError,
};

impl Store {
    pub(crate) async fn mail_since(&self, now: Millis) -> Result<Millis, StoreError> {
        self.call(async move |db| {
            let sql = "INSERT INTO mail_since (one, at) VALUES (1, $1) \
                 ON CONFLICT (one) DO UPDATE SET at = mail_since.at RETURNING at";
            db.value(sql, &[&now.0]).await.map(Millis)
        })
        .await
    }

    pub(crate) async fn forget_mail_since(&self) -> Result<(), StoreError> {
        self.call(async |db| db.run("DELETE FROM mail_since").await).await
    }

    pub(crate) async fn lease_mails(
        &self,
        now: Millis,
        most: usize,
    ) -> Result<Vec<MailLease>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let is_due = async move |db: &Connection| {
            // The first of the index: without the order the planner expects one soon anywhere, and reads the table.
            let sql = "SELECT coalesce((SELECT due FROM mails WHERE due IS NOT NULL \
                 ORDER BY due LIMIT 1) <= $1, false)";
            db.value::<bool>(sql, &[&now.0]).await
        };
        if !self.read(is_due).await? {
            return Ok(Vec::new());
        }
        let clock = self.lease_clock(now);
        self.call(async move |db| lease(db, now, (clock, most)).await).await
    }

    pub(crate) async fn next_mail(&self) -> Result<Option<Millis>, StoreError> {
        self.read(async |db| {
            let sql = format!(
                "SELECT due FROM mails WHERE due IS NOT NULL AND EXISTS \
                 (SELECT 1 FROM parcels WHERE id = parcel AND {IS_CURRENT}) ORDER BY due LIMIT 1"
            );
            let first = db.first(&sql, &[]).await?;
            first.map(|row| get(&row, 0).map(Millis)).transpose()
        })
        .await
    }

    pub(crate) async fn settle_mail(
        &self,
        id: i64,
        lease: i64,
        decision: MailDecision,
    ) -> Result<bool, StoreError> {
        let (status, due) = match decision {
            MailDecision::Again(due) => (MailStatus::Waiting, Some(due.0)),
            MailDecision::Done(status) => (status, None),
        };
        let status = i16::from(status.number());
        self.call(async move |db| {
            let sql =
                "UPDATE mails SET status = $3, due = $4, lease = 0 WHERE id = $1 AND lease = $2";
            Ok(db.execute(sql, &[&id, &lease, &status, &due]).await? > 0)
        })
        .await
    }

    pub(crate) async fn mails_of_parcel(
        &self,
        parcel: ParcelRowId,
    ) -> Result<Vec<LoggedMail>, StoreError> {
        self.read(async move |db| {
            let sql = format!(
                "SELECT recipient, kind, created_at, attempts, status FROM mails WHERE parcel = \
                 (SELECT id FROM parcels WHERE id = $1 AND {IS_CURRENT}) ORDER BY sequence, recipient"
            );
            db.each(&sql, &[&parcel.0], logged).await
        })
        .await
    }

    pub(crate) async fn failed_mails(
        &self,
        tenant: Tenant,
        since: Millis,
    ) -> Result<(u64, Option<ParcelRowId>), StoreError> {
        self.read(async move |db| {
            let sql = format!(
                "SELECT count(*), max(m.parcel) FROM mails AS m JOIN parcels AS p ON p.id = m.parcel \
                 WHERE m.status IN (2, 3) AND m.created_at >= $2 AND p.tenant = {CURRENT}"
            );
            let read = |row: &Row| {
                let mails: i64 = get(row, 0)?;
                Ok((mails.unsigned_abs(), get::<Option<i64>>(row, 1)?.map(ParcelRowId)))
            };
            db.only(&sql, &[&tenant.number(), &since.0], read).await
        })
        .await
    }

    pub(crate) async fn count_mail(
        &self,
        whose: [([u8; 32], Millis); 2],
    ) -> Result<[u32; 2], StoreError> {
        self.call(async move |db| {
            let mut numbers = [0; 2];
            for (count, (whose, since)) in numbers.iter_mut().zip(&whose) {
                let sql = "INSERT INTO mail_counts (whose, since, mails) VALUES ($1, $2, 1) \
                     ON CONFLICT (whose, since) DO UPDATE SET mails = mail_counts.mails + 1 \
                     RETURNING mails";
                let mails: i64 = db.value(sql, &[&whose.as_slice(), &since.0]).await?;
                *count = u32::try_from(mails).unwrap_or(u32::MAX);
            }
            Ok(numbers)
        })
        .await
    }

    pub(crate) async fn opt_out(
        &self,
        address: [u8; 32],
        why: OptOut,
        now: Millis,
    ) -> Result<(), StoreError> {
        self.call(async move |db| {
            let sql = "INSERT INTO mail_optouts (address, why, at) VALUES ($1, $2, $3) \
                 ON CONFLICT (address) DO NOTHING";
            let why = i16::from(why.number());
            db.execute(sql, &[&address.as_slice(), &why, &now.0]).await.map(drop)
        })
        .await
    }

    pub(crate) async fn has_opted_out(&self, address: [u8; 32]) -> Result<bool, StoreError> {
        self.read(async move |db| {
            let sql = "SELECT EXISTS (SELECT 1 FROM mail_optouts WHERE address = $1)";
            db.value(sql, &[&address.as_slice()]).await
        })
        .await
    }

    pub(crate) async fn mails_off(&self, account: AccountRowId) -> Result<MailsOff, StoreError> {
        self.read(async move |db| {
            let sql = "SELECT kinds FROM mails_off WHERE account = $1";
            let Some(row) = db.first(sql, &[&account.0]).await? else {
                return Ok(MailsOff::default());
            };
            Ok(MailsOff::from_number(small(&row, 0)?))
        })
        .await
    }

    pub(crate) async fn set_mails_off(
        &self,
        account: AccountRowId,
        off: MailsOff,
        by: &Author,
    ) -> Result<(), StoreError> {
        let by = by.clone();
        self.call(async move |db| {
            let sql = "INSERT INTO mails_off (account, kinds) VALUES ($1, $2) \
                 ON CONFLICT (account) DO UPDATE SET kinds = excluded.kinds";
            db.execute(sql, &[&account.0, &i16::from(off.number())]).await?;
            let change = AuditedChange::of_account(account, AuditAction::MailsSet);
            audit::record(db, &by, &change).await
        })
        .await
    }

    pub(crate) async fn purge_mails(&self, before: Millis) -> Result<u64, StoreError> {
        let sql = delete_old!("mails", "id", "mails WHERE ", "created_at");
        let purged = self.delete_old(sql, before.0).await?;
        self.call(async move |db| {
            db.execute("DELETE FROM mail_counts WHERE since <= $1", &[&before.0]).await.map(drop)
        })
        .await?;
        Ok(purged)
    }
}

/// Writes e-mails down, by one statement; one that its parcel has had stays as it is.
pub(super) async fn insert(db: &Connection, mails: &[NewMail]) -> DbResult<()> {
    if mails.is_empty() {
        return Ok(());
    }
    /// A column of the new rows.
    macro_rules! column {
        ($mail:ident => $value:expr) => {
            mails.iter().map(|$mail| $value).collect::<Vec<_>>()
        };
    }
    let parcels = column!(mail => mail.parcel.0);
    let sequences = column!(mail => i64::from(mail.sequence));
    let recipients = column!(mail => i16::from(mail.recipient.number()));
    let kinds = column!(mail => i16::from(mail.kind.number()));
    let times = column!(mail => mail.at.0);
    let due = column!(mail => mail.at.plus(BURST).0);
    let sql = "INSERT INTO mails (parcel, sequence, recipient, kind, created_at, due) \
         SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::smallint[], \
         $5::bigint[], $6::bigint[]) ON CONFLICT DO NOTHING";
    let given: [&(dyn ToSql + Sync); 6] = [&parcels, &sequences, &recipients, &kinds, &times, &due];
    db.execute(sql, &given).await.map(drop)
}

/// What waits for one recipient of a parcel is leased together, and only the last of it is sent. What another server is
/// leasing at this moment is passed over: no two servers have the same e-mail, and neither waits for the other.
async fn lease(
    db: &Connection,
    now: Millis,
    (clock, most): (Option<i64>, i64),
) -> DbResult<Vec<MailLease>> {
    let lease_number = outbox::next_lease(db).await?;
    let superseded = i16::from(MailStatus::Dropped(Dropped::Superseded).number());
    let sql = format!(
        "WITH due AS (SELECT DISTINCT parcel, recipient FROM (SELECT parcel, recipient FROM mails \
         WHERE due <= $1 AND EXISTS (SELECT 1 FROM parcels WHERE id = parcel AND {IS_CURRENT}) \
         ORDER BY due LIMIT $2) AS d), \
         waiting AS (SELECT m.id, m.parcel, m.recipient, m.sequence FROM due CROSS JOIN LATERAL \
         (SELECT id, parcel, recipient, sequence FROM mails WHERE parcel = due.parcel \
         AND recipient = due.recipient AND mails.due IS NOT NULL AND (lease = 0 OR mails.due <= $1) \
         FOR UPDATE SKIP LOCKED) AS m), \
         ranked AS (SELECT id, row_number() OVER (PARTITION BY parcel, recipient \
         ORDER BY sequence DESC) = 1 AS is_last FROM waiting), \
         changed AS (UPDATE mails AS m SET lease = CASE WHEN r.is_last THEN $3::bigint ELSE 0 END, \
         due = CASE WHEN r.is_last THEN $4::bigint + coalesce($5::bigint, (extract(epoch FROM now()) * 1000)::bigint) END, \
         attempts = m.attempts + CASE WHEN r.is_last THEN 1 ELSE 0 END, \
         status = CASE WHEN r.is_last THEN 0::smallint ELSE $6::smallint END \
         FROM ranked AS r WHERE m.id = r.id AND m.due IS NOT NULL AND (m.lease = 0 OR m.due <= $1) \
         RETURNING m.id, m.parcel, m.sequence, m.recipient, m.kind, m.created_at, m.attempts, r.is_last) \
         SELECT * FROM changed WHERE is_last ORDER BY id"
    );
    let given: [&(dyn ToSql + Sync); 6] =
        [&now.0, &most, &lease_number, &LEASE, &clock, &superseded];
    let rows = db.all(&sql, &given).await?;
    let mut leased = Vec::new();
    for row in &rows {
        match read_lease(row, lease_number) {
            Ok(lease) => leased.push(lease),
            // One that cannot be read stays leased: it is tried again, and holds up no others.
            Err(failure) if failure.is_row() => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(leased)
}

fn read_lease(row: &Row, lease_number: i64) -> DbResult<MailLease> {
    let (recipient, kind) = kinds(row, (3, 4))?;
    Ok(MailLease {
        id: get(row, 0)?,
        number: lease_number,
        parcel: ParcelRowId(get(row, 1)?),
        sequence: number(row, 2)?,
        recipient,
        kind,
        at: Millis(get(row, 5)?),
        attempt: number(row, 6)?,
    })
}

fn kinds(row: &Row, (recipient, kind): (usize, usize)) -> DbResult<(MailRecipient, MailKind)> {
    let unknown = |what| Failure::row(format!("no {what} has this number"));
    Ok((
        MailRecipient::from_number(small(row, recipient)?).ok_or_else(|| unknown("recipient"))?,
        MailKind::from_number(small(row, kind)?).ok_or_else(|| unknown("kind"))?,
    ))
}

fn logged(row: &Row) -> DbResult<LoggedMail> {
    let (recipient, kind) = kinds(row, (0, 1))?;
    Ok(LoggedMail {
        recipient,
        kind,
        at: Millis(get(row, 2)?),
        attempts: number(row, 3)?,
        status: MailStatus::from_number(small(row, 4)?)
            .ok_or_else(|| Failure::row("no status has this number"))?,
    })
}
