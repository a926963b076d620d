//! The audit log in the database.

use parcelo_domain::{
    AccountRowId, Millis,
    audit::{Actor, AuditAction, AuditEntry, AuditedChange, Author},
};

use super::{
    Store, StoreError, audit_entry,
    old_rows::old_rows,
    sql::{Row, Sql, SqlResult, params},
};

impl Store {
    /// Returns the latest entries of the audit log since a time, newest first, for one account or for all.
    pub async fn audit_log(
        &self,
        account: Option<AccountRowId>,
        since: Millis,
        max: u32,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        /// Returns the statement that selects entries by a condition.
        macro_rules! entries {
            ($condition:literal) => {
                concat!(
                    "SELECT l.at, a.name, l.actor, l.action, l.subject FROM audit_log AS l \
                     LEFT JOIN accounts AS a ON a.id = l.account WHERE ",
                    $condition,
                    " ORDER BY l.id DESC LIMIT $2"
                )
            };
        }
        let read = self.query(async move |db| match account {
            Some(account) => {
                let sql = entries!("l.at >= $1 AND l.account = $3");
                db.query_map(sql, params![since, max, account], read_entry).await
            }
            None => db.query_map(entries!("l.at >= $1"), params![since, max], read_entry).await,
        });
        Ok(read.await?.into_iter().flatten().collect())
    }

    /// Deletes the entries from `cutoff` and earlier, page by page, and returns their number.
    pub async fn purge_audit_log(&self, cutoff: Millis) -> Result<u64, StoreError> {
        self.delete_old(old_rows!("audit_log", "id", "at"), cutoff.0).await
    }
}

/// Records a change, in the transaction that makes it.
pub(super) async fn record(db: Sql<'_>, by: &Author, change: &AuditedChange) -> SqlResult<()> {
    db.execute(audit_entry::INSERT, &audit_entry::values(by, change)).await.map(drop)
}

/// Reads an entry. Returns `None` if a later version wrote the entry and this version does not know its action.
fn read_entry(row: &Row<'_>) -> SqlResult<Option<AuditEntry>> {
    let Some(action) = AuditAction::from_code(&row.get::<String>(3)?) else { return Ok(None) };
    Ok(Some(AuditEntry {
        at: row.get(0)?,
        account: row.get(1)?,
        actor: Actor::from_code(&row.get::<String>(2)?),
        action,
        subject: row.get(4)?,
    }))
}
