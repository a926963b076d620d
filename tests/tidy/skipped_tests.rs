//! Reports after `cargo test` how many tests passed without running because PostgreSQL is not installed.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the code shared with tests panics on failure"
)]

#[path = "../../server/tests/cluster/mod.rs"]
mod cluster;

use std::fs;

#[expect(clippy::print_stdout, reason = "this program exists to print")]
fn main() {
    let file = cluster::skipped_tests_file();
    let Ok(skipped) = fs::read(&file) else { return };
    println!(
        "SKIPPED: {} tests passed because PostgreSQL is not installed. With PostgreSQL 15 or later they run; with \
         PARCELO_POSTGRES_REQUIRED=1 they fail without it.",
        skipped.len()
    );
    // A process with the same id would otherwise count it again.
    let _removed = fs::remove_file(file);
}
