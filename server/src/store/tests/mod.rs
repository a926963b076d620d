//! What every store must keep ([`conformance`]), and what a file must survive.

mod carriers;
pub(super) mod conformance;
mod durability;
mod erasure;
pub(crate) mod reads;

/// A database that another process writes to until this is dropped.
pub(crate) fn held(file: &std::path::Path) -> rusqlite::Connection {
    let other = rusqlite::Connection::open(file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}
