//! E-mails: writing them with their change, and leasing them to be sent. Whether an e-mail is worth sending is decided
//! elsewhere.

use tokio_postgres::{Row, types::ToSql};

use super::{
    Store,
    connection::{Connection, get, number, small},
    error::{DbResult, Failure},
    generations::IS_CURRENT,
    outbox,
};
use crate::{
    clock::Millis,
    domain::{
        ParcelRowId,
        mail::{
            BURST_DELAY, DropReason, LEASE, MailKind, MailLease, MailRecipient, MailStatus, NewMail,
        },
    },
    store::StoreError,
};

impl Store {
    pub(crate) async fn lease_mails(
        &self,
        now: Millis,
        max: usize,
    ) -> Result<Vec<MailLease>, StoreError> {
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let is_due = async move |db: &Connection| {
            // Without ORDER BY, the planner would expect a match soon, and read the table instead of the index.
            let sql = "SELECT coalesce((SELECT due FROM mails WHERE due IS NOT NULL \
                 ORDER BY due LIMIT 1) <= $1, false)";
            db.value::<bool>(sql, &[&now.0]).await
        };
        if !self.read(is_due).await? {
            return Ok(Vec::new());
        }
        let clock = self.lease_clock(now);
        self.call(async move |db| lease(db, now, (clock, max)).await).await
    }
}

/// Writes e-mails by one statement. If a parcel has already had an e-mail, that e-mail stays unchanged.
pub(super) async fn insert(db: &Connection, mails: &[NewMail]) -> DbResult<()> {
    if mails.is_empty() {
        return Ok(());
    }
    /// Returns a column of the new rows.
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
    let due = column!(mail => mail.at.plus(BURST_DELAY).0);
    let sql = "INSERT INTO mails (parcel, sequence, recipient, kind, created_at, due) \
         SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::smallint[], \
         $5::bigint[], $6::bigint[]) ON CONFLICT DO NOTHING";
    let given: [&(dyn ToSql + Sync); 6] = [&parcels, &sequences, &recipients, &kinds, &times, &due];
    db.execute(sql, &given).await.map(drop)
}

/// Leases e-mails. The e-mails that wait for the same recipient of a parcel are leased together, and only the last is
/// sent. E-mails that another server is leasing at the same time are skipped, so no e-mail is leased twice and neither
/// server waits.
async fn lease(
    db: &Connection,
    now: Millis,
    (clock, max): (Option<i64>, i64),
) -> DbResult<Vec<MailLease>> {
    let lease_number = outbox::next_lease(db).await?;
    let superseded = i16::from(MailStatus::Dropped(DropReason::Superseded).number());
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
        [&now.0, &max, &lease_number, &LEASE, &clock, &superseded];
    let rows = db.all(&sql, &given).await?;
    let mut leased = Vec::new();
    for row in &rows {
        match read_lease(row, lease_number) {
            Ok(lease) => leased.push(lease),
            // An unreadable e-mail stays leased: it is retried later, and does not delay the others.
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
