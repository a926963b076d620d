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

/// The entries to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditFilter {
    /// All entries.
    All,
    /// All entries of an account.
    Account(AccountRowId),
    /// The entries of an account except its sessions, which may be many.
    Changes(AccountRowId),
    /// The sessions of an account.
    SignIns(AccountRowId),
}

impl Store {
    /// Returns the latest entries of the audit log since a time, newest first.
    pub async fn audit_log(
        &self,
        filter: AuditFilter,
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
        let signed_in = AuditAction::SignedIn.code();
        let (sql, params) = match filter {
            AuditFilter::All => (entries!("l.at >= $1"), params![since, max].to_vec()),
            AuditFilter::Account(account) => {
                (entries!("l.at >= $1 AND l.account = $3"), params![since, max, account].to_vec())
            }
            AuditFilter::Changes(account) => (
                entries!("l.at >= $1 AND l.account = $3 AND l.action <> $4"),
                params![since, max, account, signed_in].to_vec(),
            ),
            AuditFilter::SignIns(account) => (
                entries!("l.at >= $1 AND l.account = $3 AND l.action = $4"),
                params![since, max, account, signed_in].to_vec(),
            ),
        };
        let read = self.query(async move |db| db.query_map(sql, &params, read_entry).await);
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
