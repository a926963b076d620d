//! E-mails: writing them with the change that causes them, and leasing them to be sent. Other code decides whether an
//! e-mail is worth sending.

use rusqlite::{Connection, Row, params};

use super::{Store, StoreError, outbox};
use crate::{
    clock::Millis,
    domain::{
        ParcelRowId,
        mail::{BURST_DELAY, LEASE, MailKind, MailLease, MailRecipient, MailStatus, NewMail},
    },
    store::generations::is_current,
};

impl Store {
    /// Leases up to `max` due e-mails in one commit. No other sender gets them until the lease ends. If several e-mails
    /// wait for one recipient of a parcel, only the last is leased; the rest are superseded.
    pub async fn lease_mails(&self, now: Millis, max: usize) -> Result<Vec<MailLease>, StoreError> {
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let is_due = |db: &Connection| {
            db.query_row("SELECT EXISTS (SELECT 1 FROM mails WHERE due <= ?1)", [now.0], |row| {
                row.get(0)
            })
        };
        if !self.read(is_due)? {
            return Ok(Vec::new());
        }
        self.call(move |db| lease(db, now, max)).await
    }
}

/// Writes an e-mail, unless its parcel already has it.
pub(super) fn insert(db: &Connection, mail: &NewMail) -> rusqlite::Result<()> {
    let mut insert = db.prepare_cached(
        "INSERT INTO mails (parcel, sequence, recipient, kind, created_at, due) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
    )?;
    let (recipient, kind) = (mail.recipient.number(), mail.kind.number());
    let due = mail.at.plus(BURST_DELAY).0;
    insert.execute(params![mail.parcel.0, mail.sequence, recipient, kind, mail.at.0, due]).map(drop)
}

fn lease(db: &Connection, now: Millis, max: i64) -> rusqlite::Result<Vec<MailLease>> {
    let number = outbox::next_lease(db)?;
    let mut find = db.prepare_cached(concat!(
        "SELECT DISTINCT parcel, recipient FROM (SELECT parcel, recipient FROM mails \
         WHERE due <= ?1 AND EXISTS (SELECT 1 FROM parcels WHERE id = parcel AND ",
        is_current!("tenant"),
        ") ORDER BY due LIMIT ?2)"
    ))?;
    let due = find.query_map([now.0, max], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let due = due.collect::<Result<Vec<(i64, u8)>, _>>()?;
    let mut leased = Vec::new();
    for (parcel, recipient) in due {
        leased.extend(lease_last(db, (parcel, recipient), (number, now))?);
    }
    Ok(leased)
}

/// Leases the last e-mail that waits for a recipient; earlier ones are superseded.
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
            // An unreadable e-mail is skipped for good, too.
            _ => {
                let sql = "UPDATE mails SET status = ?2, due = NULL, lease = 0 WHERE id = ?1";
                db.prepare_cached(sql)?.execute([id, superseded()])?;
            }
        }
    }
    Ok(last)
}

fn superseded() -> i64 {
    MailStatus::Dropped(crate::domain::mail::DropReason::Superseded).number().into()
}

/// Reads a leased e-mail. Returns `None` if it cannot be read.
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
