//! The keys of idempotency records once more, some hundred to a row: what a start fills the map of keys from. The
//! records have their answers with them, a gigabyte for a million, of which a start would read every page; an index
//! or a table of keys would cost each order a statement's work and each commit a page. These are written with every
//! 256th order, and the few records behind the last of them are read themselves.
//!
//! A chunk may name rows that are gone. Of a key there are 40 bits, which tell nothing of what was erased.

use std::cell::Cell;

use rusqlite::{Connection, params};

use super::{error::is_corrupt, key_map::KeyPart};

/// The rows of a chunk, at most: about as many as fit in a page.
pub(super) const ROWS: i64 = 256;
/// The bytes of a row: what is known of its key, and its id.
const ROW_BYTES: usize = 5 + 8;

/// All rows after `after`, in the order of their ids, and perhaps some before it.
pub(super) fn read(
    db: &Connection,
    after: i64,
    mut each: impl FnMut(KeyPart, i64),
) -> rusqlite::Result<()> {
    let read_to = Cell::new(after);
    let mut every = |key, id| {
        read_to.set(read_to.get().max(id));
        each(key, id);
    };
    match chunks_after((db, after), i64::MAX, &mut every) {
        // The records have it all: a start that reads a gigabyte is better than none.
        Err(error) if is_corrupt(&error) => {
            tracing::error!(%error, "the list of idempotency keys is damaged: their records are read instead");
        }
        chunks => drop(chunks?),
    }
    rows_after((db, read_to.get()), i64::MAX, every)
}

/// The last row that is in a chunk.
pub(super) fn end(db: &Connection) -> rusqlite::Result<i64> {
    let last = "SELECT coalesce(max(up_to), 0) FROM key_chunks";
    match db.prepare_cached(last)?.query_row([], |row| row.get(0)) {
        Err(error) if is_corrupt(&error) => Ok(0),
        end => end,
    }
}

/// The rows of so many chunks after `after`, and where they end.
pub(super) fn some(
    db: &Connection,
    after: i64,
    most: i64,
) -> rusqlite::Result<(i64, Vec<(KeyPart, i64)>)> {
    let mut rows = Vec::new();
    let up_to = chunks_after((db, after), most, |key, id| rows.push((key, id)))?;
    Ok((up_to, rows))
}

fn chunks_after(
    (db, after): (&Connection, i64),
    most: i64,
    mut each: impl FnMut(KeyPart, i64),
) -> rusqlite::Result<i64> {
    let mut chunked_to = after;
    let mut find = db.prepare_cached(
        "SELECT up_to, keys FROM key_chunks WHERE up_to > ?1 ORDER BY up_to LIMIT ?2",
    )?;
    let mut chunks = find.query([after, most])?;
    while let Some(chunk) = chunks.next()? {
        chunked_to = chunk.get(0)?;
        for row in chunk.get_ref(1)?.as_blob()?.as_chunks::<ROW_BYTES>().0 {
            // Both are there, always: the row is as long as the two.
            if let (Some(key), Some(id)) = (row.first_chunk(), row.last_chunk()) {
                each(KeyPart(*key), i64::from_be_bytes(*id));
            }
        }
    }
    Ok(chunked_to)
}

/// Writes chunks of all rows that are in none.
pub(super) fn write(db: &Connection) -> rusqlite::Result<()> {
    let mut after = end(db)?;
    loop {
        let (mut up_to, mut keys) = (after, Vec::new());
        rows_after((db, after), ROWS, |key, id| {
            up_to = id;
            keys.extend(key.0.into_iter().chain(id.to_be_bytes()));
        })?;
        if keys.is_empty() {
            return Ok(());
        }
        let mut insert =
            db.prepare_cached("INSERT INTO key_chunks (up_to, keys) VALUES (?1, ?2)")?;
        insert.execute(params![up_to, keys])?;
        after = up_to;
    }
}

/// Deletes some of the chunks of which no row is left.
pub(super) fn delete_dead(db: &Connection, most: i64) -> rusqlite::Result<usize> {
    let mut delete = db.prepare_cached(
        "DELETE FROM key_chunks WHERE up_to IN (SELECT up_to FROM key_chunks \
         WHERE up_to < coalesce((SELECT min(id) FROM idempotency), 9223372036854775807) \
         ORDER BY up_to LIMIT ?1)",
    )?;
    delete.execute([most])
}

/// With those of generations that have ended: they do not come back, and may be known in vain.
fn rows_after(
    (db, after): (&Connection, i64),
    most: i64,
    mut each: impl FnMut(KeyPart, i64),
) -> rusqlite::Result<()> {
    let mut find = db.prepare_cached(
        "SELECT substr(key, 1, 5), id FROM idempotency WHERE id > ?1 ORDER BY id LIMIT ?2",
    )?;
    let mut rows = find.query([after, most])?;
    while let Some(row) = rows.next()? {
        each(KeyPart(row.get(0)?), row.get(1)?);
    }
    Ok(())
}
