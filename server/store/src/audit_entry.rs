//! The statement that writes an entry of the audit log, and its parameters.

use parcelo_domain::audit::{AuditedChange, Author};

use super::values::Value;

/// Inserts an entry, in the transaction that makes the change.
pub(super) const INSERT: &str = "INSERT INTO audit_log (at, account, actor, action, subject) \
     VALUES ($1, $2, $3, $4, $5)";

/// Returns the parameters of [`INSERT`].
pub(super) fn values(by: &Author, change: &AuditedChange) -> [Value; 5] {
    let Author { actor, at } = by;
    let AuditedChange { account, action, subject } = change;
    [(*at).into(), (*account).into(), actor.code().into(), action.code().into(), subject.into()]
}
