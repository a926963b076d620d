//! E-mails: leasing them to be sent, the log, the recipients who opted out, and the counts. Other modules decide which
//! e-mails are worth sending.

use std::collections::HashSet;

use parcelo_domain::{
    AccountRowId, Millis, ParcelRowId, Tenant,
    audit::{AuditAction, AuditedChange, Author},
    mail::{
        DisabledMailKinds, DropReason, LEASE_MILLIS, LoggedMail, MailDecision, MailKind, MailLease,
        MailRecipient, MailStatus, OptOut,
    },
};

use super::{
    Store, StoreError, audit,
    columns::{is_among, join_with_commas},
    generations::{current_generation, is_current},
    old_rows::old_rows,
    outbox::next_lease,
    sql::{Row, Sql, SqlResult, params},
};

/// E-mails that wait to be sent, or to be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MailBacklog {
    /// Number of e-mails.
    pub mails: i64,
    /// The time at which the oldest was written.
    pub since: Millis,
    /// The latest parcel with such an e-mail.
    pub latest: ParcelRowId,
}

/// Selects from the few waiting e-mails and their parcels. With CROSS JOIN, `SQLite` begins with the e-mails.
macro_rules! from_waiting {
    () => {
        " FROM mails AS m CROSS JOIN parcels AS p \
         WHERE p.id = m.parcel AND m.due IS NOT NULL AND "
    };
}

impl Store {
    /// Returns the time from which e-mails are sent. It is set to `now` if none were sent before.
    pub async fn mail_since(&self, now: Millis) -> Result<Millis, StoreError> {
        let sql = "INSERT INTO mail_since (one, at) VALUES (1, $1) \
             ON CONFLICT (one) DO UPDATE SET at = mail_since.at RETURNING at";
        self.write(async move |db| db.value(sql, params![now]).await).await
    }

    /// Stops the sending of e-mails. Waiting e-mails are not sent later either.
    pub async fn disable_mails(&self) -> Result<(), StoreError> {
        let is_there = "SELECT EXISTS (SELECT 1 FROM mail_since)";
        if !self.query(async move |db| db.value(is_there, &[]).await).await? {
            return Ok(());
        }
        self.write(async |db| db.execute("DELETE FROM mail_since", &[]).await.map(drop)).await
    }

    /// Returns the time at which the next e-mail is due.
    pub async fn next_mail(&self) -> Result<Option<Millis>, StoreError> {
        // Without ORDER BY, PostgreSQL's planner would expect a match soon, and read the table instead of the index.
        let sql = concat!(
            "SELECT due FROM mails WHERE due IS NOT NULL AND EXISTS \
             (SELECT 1 FROM parcels WHERE id = parcel AND ",
            is_current!("tenant"),
            ") ORDER BY due LIMIT 1"
        );
        self.query(async move |db| db.first(sql, &[], |row| row.get(0)).await).await
    }

    /// Leases up to `max` due e-mails in one commit. No other sender gets them until the lease ends. If several e-mails
    /// wait for the same recipient of a parcel, only the last is leased; the others are superseded.
    pub async fn lease_mails(&self, now: Millis, max: usize) -> Result<Vec<MailLease>, StoreError> {
        if self.next_mail().await?.is_none_or(|due| due > now) {
            return Ok(Vec::new());
        }
        let clock = self.lease_clock(now);
        self.write(async move |db| lease(db, (now, clock), max).await).await
    }

    /// Records the outcome of an attempt. Returns `false` if the e-mail was deleted, or another sender has leased it
    /// since.
    pub async fn settle_mail(
        &self,
        id: i64,
        lease: i64,
        decision: MailDecision,
    ) -> Result<bool, StoreError> {
        let (status, due) = match decision {
            MailDecision::Retry(due) => (MailStatus::Waiting, Some(due)),
            MailDecision::Done(status) => (status, None),
        };
        self.write(async move |db| Ok(settle(db, &[id], Some(lease), (status, due)).await? > 0))
            .await
    }

    /// Returns a parcel's e-mails, oldest first.
    pub async fn mails_of_parcel(
        &self,
        parcel: ParcelRowId,
    ) -> Result<Vec<LoggedMail>, StoreError> {
        let sql = concat!(
            "SELECT recipient, kind, created_at, attempts, status FROM mails \
             WHERE parcel = (SELECT id FROM parcels WHERE id = $1 AND ",
            is_current!("tenant"),
            ") ORDER BY sequence, recipient"
        );
        self.query(async move |db| db.query_map(sql, params![parcel], read_logged_mail).await).await
    }

    /// Returns the number of a tenant's e-mails that failed for good, and the latest parcel with such an e-mail.
    pub async fn failed_mails(
        &self,
        tenant: Tenant,
        since: Millis,
    ) -> Result<(u64, Option<ParcelRowId>), StoreError> {
        // With CROSS JOIN, SQLite begins with the few failed e-mails instead of all parcels of the tenant.
        let sql = concat!(
            "SELECT count(*), max(m.parcel) FROM mails AS m CROSS JOIN parcels AS p \
             WHERE p.id = m.parcel AND m.status IN (2, 3) AND m.created_at >= $2 AND p.tenant = ",
            current_generation!("$1")
        );
        let read = |row: &Row<'_>| Ok((row.get::<i64>(0)?.unsigned_abs(), row.get(1)?));
        let params = params![tenant.number(), since].to_vec();
        self.query(async move |db| db.query_one(sql, &params, read).await).await
    }

    /// Returns a tenant's e-mails that wait to be tried again, or `None` if there are none.
    pub async fn held_mails(&self, tenant: Tenant) -> Result<Option<MailBacklog>, StoreError> {
        // The attempt of a lease is counted when it begins, and may yet succeed.
        let sql = concat!(
            "SELECT count(*), min(m.created_at), max(m.parcel)",
            from_waiting!(),
            "(m.attempts > 1 OR (m.attempts = 1 AND m.lease = 0)) AND p.tenant = ",
            current_generation!("$1"),
            " HAVING count(*) > 0"
        );
        let read = |row: &Row<'_>| read_backlog(row, 0);
        self.query(async move |db| db.first(sql, params![tenant.number()], read).await).await
    }

    /// Returns the waiting e-mails of each tenant, tried before or not.
    pub async fn waiting_mails(&self) -> Result<Vec<(Tenant, MailBacklog)>, StoreError> {
        let sql = concat!(
            "SELECT p.tenant, count(*), min(m.created_at), max(m.parcel)",
            from_waiting!(),
            is_current!("p.tenant"),
            " GROUP BY p.tenant"
        );
        let read = |row: &Row<'_>| Ok((Tenant::from_number(row.get(0)?), read_backlog(row, 1)?));
        self.long_query(None, async move |db| db.query_map(sql, &[], read).await).await
    }

    /// Adds one to each count of e-mails in its period, and returns the new counts.
    pub async fn count_mail(
        &self,
        counters: [([u8; 32], Millis); 2],
    ) -> Result<[u32; 2], StoreError> {
        self.write(async move |db| {
            let mut numbers = [0; 2];
            for (number, (whose, since)) in numbers.iter_mut().zip(counters) {
                let sql = "INSERT INTO mail_counts (whose, since, mails) VALUES ($1, $2, 1) \
                     ON CONFLICT (whose, since) DO UPDATE SET mails = mail_counts.mails + 1 \
                     RETURNING mails";
                *number = db.value(sql, params![whose, since]).await?;
            }
            Ok(numbers)
        })
        .await
    }

    /// Records that an address gets no e-mails from an account. If a reason is recorded already, it stays.
    pub async fn opt_out(
        &self,
        address: [u8; 32],
        why: OptOut,
        now: Millis,
    ) -> Result<(), StoreError> {
        let sql = "INSERT INTO mail_optouts (address, why, at) VALUES ($1, $2, $3) \
             ON CONFLICT (address) DO NOTHING";
        let params = params![address, why.number(), now].to_vec();
        self.write(async move |db| db.execute(sql, &params).await.map(drop)).await
    }

    /// Returns `true` if an address gets no e-mails from an account.
    pub async fn has_opted_out(&self, address: [u8; 32]) -> Result<bool, StoreError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM mail_optouts WHERE address = $1)";
        self.query(async move |db| db.value(sql, params![address]).await).await
    }

    /// Returns the kinds of e-mails that an account has switched off.
    pub async fn mails_off(&self, account: AccountRowId) -> Result<DisabledMailKinds, StoreError> {
        let sql = "SELECT kinds FROM mails_off WHERE account = $1";
        let found =
            self.query(async move |db| db.first(sql, params![account], |row| row.get(0)).await);
        Ok(found.await?.map(DisabledMailKinds::from_number).unwrap_or_default())
    }

    /// Switches these kinds of e-mails off, and the others on.
    pub async fn set_mails_off(
        &self,
        account: AccountRowId,
        off: DisabledMailKinds,
        by: &Author,
    ) -> Result<(), StoreError> {
        let by = by.clone();
        self.write(async move |db| {
            let sql = "INSERT INTO mails_off (account, kinds) VALUES ($1, $2) \
                 ON CONFLICT (account) DO UPDATE SET kinds = excluded.kinds";
            db.execute(sql, params![account, off.number()]).await?;
            let change = AuditedChange::for_account(account, AuditAction::MailsSet);
            audit::record(db, &by, &change).await
        })
        .await
    }

    /// Deletes the e-mails and counts from `cutoff` and earlier.
    pub async fn purge_mails(&self, cutoff: Millis) -> Result<u64, StoreError> {
        let purged = self.delete_old(old_rows!("mails", "id", "created_at"), cutoff.0).await?;
        self.delete_old(old_rows!("mail_counts", "whose, since", "since"), cutoff.0).await?;
        Ok(purged)
    }
}

/// Leases the last e-mail that waits for each recipient; the earlier ones are superseded. E-mails that another server
/// is leasing at the same time are skipped, so no e-mail is leased twice and neither server waits.
async fn lease(
    db: Sql<'_>,
    (now, clock): (Millis, Option<Millis>),
    max: usize,
) -> SqlResult<Vec<MailLease>> {
    let number = next_lease(db).await?;
    let waiting = concat!(
        "SELECT m.id, m.parcel, m.sequence, m.recipient, m.kind, m.created_at, m.attempts + 1 \
         FROM (SELECT DISTINCT parcel, recipient FROM (SELECT parcel, recipient FROM mails \
         WHERE due <= $1 AND EXISTS (SELECT 1 FROM parcels WHERE id = parcel AND ",
        is_current!("tenant"),
        ") ORDER BY due LIMIT $2) AS due) AS r \
         CROSS JOIN {LATERAL (SELECT * FROM mails AS m|mails AS m} \
         WHERE m.parcel = r.parcel AND m.recipient = r.recipient \
         AND m.due IS NOT NULL AND (m.lease = 0 OR m.due <= $1) \
         {FOR UPDATE SKIP LOCKED) AS m |}ORDER BY m.sequence DESC, m.id"
    );
    let read = |row: &Row<'_>| {
        let recipient: (i64, i64) = (row.get(1)?, row.get(3)?);
        Ok((row.get::<i64>(0)?, recipient, read_lease(row, number).ok()))
    };
    let (mut leased, mut superseded) = (Vec::new(), Vec::new());
    let mut recipients = HashSet::new();
    for (id, recipient, lease) in db.query_map(waiting, params![now, max], read).await? {
        match lease {
            Some(lease) if recipients.insert(recipient) => leased.push(lease),
            // An unreadable e-mail is never sent either.
            Some(_) | None => superseded.push(id),
        }
    }
    let ids: Vec<i64> = leased.iter().map(|lease| lease.id).collect();
    let lease = concat!(
        "UPDATE mails SET lease = $1, attempts = attempts + 1, \
         due = $2 + {coalesce($3::bigint, (extract(epoch FROM now()) * 1000)::bigint)|$3} WHERE id ",
        is_among!("$4")
    );
    db.execute(lease, params![number, LEASE_MILLIS, clock, &join_with_commas(&ids)]).await?;
    if !superseded.is_empty() {
        let status = MailStatus::Dropped(DropReason::Superseded);
        settle(db, &superseded, None, (status, None)).await?;
    }
    Ok(leased)
}

/// Sets the status of e-mails and ends their leases. They are due again at `due`, or never if it is `None`. If `lease`
/// is given, e-mails under another lease are left unchanged. Returns the number of e-mails that were changed.
async fn settle(
    db: Sql<'_>,
    mails: &[i64],
    lease: Option<i64>,
    (status, due): (MailStatus, Option<Millis>),
) -> SqlResult<u64> {
    let sql = concat!(
        "UPDATE mails SET status = $3, due = $4, lease = 0 \
         WHERE (CAST($2 AS bigint) IS NULL OR lease = $2) AND id ",
        is_among!("$1")
    );
    db.execute(sql, params![&join_with_commas(mails), lease, status.number(), due]).await
}

/// Reads a backlog from a column on.
fn read_backlog(row: &Row<'_>, column: usize) -> SqlResult<MailBacklog> {
    Ok(MailBacklog {
        mails: row.get(column)?,
        since: row.get(column + 1)?,
        latest: row.get(column + 2)?,
    })
}

fn read_lease(row: &Row<'_>, number: i64) -> SqlResult<MailLease> {
    Ok(MailLease {
        id: row.get(0)?,
        number,
        parcel: row.get(1)?,
        sequence: row.get(2)?,
        recipient: row.parse_number(3, MailRecipient::from_number)?,
        kind: row.parse_number(4, MailKind::from_number)?,
        at: row.get(5)?,
        attempt: row.get(6)?,
    })
}

fn read_logged_mail(row: &Row<'_>) -> SqlResult<LoggedMail> {
    Ok(LoggedMail {
        recipient: row.parse_number(0, MailRecipient::from_number)?,
        kind: row.parse_number(1, MailKind::from_number)?,
        at: row.get(2)?,
        attempts: row.get(3)?,
        status: row.parse_number(4, MailStatus::from_number)?,
    })
}
