//! The audit log in the database.

use tokio_postgres::Row;

use super::{
    Store,
    connection::{Connection, Given, get},
    error::DbResult,
    pages::{delete_old, in_page},
};
use crate::{
    clock::Millis,
    domain::{
        AccountRowId,
        audit::{Actor, AuditAction, AuditEntry, AuditedChange, Author},
    },
    store::StoreError,
};

impl Store {
    pub(crate) async fn audit_log(
        &self,
        account: Option<AccountRowId>,
        since: Millis,
        most: u32,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let most = i64::from(most);
        let rows = self.read(async move |db| {
            if let Some(account) = account {
                let sql = "SELECT l.at, a.name, l.actor, l.action, l.subject FROM audit_log AS l \
                     LEFT JOIN accounts AS a ON a.id = l.account \
                     WHERE l.account = $1 AND l.at >= $2 ORDER BY l.id DESC LIMIT $3";
                db.each(sql, &[&account.0, &since.0, &most], read).await
            } else {
                let sql = "SELECT l.at, a.name, l.actor, l.action, l.subject FROM audit_log AS l \
                     LEFT JOIN accounts AS a ON a.id = l.account \
                     WHERE l.at >= $1 ORDER BY l.id DESC LIMIT $2";
                db.each(sql, &[&since.0, &most], read).await
            }
        });
        Ok(rows.await?.into_iter().flatten().collect())
    }

    pub(crate) async fn purge_audit_log(&self, before: Millis) -> Result<u64, StoreError> {
        self.delete_old(delete_old!("audit_log", "id", "audit_log WHERE ", "at"), before.0).await
    }
}

/// Writes a change down, in the transaction that makes it.
pub(super) async fn record(db: &Connection, by: &Author, change: &AuditedChange) -> DbResult<()> {
    let Author { actor, at } = by;
    let account = change.account.map(|account| account.0);
    let sql = "INSERT INTO audit_log (at, account, actor, action, subject) \
         VALUES ($1, $2, $3, $4, $5)";
    let given: Given<'_> =
        &[&at.0, &account, &actor.code(), &change.action.code(), &change.subject];
    db.execute(sql, given).await.map(drop)
}

/// None if a later version wrote it, of which this one does not know what it is.
fn read(row: &Row) -> DbResult<Option<AuditEntry>> {
    let Some(action) = AuditAction::from_code(get(row, 3)?) else { return Ok(None) };
    Ok(Some(AuditEntry {
        at: Millis(get(row, 0)?),
        account: get(row, 1)?,
        actor: Actor::from_code(get(row, 2)?),
        action,
        subject: get(row, 4)?,
    }))
}
