//! A journal in a table of `SQLite`. `kill_points` passes it, in this package's tests.
use parcelo::journal::{Entry, Journal, JournalError};
use rusqlite::{Connection, OptionalExtension, params};
use std::{
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// One process at a time has it open, and a commit is on the disk when it returns.
const SETUP: &str = "
    PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS shipments (
        order_id TEXT PRIMARY KEY, entry TEXT NOT NULL, is_open INTEGER NOT NULL
    ) STRICT;";

pub(crate) struct SqliteJournal(Mutex<Connection>);

impl SqliteJournal {
    pub(crate) fn open(path: &Path) -> rusqlite::Result<Self> {
        let db = Connection::open(path)?;
        db.execute_batch(SETUP)?;
        Ok(Self(Mutex::new(db)))
    }

    fn db(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal for SqliteJournal {
    async fn insert(&self, entry: &Entry) -> Result<Option<Entry>, JournalError> {
        let db = self.db();
        let insert = "INSERT INTO shipments VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
        let row = params![entry.order_id(), serde_json::to_string(entry)?, entry.is_open()];
        if db.execute(insert, row)? == 1 {
            return Ok(None);
        }
        let select = "SELECT entry FROM shipments WHERE order_id = ?1";
        let known = db.query_row(select, [entry.order_id()], |row| row.get::<_, String>(0));
        Ok(known.optional()?.map(|json| serde_json::from_str(&json)).transpose()?)
    }

    async fn update(&self, entry: &Entry) -> Result<(), JournalError> {
        let update = "UPDATE shipments SET entry = ?2, is_open = ?3 WHERE order_id = ?1";
        let row = params![entry.order_id(), serde_json::to_string(entry)?, entry.is_open()];
        self.db().execute(update, row)?;
        Ok(())
    }

    async fn open(&self) -> Result<Vec<Entry>, JournalError> {
        let db = self.db();
        let mut open = db.prepare("SELECT entry FROM shipments WHERE is_open ORDER BY rowid")?;
        let rows = open.query_map([], |row| row.get::<_, String>(0))?;
        rows.map(|json| Ok(serde_json::from_str(&json?)?)).collect()
    }
}
