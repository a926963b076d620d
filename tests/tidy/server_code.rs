//! Rules for the server's code alone: where HTTP statuses come from, and what its store reads.

use super::{assert_none, imports::Crate, sources::rust_under};

/// Statuses of successes, and the one that a bug has.
const NOT_IN_THE_TABLE: &[&str] = &["OK", "CREATED", "NOT_MODIFIED", "INTERNAL_SERVER_ERROR"];

#[test]
fn status_numbers_are_in_the_error_table() {
    let mut faults = Vec::new();
    for (file, name) in Crate::in_repository("server/src/lib.rs").names() {
        let [.., kind, status] = &*name else { continue };
        let is_constant = status.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        // The schedule of webhooks reads the answers of others.
        if kind == "StatusCode" && is_constant && !file.ends_with("webhooks/retry.rs") {
            let known = NOT_IN_THE_TABLE.contains(&&**status);
            faults.extend((!known).then(|| format!("{file}: {status}")));
        }
    }
    assert_none("an error's HTTP status is read from ErrorCode::status", &faults);
}

/// A reset hides rows before it deletes them, so a read of the tables would show what is gone. A query for
/// ids alone shows nothing: their rows are read through the views.
#[test]
fn reads_of_the_store_see_nothing_that_a_reset_hides() {
    let mut faults = Vec::new();
    for source in rust_under(&["server/src/store/"]) {
        // What names keys of rows shows nothing of them.
        let erases = [
            "erase.rs",
            "resets.rs",
            "reset_counts.rs",
            "connection.rs",
            "key_chunks.rs",
            "term_runs.rs",
        ];
        if source.is_test() || erases.iter().any(|file| source.path.ends_with(file)) {
            continue;
        }
        for table in ["parcels", "manifests", "idempotency", "outbox"] {
            for word in ["FROM", "JOIN"] {
                for (at, read) in source.without_tests().match_indices(&format!("{word} {table} "))
                {
                    let before = &source.text[..at];
                    let shows_nothing = ["DELETE ", "max(id) ", "\"SELECT id "];
                    if word == "JOIN" || !shows_nothing.iter().any(|start| before.ends_with(start))
                    {
                        faults.push(format!("{}: {read}", source.at(at)));
                    }
                }
            }
        }
    }
    assert_none(
        "reads name living_parcels, living_manifests, living_idempotency, living_outbox",
        &faults,
    );
}
