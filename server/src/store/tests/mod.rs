//! What every store must keep ([`conformance`]), and what a file must survive.

mod carriers;
pub(super) mod conformance;
mod durability;
mod erasure;
mod pages;
mod resets;

/// Changes a database file as nothing of ours would; answers how many rows.
pub(crate) fn damage(file: &std::path::Path, sql: &str) -> usize {
    rusqlite::Connection::open(file).unwrap().execute(sql, []).unwrap()
}

/// A database that another process writes to until this is dropped.
pub(crate) fn held(file: &std::path::Path) -> rusqlite::Connection {
    let other = rusqlite::Connection::open(file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}
