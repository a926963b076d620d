//! E-mails: written with their change, leased to be sent, and what became of them. Whether one is worth sending is not
//! asked here.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{Store, StoreError, audit, outbox};
use crate::{
    clock::Millis,
    domain::{
        AccountRowId, ParcelRowId, Tenant,
        audit::{AuditAction, AuditedChange, Author},
        mail::{
            BURST, LEASE, LoggedMail, MailDecision, MailKind, MailLease, MailRecipient, MailStatus,
            MailsOff, NewMail, OptOut,
        },
    },
    store::generations::{current, is_current},
};

/// Deletes the old ones of a table, so many at a time.
macro_rules! delete_old {
    ($table:literal, $key:literal, $at:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE ",
            $key,
            " IN (SELECT ",
            $key,
            " FROM ",
            $table,
            " WHERE ",
            $at,
            " <= ?1 LIMIT ?2)"
        )
    };
}

impl Store {
    /// Since when e-mails are sent: since now, if they were not.
    pub async fn mail_since(&self, now: Millis) -> Result<Millis, StoreError> {
        self.call(move |db| {
            let sql = "INSERT INTO mail_since (one, at) VALUES (1, ?1) \
                 ON CONFLICT (one) DO UPDATE SET at = at RETURNING at";
            db.query_row(sql, [now.0], |row| row.get(0).map(Millis))
        })
        .await
    }

    /// E-mails are not sent from here on. What waits is not sent later either.
    pub async fn forget_mail_since(&self) -> Result<(), StoreError> {
        let is_there = |db: &Connection| {
            db.query_row("SELECT EXISTS (SELECT 1 FROM mail_since)", [], |row| row.get(0))
        };
        if !self.read(is_there)? {
            return Ok(());
        }
        self.call(|db| db.execute("DELETE FROM mail_since", []).map(drop)).await
    }

    /// Leases up to so many e-mails that are due, in one commit: no other sender gets them until the lease ends. Of
    /// those that wait for one recipient of a parcel it is the last; the others are superseded.
    pub async fn lease_mails(
        &self,
        now: Millis,
        most: usize,
    ) -> Result<Vec<MailLease>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let is_due = |db: &Connection| {
            db.query_row("SELECT EXISTS (SELECT 1 FROM mails WHERE due <= ?1)", [now.0], |row| {
                row.get(0)
            })
        };
        if !self.read(is_due)? {
            return Ok(Vec::new());
        }
        self.call(move |db| lease(db, now, most)).await
    }

    /// When the next e-mail is due.
    pub async fn next_mail(&self) -> Result<Option<Millis>, StoreError> {
        let sql = concat!(
            "SELECT due FROM mails WHERE due IS NOT NULL AND EXISTS \
             (SELECT 1 FROM parcels WHERE id = parcel AND ",
            is_current!("tenant"),
            ") ORDER BY due LIMIT 1"
        );
        self.read(|db| {
            db.prepare_cached(sql)?.query_row([], |row| row.get(0).map(Millis)).optional()
        })
    }

    /// Writes down what an attempt means; false when the e-mail is another sender's by now, or gone.
    pub async fn settle_mail(
        &self,
        id: i64,
        lease: i64,
        decision: MailDecision,
    ) -> Result<bool, StoreError> {
        let (status, due) = match decision {
            MailDecision::Again(due) => (MailStatus::Waiting, Some(due.0)),
            MailDecision::Done(status) => (status, None),
        };
        self.call(move |db| {
            let sql =
                "UPDATE mails SET status = ?3, due = ?4, lease = 0 WHERE id = ?1 AND lease = ?2";
            let changed = db.prepare_cached(sql)?.execute(params![id, lease, status.number(), due]);
            changed.map(|rows| rows > 0)
        })
        .await
    }

    /// A parcel's e-mails, oldest first.
    pub async fn mails_of_parcel(
        &self,
        parcel: ParcelRowId,
    ) -> Result<Vec<LoggedMail>, StoreError> {
        let sql = concat!(
            "SELECT recipient, kind, created_at, attempts, status FROM mails \
             WHERE parcel = (SELECT id FROM parcels WHERE id = ?1 AND ",
            is_current!("tenant"),
            ") ORDER BY sequence, recipient"
        );
        self.read(|db| db.prepare_cached(sql)?.query_map([parcel.0], logged)?.collect())
    }

    /// How many e-mails of a tenant's failed for good, and the latest parcel that has one.
    pub async fn failed_mails(
        &self,
        tenant: Tenant,
        since: Millis,
    ) -> Result<(u64, Option<ParcelRowId>), StoreError> {
        let sql = concat!(
            "SELECT count(*), max(m.parcel) FROM mails AS m \
             CROSS JOIN parcels AS p ON p.id = m.parcel \
             WHERE m.status IN (2, 3) AND m.created_at >= ?2 AND p.tenant = ",
            current!("?1")
        );
        self.read(|db| {
            let read = |row: &Row<'_>| {
                let mails: i64 = row.get(0)?;
                Ok((mails.unsigned_abs(), row.get::<_, Option<i64>>(1)?.map(ParcelRowId)))
            };
            db.prepare_cached(sql)?.query_row([tenant.number(), since.0], read)
        })
    }

    /// Adds one to the numbers of e-mails since these moments; answers them.
    pub async fn count_mail(&self, whose: [([u8; 32], Millis); 2]) -> Result<[u32; 2], StoreError> {
        self.call(move |db| {
            let mut add = db.prepare_cached(
                "INSERT INTO mail_counts (whose, since, mails) VALUES (?1, ?2, 1) \
                 ON CONFLICT (whose, since) DO UPDATE SET mails = mails + 1 RETURNING mails",
            )?;
            let mut numbers = [0; 2];
            for (number, (whose, since)) in numbers.iter_mut().zip(whose) {
                *number = add.query_row(params![whose, since.0], |row| row.get(0))?;
            }
            Ok(numbers)
        })
        .await
    }

    /// Keeps that an address gets no e-mails of an account; the first reason stays.
    pub async fn opt_out(
        &self,
        address: [u8; 32],
        why: OptOut,
        now: Millis,
    ) -> Result<(), StoreError> {
        self.call(move |db| {
            let sql = "INSERT INTO mail_optouts (address, why, at) VALUES (?1, ?2, ?3) \
                 ON CONFLICT (address) DO NOTHING";
            db.execute(sql, params![address, why.number(), now.0]).map(drop)
        })
        .await
    }

    /// Whether an address gets no e-mails of an account.
    pub async fn has_opted_out(&self, address: [u8; 32]) -> Result<bool, StoreError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM mail_optouts WHERE address = ?1)";
        self.read(|db| db.prepare_cached(sql)?.query_row([address], |row| row.get(0)))
    }

    /// The kinds of e-mails that an account has switched off.
    pub async fn mails_off(&self, account: AccountRowId) -> Result<MailsOff, StoreError> {
        let sql = "SELECT kinds FROM mails_off WHERE account = ?1";
        let found: Option<u8> = self.read(|db| {
            db.prepare_cached(sql)?.query_row([account.0], |row| row.get(0)).optional()
        })?;
        Ok(found.map(MailsOff::from_number).unwrap_or_default())
    }

    /// Switches kinds of e-mails off, and the others on.
    pub async fn set_mails_off(
        &self,
        account: AccountRowId,
        off: MailsOff,
        by: &Author,
    ) -> Result<(), StoreError> {
        let by = by.clone();
        self.call(move |db| {
            let sql = "INSERT INTO mails_off (account, kinds) VALUES (?1, ?2) \
                 ON CONFLICT (account) DO UPDATE SET kinds = excluded.kinds";
            db.execute(sql, params![account.0, off.number()])?;
            let change = AuditedChange::of_account(account, AuditAction::MailsSet);
            audit::record(db, &by, &change)
        })
        .await
    }

    /// Forgets e-mails of `before` and earlier, and numbers of then.
    pub async fn purge_mails(&self, before: Millis) -> Result<u64, StoreError> {
        let purged = self.in_pages(move |db, most| {
            let sql = delete_old!("mails", "id", "created_at");
            db.prepare_cached(sql)?.execute([before.0, most])
        });
        let purged = purged.await?;
        let counts = self.in_pages(move |db, most| {
            let sql = "DELETE FROM mail_counts WHERE (whose, since) IN \
                 (SELECT whose, since FROM mail_counts WHERE since <= ?1 LIMIT ?2)";
            db.prepare_cached(sql)?.execute([before.0, most])
        });
        counts.await?;
        Ok(purged)
    }
}

/// Writes an e-mail down, unless its parcel has had it.
pub(super) fn insert(db: &Connection, mail: &NewMail) -> rusqlite::Result<()> {
    let mut insert = db.prepare_cached(
        "INSERT INTO mails (parcel, sequence, recipient, kind, created_at, due) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
    )?;
    let (recipient, kind) = (mail.recipient.number(), mail.kind.number());
    let due = mail.at.plus(BURST).0;
    insert.execute(params![mail.parcel.0, mail.sequence, recipient, kind, mail.at.0, due]).map(drop)
}

fn lease(db: &Connection, now: Millis, most: i64) -> rusqlite::Result<Vec<MailLease>> {
    let number = outbox::next_lease(db)?;
    let mut find = db.prepare_cached(concat!(
        "SELECT DISTINCT parcel, recipient FROM (SELECT parcel, recipient FROM mails \
         WHERE due <= ?1 AND EXISTS (SELECT 1 FROM parcels WHERE id = parcel AND ",
        is_current!("tenant"),
        ") ORDER BY due LIMIT ?2)"
    ))?;
    let due = find.query_map([now.0, most], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let due = due.collect::<Result<Vec<(i64, u8)>, _>>()?;
    let mut leased = Vec::new();
    for (parcel, recipient) in due {
        leased.extend(lease_last(db, (parcel, recipient), (number, now))?);
    }
    Ok(leased)
}

/// Leases the last e-mail that waits for a recipient; those before it are superseded.
fn lease_last(
    db: &Connection,
    (parcel, recipient): (i64, u8),
    (number, now): (i64, Millis),
) -> rusqlite::Result<Option<MailLease>> {
    let mut find = db.prepare_cached(
        "SELECT id, parcel, sequence, recipient, kind, created_at, attempts + 1 FROM mails \
         WHERE parcel = ?1 AND recipient = ?2 AND due IS NOT NULL AND (lease = 0 OR due <= ?3) \
         ORDER BY sequence DESC",
    )?;
    let waiting = find.query_map(params![parcel, recipient, now.0], |row| {
        Ok((row.get(0)?, read_lease(row, number)?))
    })?;
    let mut last = None;
    for (id, lease) in waiting.collect::<Result<Vec<(i64, Option<MailLease>)>, _>>()? {
        match lease {
            Some(lease) if last.is_none() => {
                let sql =
                    "UPDATE mails SET lease = ?2, due = ?3, attempts = attempts + 1 WHERE id = ?1";
                db.prepare_cached(sql)?.execute([id, number, now.plus(LEASE).0])?;
                last = Some(lease);
            }
            // One that cannot be read is passed over for good, too.
            _ => {
                let sql = "UPDATE mails SET status = ?2, due = NULL, lease = 0 WHERE id = ?1";
                db.prepare_cached(sql)?.execute([id, superseded()])?;
            }
        }
    }
    Ok(last)
}

fn superseded() -> i64 {
    MailStatus::Dropped(crate::domain::mail::Dropped::Superseded).number().into()
}

/// None when it cannot be read.
fn read_lease(row: &Row<'_>, number: i64) -> rusqlite::Result<Option<MailLease>> {
    let recipient = MailRecipient::from_number(row.get(3)?);
    let kind = MailKind::from_number(row.get(4)?);
    let (Some(recipient), Some(kind)) = (recipient, kind) else { return Ok(None) };
    Ok(Some(MailLease {
        id: row.get(0)?,
        number,
        parcel: ParcelRowId(row.get(1)?),
        sequence: row.get(2)?,
        recipient,
        kind,
        at: Millis(row.get(5)?),
        attempt: row.get(6)?,
    }))
}

fn logged(row: &Row<'_>) -> rusqlite::Result<LoggedMail> {
    let number = |column: usize| row.get::<_, u8>(column);
    let unknown = |column: usize| {
        rusqlite::Error::IntegralValueOutOfRange(column, number(column).unwrap_or_default().into())
    };
    Ok(LoggedMail {
        recipient: MailRecipient::from_number(number(0)?).ok_or_else(|| unknown(0))?,
        kind: MailKind::from_number(number(1)?).ok_or_else(|| unknown(1))?,
        at: Millis(row.get(2)?),
        attempts: row.get(3)?,
        status: MailStatus::from_number(number(4)?).ok_or_else(|| unknown(4))?,
    })
}
