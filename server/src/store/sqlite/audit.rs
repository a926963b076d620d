//! The audit log in the database.

use rusqlite::{Connection, Params, Row, params};

use super::{Store, StoreError};
use crate::{
    clock::Millis,
    domain::{
        AccountRowId,
        audit::{Actor, AuditAction, AuditEntry, AuditedChange, Author},
    },
};

const SELECT: &str = "SELECT l.at, a.name, l.actor, l.action, l.subject FROM audit_log AS l \
     LEFT JOIN accounts AS a ON a.id = l.account";

impl Store {
    /// The latest entries of the audit log since a moment, newest first.
    pub async fn audit_log(
        &self,
        account: Option<AccountRowId>,
        since: Millis,
        most: u32,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        self.read(|db| {
            if let Some(account) = account {
                let which = "WHERE l.account = ?1 AND l.at >= ?2 ORDER BY l.id DESC LIMIT ?3";
                entries(db, which, params![account.0, since.0, most])
            } else {
                let which = "WHERE l.at >= ?1 ORDER BY l.id DESC LIMIT ?2";
                entries(db, which, params![since.0, most])
            }
        })
    }

    /// Deletes the entries of `before` and earlier.
    pub async fn purge_audit_log(&self, before: Millis) -> Result<u64, StoreError> {
        self.in_pages(move |db, most| {
            db.prepare_cached(
                "DELETE FROM audit_log WHERE id IN \
                 (SELECT id FROM audit_log WHERE at <= ?1 ORDER BY at LIMIT ?2)",
            )?
            .execute([before.0, most])
        })
        .await
    }
}

/// Writes a change down, in the transaction that makes it.
pub(super) fn record(db: &Connection, by: &Author, change: &AuditedChange) -> rusqlite::Result<()> {
    let Author { actor, at } = by;
    let account = change.account.map(|account| account.0);
    let sql = "INSERT INTO audit_log (at, account, actor, action, subject) \
         VALUES (?1, ?2, ?3, ?4, ?5)";
    let given = params![at.0, account, actor.code(), change.action.code(), change.subject];
    db.prepare_cached(sql)?.execute(given).map(drop)
}

fn entries(db: &Connection, which: &str, given: impl Params) -> rusqlite::Result<Vec<AuditEntry>> {
    let mut find = db.prepare_cached(&[SELECT, which].join(" "))?;
    let read: Vec<_> = find.query_map(given, read)?.collect::<Result<_, _>>()?;
    Ok(read.into_iter().flatten().collect())
}

/// None if a later version wrote it, of which this one does not know what it is.
fn read(row: &Row<'_>) -> rusqlite::Result<Option<AuditEntry>> {
    let Some(action) = AuditAction::from_code(row.get_ref(3)?.as_str()?) else { return Ok(None) };
    Ok(Some(AuditEntry {
        at: Millis(row.get(0)?),
        account: row.get(1)?,
        actor: Actor::from_code(row.get_ref(2)?.as_str()?),
        action,
        subject: row.get(4)?,
    }))
}
