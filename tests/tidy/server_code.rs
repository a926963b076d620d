//! The HTTP statuses of errors: the server takes them from one table, `ErrorCode::status`.

use super::{assert_none, imports::Crate};

/// Statuses of successes and of internal errors.
const NOT_IN_THE_TABLE: &[&str] = &["OK", "CREATED", "NOT_MODIFIED", "INTERNAL_SERVER_ERROR"];

#[test]
fn status_numbers_are_in_the_error_table() {
    let mut violations = Vec::new();
    for root in ["server/process/src/lib.rs", "server/service/src/lib.rs"] {
        for (file, name) in Crate::in_repository(root).names() {
            let [.., kind, status] = &*name else { continue };
            let is_constant = status.chars().all(|c| c.is_ascii_uppercase() || c == '_');
            if kind == "StatusCode" && is_constant {
                let known = NOT_IN_THE_TABLE.contains(&&**status);
                violations.extend((!known).then(|| format!("{file}: {status}")));
            }
        }
    }
    assert_none("an error's HTTP status is read from ErrorCode::status", &violations);
}
