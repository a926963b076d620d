//! The check that the table of idempotency records is in order. `SQLite` reports a page that it cannot read, but not a
//! page in the place of another one: the records that were there are then missing, and their keys would be used for a
//! second order.

use rusqlite::{Connection, ffi};

/// Statement that returns `true` if the rows on either side of a missing row are each other's neighbours and can be found.
/// In a sound table they are. `SQLite` finds a row through the pages above it and its neighbours through the pages beside
/// it, and the two disagree about a misplaced page: a copy shows in the order of its rows, and pages that have changed
/// places show in rows that are not found where they belong. A row of another table, whose second column is not a blob,
/// counts as the missing row. It is one statement because other processes may commit rows between two.
const IS_IN_ORDER: &str = "WITH beside (previous, next) AS (SELECT \
     (SELECT iif(typeof(key) = 'blob', id, ?1) FROM idempotency WHERE id < ?1 ORDER BY id DESC LIMIT 1), \
     (SELECT iif(typeof(key) = 'blob', id, ?1) FROM idempotency WHERE id > ?1 ORDER BY id LIMIT 1)) \
     SELECT coalesce(previous < ?1, TRUE) AND coalesce(next > ?1, TRUE) \
     AND previous IS (SELECT id FROM idempotency WHERE id = previous) \
     AND next IS (SELECT id FROM idempotency WHERE id = next) AND coalesce(?1 <= \
     (SELECT id FROM idempotency WHERE id > previous ORDER BY id LIMIT 1), TRUE) AND coalesce(?1 >= \
     (SELECT id FROM idempotency WHERE id < next ORDER BY id DESC LIMIT 1), TRUE) FROM beside";

/// Fails if a page is misplaced beside a missing row.
pub(super) fn verify(db: &Connection, missing: i64) -> rusqlite::Result<()> {
    let is_in_order: bool =
        db.prepare_cached(IS_IN_ORDER)?.query_row([missing], |row| row.get(0))?;
    if is_in_order { Ok(()) } else { Err(misplaced(missing)) }
}

/// Returns the error of a table that is not in order at a row.
pub(super) fn misplaced(id: i64) -> rusqlite::Error {
    let reason = format!("a page is misplaced or missing at row {id} of the table idempotency");
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(reason))
}
