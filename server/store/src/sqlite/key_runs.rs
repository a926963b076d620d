//! The oldest keys of idempotency records, moved to the disk once there are too many for memory.
//!
//! A run holds the sorted keys of a million consecutive records, so that writing it fills one page after another; an
//! index would dirty a page for each key. Look-ups use a run once its end is committed; until then its keys are in
//! memory too. Runs are never merged: there is one for each million records, and it is deleted as a whole when its
//! records are gone.

use rusqlite::{Connection, params};

use super::{Mode, Store, StoreError, key_chunks, key_map::KeyPart};

/// Maximum number of keys in memory (230 MB), apart from the keys that are added before the next purge.
pub(super) const MAX_KEYS: usize = 8_000_000;
/// Number of chunks of a run.
const CHUNKS_PER_RUN: i64 = 1_000_000 / key_chunks::ROWS_PER_CHUNK;
/// Number of keys in one write, which delays a waiting order by about a millisecond.
const KEYS_PER_WRITE: usize = 500;

impl Store {
    /// Moves the oldest keys to the disk until at most `max` are in memory.
    pub(super) async fn spill_keys(&self, max: usize) -> Result<(), StoreError> {
        let Mode::File { .. } = &self.0.mode else { return Ok(()) };
        while self.0.keys.len() > max {
            let store = self.clone();
            let Ok(run) = tokio::task::spawn_blocking(move || store.next_run()).await else {
                break;
            };
            let (up_to, keys) = run?;
            if keys.is_empty() {
                // These rows are in no chunk yet: the next order's chunk includes them.
                break;
            }
            self.write_run(up_to, keys).await?;
            // Another process may have finished a run too.
            self.0.keys.set_spilled_runs(self.read(finished)?);
        }
        Ok(())
    }

    /// Returns the keys that follow the last run, sorted, and the last row among them.
    fn next_run(&self) -> Result<(i64, Vec<(KeyPart, i64)>), StoreError> {
        let mut keys = Vec::new();
        let end = self.read(|db| {
            let after = finished(db)?.last().copied().unwrap_or(0);
            key_chunks::chunks_after((db, after), CHUNKS_PER_RUN, &mut |key, id| {
                keys.push((key, id));
            })
        })?;
        keys.sort_unstable();
        Ok((end.up_to, keys))
    }

    async fn write_run(&self, up_to: i64, keys: Vec<(KeyPart, i64)>) -> Result<(), StoreError> {
        let mut left = keys.into_iter();
        while left.len() > 0 {
            let next: Vec<_> = left.by_ref().take(KEYS_PER_WRITE).collect();
            self.page(move |db, _| write(db, up_to, &next)).await?;
        }
        self.page(move |db, _| finish(db, up_to)).await
    }
}

/// Writes some of a run's keys. An earlier attempt may have written them.
fn write(db: &Connection, up_to: i64, keys: &[(KeyPart, i64)]) -> rusqlite::Result<()> {
    let mut insert = db.prepare_cached(
        "INSERT INTO run_keys (run, key, id) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
    )?;
    for (key, id) in keys {
        insert.execute(params![up_to, key.0, id])?;
    }
    Ok(())
}

fn finish(db: &Connection, up_to: i64) -> rusqlite::Result<()> {
    let mut insert =
        db.prepare_cached("INSERT INTO key_runs (up_to) VALUES (?1) ON CONFLICT DO NOTHING")?;
    insert.execute([up_to]).map(drop)
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
