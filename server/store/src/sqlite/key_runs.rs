//! The oldest keys of idempotency records, moved to the disk once there are too many for memory.
//!
//! A run holds the sorted keys of a million consecutive records, so that writing it fills one page after another; an
//! index would dirty a page for each key. Look-ups use a run once its end is committed; until then its keys are in
//! memory too. Runs are never merged: there is one for each million records, and it is deleted as a whole when its
//! records are gone.
//!
//! A key that is missing here could be used for a second order. So each run has a checksum, and starts where the
//! previous run ends. A start that finds a run damaged or gone uses none of them, and reads all keys into memory from
//! the chunks.

use rusqlite::{Connection, params};

use super::{Mode, Store, StoreError, error::is_row_error, key_chunks, key_map::KeyPart};

/// Maximum number of keys in memory (230 MB), apart from the keys that are added before the next purge.
pub(super) const MAX_KEYS: usize = 8_000_000;
/// Number of chunks of a run.
const CHUNKS_PER_RUN: i64 = 1_000_000 / key_chunks::ROWS_PER_CHUNK;
/// Number of keys in one write, which delays a waiting order by about a millisecond.
const KEYS_PER_WRITE: usize = 500;

/// A run that is to be written: the keys of the rows after `after`, up to `up_to`, sorted.
struct Run {
    after: i64,
    up_to: i64,
    checksum: [u8; 8],
    keys: Vec<(KeyPart, i64)>,
}

impl Store {
    /// Moves the oldest keys to the disk until at most `max` are in memory.
    pub(super) async fn spill_keys(&self, max: usize) -> Result<(), StoreError> {
        let Mode::File { .. } = &self.0.mode else { return Ok(()) };
        while self.0.keys.len() > max {
            let store = self.clone();
            let Ok(run) = tokio::task::spawn_blocking(move || store.next_run()).await else {
                break;
            };
            let run = run?;
            if run.keys.is_empty() {
                // These rows are in no chunk yet: the next order's chunk includes them.
                break;
            }
            let up_to = run.up_to;
            self.write_run(run).await?;
            self.0.keys.add_run(up_to);
        }
        Ok(())
    }

    /// Returns the run that follows the last one.
    fn next_run(&self) -> Result<Run, StoreError> {
        // Not read from the file, whose runs may be damaged and then are not used.
        let (after, mut keys) = (self.0.keys.last_run(), Vec::new());
        let end = self.read(|db| {
            key_chunks::chunks_after((db, after), CHUNKS_PER_RUN, &mut |key, id| {
                keys.push((key, id));
            })
        })?;
        keys.sort_unstable();
        keys.dedup();
        let checksum = checksum((after, end.up_to), &keys);
        Ok(Run { after, up_to: end.up_to, checksum, keys })
    }

    async fn write_run(&self, run: Run) -> Result<(), StoreError> {
        let Run { after, up_to, checksum, keys } = run;
        // An earlier attempt may have written other keys, since it saw rows that are gone.
        self.in_pages(move |db, max| delete_unfinished(db, up_to, max)).await?;
        let mut left = keys.into_iter();
        while left.len() > 0 {
            let next: Vec<_> = left.by_ref().take(KEYS_PER_WRITE).collect();
            self.page(move |db, _| write(db, up_to, &next)).await?;
        }
        self.page(move |db, _| finish(db, (after, up_to), checksum)).await
    }
}

/// Deletes up to `max` keys of a run.
fn delete_unfinished(db: &Connection, up_to: i64, max: i64) -> rusqlite::Result<usize> {
    let mut delete = db.prepare_cached(
        "DELETE FROM run_keys WHERE (run, key, id) IN \
         (SELECT run, key, id FROM run_keys WHERE run = ?1 LIMIT ?2)",
    )?;
    delete.execute([up_to, max])
}

/// Writes some of a run's keys.
fn write(db: &Connection, up_to: i64, keys: &[(KeyPart, i64)]) -> rusqlite::Result<()> {
    let mut insert = db.prepare_cached(
        "INSERT INTO run_keys (run, key, id) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
    )?;
    for (key, id) in keys {
        insert.execute(params![up_to, key.0, id])?;
    }
    Ok(())
}

/// Marks a run as complete. It replaces the row of a damaged run that could not be mended.
fn finish(db: &Connection, (after, up_to): (i64, i64), checksum: [u8; 8]) -> rusqlite::Result<()> {
    let mut insert = db.prepare_cached(
        "INSERT OR REPLACE INTO key_runs (up_to, after, checksum) VALUES (?1, ?2, ?3)",
    )?;
    insert.execute(params![up_to, after, checksum]).map(drop)
}

/// Returns the checksum of a run, which includes its place.
fn checksum(place: (i64, i64), keys: &[(KeyPart, i64)]) -> [u8; 8] {
    let bytes = keys.iter().flat_map(|(key, id)| key.0.into_iter().chain(id.to_be_bytes()));
    key_chunks::checksum(place, &bytes.collect::<Vec<u8>>())
}

/// Returns `true` if all complete runs have the keys that were written, and no run between them is gone. Reads all of
/// them, a few tenths of a second for a million keys.
pub(super) fn are_sound(db: &Connection) -> rusqlite::Result<bool> {
    match verify(db) {
        // This includes a page of another table in the place of a page of runs.
        Err(error) if is_row_error(&error) => Ok(false),
        verified => verified,
    }
}

fn verify(db: &Connection) -> rusqlite::Result<bool> {
    let mut find =
        db.prepare_cached("SELECT after, up_to, checksum FROM key_runs ORDER BY up_to")?;
    let (mut runs, mut end) = (find.query([])?, 0);
    while let Some(run) = runs.next()? {
        let (after, up_to, expected): (i64, i64, Vec<u8>) = (run.get(0)?, run.get(1)?, run.get(2)?);
        let is_next = after <= end || !key_chunks::has_rows(db, (end, after))?;
        if !is_next || checksum((after, up_to), &read(db, up_to)?) != *expected {
            return Ok(false);
        }
        end = up_to;
    }
    Ok(true)
}

/// Returns the keys of a run, sorted.
fn read(db: &Connection, up_to: i64) -> rusqlite::Result<Vec<(KeyPart, i64)>> {
    let mut find =
        db.prepare_cached("SELECT key, id FROM run_keys WHERE run = ?1 ORDER BY key, id")?;
    find.query_map([up_to], |row| Ok((KeyPart(row.get(0)?), row.get(1)?)))?.collect()
}

/// Puts empty tables in the place of damaged ones. The next purge writes the runs again.
pub(super) fn clear(db: &Connection) -> rusqlite::Result<()> {
    key_chunks::recreate(db, "key_runs")?;
    key_chunks::recreate(db, "run_keys")
}

/// Returns the last rows of the complete runs, oldest first.
pub(super) fn finished(db: &Connection) -> rusqlite::Result<Vec<i64>> {
    let mut find = db.prepare_cached("SELECT up_to FROM key_runs ORDER BY up_to")?;
    find.query_map([], |row| row.get(0))?.collect()
}

/// Returns the rows of these runs that may hold the key, newest first.
pub(super) fn rows(db: &Connection, runs: &[i64], key: KeyPart) -> rusqlite::Result<Vec<i64>> {
    let mut all = Vec::new();
    for run in runs.iter().rev() {
        let mut find = db.prepare_cached(
            "SELECT id FROM run_keys WHERE run = ?1 AND key = ?2 ORDER BY id DESC",
        )?;
        for id in find.query_map(params![run, key.0], |row| row.get(0))? {
            all.push(id?);
        }
    }
    Ok(all)
}
