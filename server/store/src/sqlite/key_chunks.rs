//! A compact copy of the idempotency keys, a few hundred to a row, which fills the map of keys at startup. Without it,
//! a start would read the records with their answers, a gigabyte per million. An index or a table of keys would cost
//! every order a statement, and every commit a page. A chunk is written with every 256th order; the few records after
//! the last chunk are read directly.
//!
//! A chunk may name rows that are gone. It holds 40 bits of each key, which reveal nothing that was erased.
//!
//! A key that is missing here could be used for a second order. So each chunk has a checksum, and starts where the
//! previous chunk ends. From the first chunk that fails either test on, the records are read instead.

use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};

use super::{
    error::{is_corrupt, is_row_error},
    key_map::KeyPart,
    record_order,
};

/// Maximum number of rows of a chunk: about as many as fit in a page.
pub(super) const ROWS_PER_CHUNK: i64 = 256;
/// Start of the name of a damaged table that another one replaced.
pub(super) const SET_ASIDE_PREFIX: &str = "damaged_";
/// Size of a row in bytes: the part of its key, and its id.
const ROW_BYTES: usize = 5 + 8;

/// The end of a list of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChunksEnd {
    /// The last row of the last chunk that is sound.
    pub(super) up_to: i64,
    /// `false` if another chunk follows that is damaged or out of sequence.
    pub(super) is_sound: bool,
}

/// Reads all rows after `after`, in the order of their ids, and perhaps some before it. Returns the end of the chunks;
/// the rows after it are read from the records.
pub(super) fn read(
    db: &Connection,
    after: i64,
    mut each: impl FnMut(KeyPart, i64),
) -> rusqlite::Result<ChunksEnd> {
    let end = chunks_after((db, after), i64::MAX, &mut each)?;
    if !end.is_sound {
        // The records have all keys, and a start that reads a gigabyte is better than no start.
        tracing::error!("the list of idempotency keys is damaged: their records are read instead");
    }
    rows_after((db, end.up_to), i64::MAX, each)?;
    Ok(end)
}

/// Returns the last row that is in a chunk.
pub(super) fn last_chunked_row(db: &Connection) -> rusqlite::Result<i64> {
    let last = "SELECT coalesce(max(up_to), 0) FROM key_chunks";
    match db.prepare_cached(last)?.query_row([], |row| row.get(0)) {
        Err(error) if is_corrupt(&error) => Ok(0),
        end => end,
    }
}

/// Reads the rows of `max` chunks after `after`, as far as they are sound.
pub(super) fn chunks_after(
    (db, after): (&Connection, i64),
    max: i64,
    each: &mut impl FnMut(KeyPart, i64),
) -> rusqlite::Result<ChunksEnd> {
    let mut up_to = after;
    let mut find = db.prepare_cached(
        "SELECT after, up_to, checksum, keys FROM key_chunks WHERE up_to > ?1 ORDER BY up_to LIMIT ?2",
    )?;
    let mut chunks = find.query([after, max])?;
    loop {
        let read = chunks.next().and_then(|chunk| chunk.map(Chunk::read).transpose());
        let chunk = match read {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return Ok(ChunksEnd { up_to, is_sound: true }),
            // This includes a page of another table in the place of a page of chunks.
            Err(error) if is_row_error(&error) => return Ok(ChunksEnd { up_to, is_sound: false }),
            Err(error) => return Err(error),
        };
        let is_next = chunk.after <= up_to || !has_rows(db, (up_to, chunk.after))?;
        if !is_next || chunk.up_to <= up_to || !chunk.is_sound() {
            return Ok(ChunksEnd { up_to, is_sound: false });
        }
        for row in chunk.keys.as_chunks::<ROW_BYTES>().0 {
            // Both always exist, because the row is as long as the two together.
            if let (Some(key), Some(id)) = (row.first_chunk(), row.last_chunk()) {
                each(KeyPart(*key), i64::from_be_bytes(*id));
            }
        }
        up_to = chunk.up_to;
    }
}

/// A chunk as it is stored in the table.
struct Chunk {
    after: i64,
    up_to: i64,
    checksum: Vec<u8>,
    keys: Vec<u8>,
}

impl Chunk {
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            after: row.get(0)?,
            up_to: row.get(1)?,
            checksum: row.get(2)?,
            keys: row.get(3)?,
        })
    }

    fn is_sound(&self) -> bool {
        checksum((self.after, self.up_to), &self.keys) == *self.checksum
    }
}

/// Returns `true` if a record exists in the rows between two chunks. If no record exists there, the missing chunks held
/// rows that are gone.
pub(super) fn has_rows(db: &Connection, (after, up_to): (i64, i64)) -> rusqlite::Result<bool> {
    // After a purge the oldest chunk begins at `purged_to`, and the page of the oldest record need not be readable.
    let sql = "SELECT CASE WHEN ?2 > purged_to THEN EXISTS (SELECT 1 FROM idempotency \
               WHERE id > max(?1, purged_to) AND id <= ?2) ELSE FALSE END FROM last_record";
    db.prepare_cached(sql)?.query_row([after, up_to], |row| row.get(0))
}

/// Returns the checksum of a chunk. It includes the chunk's place, so that a chunk in the wrong place fails the check.
pub(super) fn checksum((after, up_to): (i64, i64), keys: &[u8]) -> [u8; 8] {
    let hash = Sha256::new().chain_update(after.to_be_bytes()).chain_update(up_to.to_be_bytes());
    let hash: [u8; 32] = hash.chain_update(keys).finalize().into();
    // 64 bits are enough to find accidental errors.
    hash.first_chunk().copied().unwrap_or_default()
}

/// Rewrites all chunks from the records.
pub(super) fn rebuild(db: &Connection) -> rusqlite::Result<()> {
    recreate(db, "key_chunks")?;
    write(db)
}

/// Puts an empty table in the place of a damaged one. The damaged one stays under another name: to delete it would free
/// the pages that it names, which may be those of another table, and `SQLite` cannot delete a page that it cannot read.
pub(super) fn recreate(db: &Connection, table: &str) -> rusqlite::Result<()> {
    let found = "SELECT sql, rootpage FROM sqlite_schema WHERE name = ?1";
    let (definition, page): (String, i64) =
        db.query_row(found, [table], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let set_aside = format!("{SET_ASIDE_PREFIX}{table}_{page}");
    db.execute_batch(&format!("ALTER TABLE {table} RENAME TO {set_aside}; {definition}"))
}

/// Writes chunks of all rows that are in no chunk yet.
pub(super) fn write(db: &Connection) -> rusqlite::Result<()> {
    let mut after = last_chunked_row(db)?;
    loop {
        let (mut up_to, mut keys) = (after, Vec::new());
        rows_after((db, after), ROWS_PER_CHUNK, |key, id| {
            up_to = id;
            keys.extend(key.0.into_iter().chain(id.to_be_bytes()));
        })?;
        if keys.is_empty() {
            return Ok(());
        }
        let mut insert = db.prepare_cached(
            "INSERT INTO key_chunks (up_to, after, checksum, keys) VALUES (?1, ?2, ?3, ?4)",
        )?;
        insert.execute(params![up_to, after, checksum((after, up_to), &keys), keys])?;
        after = up_to;
    }
}

/// Passes the rows after `after` to `each`, including rows of ended generations, because these rows do not come back,
/// and knowing them is harmless. Fails at a misplaced page, whose place has rows that would be missed.
fn rows_after(
    (db, after): (&Connection, i64),
    max: i64,
    mut each: impl FnMut(KeyPart, i64),
) -> rusqlite::Result<()> {
    let mut find = db.prepare_cached(
        "SELECT substr(key, 1, 5), id FROM idempotency WHERE id > ?1 ORDER BY id LIMIT ?2",
    )?;
    let mut rows = find.query([after, max])?;
    let mut last = after;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(1)?;
        if id <= last {
            return Err(record_order::misplaced(last));
        }
        last = id;
        each(KeyPart(row.get(0)?), id);
    }
    Ok(())
}
