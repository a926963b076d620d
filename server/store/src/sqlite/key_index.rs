//! An in-memory index from idempotency keys to the rows of their records. An index in the database would dirty a random
//! page for each order.
//!
//! The table is authoritative. Four rules keep this index consistent with it:
//!
//! - *Every row is known before it is committed.* So "no row" is always right, and costs no statement. Rows that were
//!   rolled back or deleted stay known, because a known row counts only once it is found in the table with the whole
//!   key. So nothing needs to be undone, and readers see a key from its commit on.
//! - *No id is reused*, so a cached id never points at another key's row. `last_record` remembers the highest deleted
//!   id.
//! - *Other processes may write too.* When `PRAGMA data_version` changes, the writer reads the rows above `known_to`
//!   again, inside its transaction, before it decides anything. The first time these are all rows, which fills the
//!   index.
//! - *Deletions are applied late*, in bulk: everything below the oldest remaining row is removed. Rows expire in the
//!   order of their ids, so only the rows of a reset wait for that, at most a day.
//!
//! A known row that is missing was rolled back or deleted, or its page is damaged: `record_order` tells which.

use std::sync::{
    Mutex, MutexGuard, PoisonError, RwLock,
    atomic::{AtomicBool, Ordering},
};

use parcelo_domain::RecordKey;
use rusqlite::{Connection, TransactionBehavior};

use super::{
    Mode, Store, StoreError,
    error::{is_corrupt, is_row_error},
    key_chunks,
    key_map::{KeyMap, KeyPart},
    key_runs, record_order,
};

/// The in-memory index of idempotency keys (see the module documentation).
pub(super) struct KeyIndex {
    map: KeyMap,
    /// The last rows of the runs on the disk, oldest first; nearly always empty.
    runs: RwLock<Vec<i64>>,
    is_filled: AtomicBool,
    progress: Mutex<Progress>,
}

/// The writer's knowledge of the table; one thread writes at a time.
#[derive(Default)]
struct Progress {
    /// `PRAGMA data_version` when the rows were last read.
    data_version: Option<i64>,
    /// The id up to which all rows are in the index, and no more can be added. Rows added after it may have been
    /// rolled back, and another process may use their ids.
    known_to: i64,
    /// The id of the last row that was added, rolled back or not.
    last: i64,
    /// The end of the last chunk, which may have been rolled back.
    chunked_to: i64,
}

/// The parts of the keys in a file that are damaged, and were not used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Damage {
    chunks: bool,
    runs: bool,
}

impl KeyIndex {
    pub(super) fn new() -> Self {
        let (map, runs) = (KeyMap::new(), RwLock::default());
        Self { map, runs, is_filled: AtomicBool::new(false), progress: Mutex::default() }
    }

    /// Builds the index of a server's file, from the chunks of keys and from the records that no chunk contains yet.
    pub(super) fn from_file(db: &mut Connection) -> rusqlite::Result<Self> {
        let keys = Self::new();
        let moment = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let damage = keys.catch_up(&moment)?;
        let written = if damage == Damage::default() {
            keys.write_chunks(&moment).and_then(|()| moment.commit())
        } else {
            // After a damaged page SQLite accepts no write before a rollback.
            moment.rollback()?;
            keys.mend(db, damage)
        };
        match written {
            // The server can do without the chunks and the runs: each start then reads the records.
            Err(error) if is_corrupt(&error) => {
                tracing::error!(%error, "the list of idempotency keys cannot be mended: restore the file from a backup");
            }
            written => written?,
        }
        // Purges begin at the oldest record. Verified outside the transaction, which this error would end.
        match record_order::verify(db, 0) {
            Err(error) if is_row_error(&error) => {
                tracing::error!(%error, "the page of the oldest idempotency records is damaged: its keys cannot be \
                    replayed, and no key is forgotten; check the disk, and restore a backup");
            }
            verified => verified?,
        }
        Ok(keys)
    }

    /// Writes the damaged parts again.
    fn mend(&self, db: &mut Connection, damage: Damage) -> rusqlite::Result<()> {
        let moment = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if damage.runs {
            key_runs::clear(&moment)?;
        }
        if damage.chunks {
            key_chunks::rebuild(&moment)?;
        }
        self.progress().chunked_to = key_chunks::last_chunked_row(&moment)?;
        moment.commit()
    }

    /// Returns `true` once it is filled, after which [`KeyIndex::is_absent`] may be called.
    pub(super) fn is_filled(&self) -> bool {
        self.is_filled.load(Ordering::Acquire)
    }

    /// Returns `true` if no row that this process knows holds the key. [`KeyIndex::catch_up`] reads the other rows.
    pub(super) fn is_absent(&self, key: &RecordKey) -> bool {
        // In this order, because rows are added to the runs before they leave the map.
        !self.map.contains(KeyPart::from(key)) && self.last_run() == 0
    }

    /// Returns the rows that may hold the key, newest first.
    pub(super) fn rows(&self, db: &Connection, key: KeyPart) -> rusqlite::Result<Vec<i64>> {
        let mut rows = self.map.rows(key);
        let runs = self.runs.read().unwrap_or_else(PoisonError::into_inner);
        if !runs.is_empty() {
            rows.extend(key_runs::rows(db, &runs, key)?);
        }
        Ok(rows)
    }

    /// Reads the rows that other processes have written since the last call, or all rows the first time. Returns the
    /// damage that it has met. A writer calls this in its transaction, because no other process can write from then on.
    pub(super) fn catch_up(&self, db: &Connection) -> rusqlite::Result<Damage> {
        let mut progress = self.progress();
        // Read before the rows, so that a row written between the two reads is read twice, not missed.
        let mut version = db.prepare_cached("PRAGMA data_version")?;
        let version = Some(version.query_row([], |row| row.get(0))?);
        if progress.data_version == version {
            return Ok(Damage::default());
        }
        // Later, the only new runs are those that the running server has written since.
        let are_runs_sound = progress.data_version.is_some() || key_runs::are_sound(db)?;
        let runs = if are_runs_sound {
            key_runs::finished(db)?
        } else {
            tracing::error!(
                "the idempotency keys on the disk are damaged: all are read into memory"
            );
            Vec::new()
        };
        let mut known_to = progress.known_to.max(runs.last().copied().unwrap_or(0));
        self.set_runs(|known| *known = runs);
        let end = key_chunks::read(db, known_to, |key, id| {
            self.map.insert(key, id);
            known_to = id;
        })?;
        let last = last_id(db)?;
        if last < known_to {
            // The page of the newest records is misplaced or old: an id would be used again.
            return Err(record_order::misplaced(known_to));
        }
        progress.known_to = known_to;
        progress.chunked_to = key_chunks::last_chunked_row(db)?;
        progress.last = progress.last.max(last);
        progress.data_version = version;
        self.is_filled.store(true, Ordering::Release);
        Ok(Damage { chunks: !end.is_sound, runs: !are_runs_sound })
    }

    /// Issues the id of a new row for this key, and makes the row known.
    pub(super) fn add(&self, key: &RecordKey) -> i64 {
        let mut progress = self.progress();
        progress.last += 1;
        self.map.insert(KeyPart::from(key), progress.last);
        progress.last
    }

    /// Writes another chunk when enough rows have been added since the last chunk.
    pub(super) fn write_chunks(&self, db: &Connection) -> rusqlite::Result<()> {
        let mut progress = self.progress();
        if progress.last - progress.chunked_to >= key_chunks::ROWS_PER_CHUNK {
            // Set first, so that a chunk that cannot be written fails one order in 256, not every later order.
            progress.chunked_to = progress.last;
            key_chunks::write(db)?;
        }
        Ok(())
    }

    /// Returns the id that was added last.
    pub(super) fn last_added(&self) -> i64 {
        self.progress().last
    }

    /// Returns the highest id of a row that is known to be committed.
    pub(super) fn last_committed(&self) -> i64 {
        self.progress().known_to
    }

    /// Records that this row is committed.
    pub(super) fn mark_committed(&self, id: i64) {
        let mut progress = self.progress();
        progress.known_to = progress.known_to.max(id);
    }

    /// Forgets all keys, because another database is about to replace this one. They are read again later.
    pub(super) fn clear(&self) {
        let mut progress = self.progress();
        self.is_filled.store(false, Ordering::Release);
        *progress = Progress::default();
        self.map.clear();
        self.set_runs(Vec::clear);
    }

    /// Returns the last row that is in a run, or 0 if there is no run.
    pub(super) fn last_run(&self) -> i64 {
        let runs = self.runs.read().unwrap_or_else(PoisonError::into_inner);
        runs.last().copied().unwrap_or(0)
    }

    /// Records that another run is on the disk, with all rows up to `up_to`.
    pub(super) fn add_run(&self, up_to: i64) {
        self.set_runs(|known| known.push(up_to));
        self.map.remove_before(up_to + 1);
    }

    fn remove_before(&self, oldest: i64) {
        self.map.remove_before(oldest);
        self.set_runs(|runs| runs.retain(|up_to| *up_to >= oldest));
    }

    fn set_runs(&self, set: impl FnOnce(&mut Vec<i64>)) {
        set(&mut self.runs.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns the number of rows in memory.
    pub(super) fn len(&self) -> usize {
        self.map.len()
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    /// Forgets the keys of rows that are gone.
    pub(crate) async fn forget_deleted_keys(&self) -> Result<(), StoreError> {
        self.page(|db, _| mark_purged(db)).await?;
        let tables = [
            ("key_chunks", "up_to", "up_to"),
            ("key_runs", "up_to", "up_to"),
            ("run_keys", "run", "run, key, id"),
        ];
        for table in tables {
            self.in_pages(move |db, max| delete_obsolete(db, table, max)).await?;
        }
        let store = self.clone();
        let forget = move || {
            // Done within the read, so that in memory no other database can replace this one in between.
            store.read(|db| {
                store.0.keys.remove_before(purged_to(db)? + 1);
                Ok(())
            })
        };
        match &self.0.mode {
            // With millions of keys this takes a tenth of a second.
            Mode::File { .. } => tokio::task::spawn_blocking(forget).await.unwrap_or(Ok(())),
            Mode::Inline(_) => forget(),
        }
    }
}

/// Returns the highest id that a row ever had.
pub(super) fn last_id(db: &Connection) -> rusqlite::Result<i64> {
    let sql = "SELECT max(id, coalesce((SELECT max(id) FROM idempotency), 0)) FROM last_record";
    db.prepare_cached(sql)?.query_row([], |row| row.get(0))
}

/// Returns the id up to which all rows are gone, as far as a purge or a reset has noted it.
fn purged_to(db: &Connection) -> rusqlite::Result<i64> {
    db.prepare_cached("SELECT purged_to FROM last_record")?.query_row([], |row| row.get(0))
}

/// Notes that all rows before the oldest one are gone.
fn mark_purged(db: &Connection) -> rusqlite::Result<()> {
    // With a misplaced page at the beginning, keys of older rows would be forgotten.
    record_order::verify(db, 0)?;
    let sql = "UPDATE last_record \
               SET purged_to = coalesce((SELECT min(id) FROM idempotency) - 1, id)";
    db.prepare_cached(sql)?.execute([]).map(drop)
}

/// Deletes up to `max` rows from a table of keys whose records are all gone. `row` is the column with the last record
/// that a row of the table covers, and `key` is the table's primary key. Runs that were never finished are deleted too.
fn delete_obsolete(
    db: &Connection,
    (table, row, key): (&str, &str, &str),
    max: i64,
) -> rusqlite::Result<usize> {
    let sql = format!(
        "DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} \
         WHERE {row} <= (SELECT purged_to FROM last_record) ORDER BY {key} LIMIT ?1)"
    );
    db.prepare_cached(&sql)?.execute([max])
}
