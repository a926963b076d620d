//! The `SQLite` engine: one database, in a file or in memory.
//!
//! It writes the domain's decisions ([`Changes`]) entirely or not at all, and answers point reads. It decides only what
//! the database alone can know: whether a key, a version or a number is taken. A file has one writer thread with group
//! commit, and separate connections that read. A database in memory is one connection, used inline, with no thread and
//! no timer.

#![expect(clippy::unused_async, reason = "SQLite answers at once; another engine is waited for")]

mod apply;
#[cfg(feature = "backup")]
mod backup;
mod checkpoints;
mod connection;
mod copy;
mod counts;
pub(super) mod error;
mod file_lock;
mod group;
mod health;
mod identity;
mod key_chunks;
mod key_index;
mod key_map;
mod key_runs;
mod migrations;
mod newest_record;
mod outbox;
mod pages;
mod pending;
mod readers;
mod record_order;
mod records;
#[cfg(feature = "backup")]
mod restore;
mod scans;
mod single_server;
#[cfg(feature = "postgres")]
pub(super) mod transfer;
mod vacuum;
mod verify;
mod writer;

#[cfg(test)]
pub(super) mod tests;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parcelo_domain::Changes;
use rusqlite::Connection;
use tokio::sync::oneshot;

pub(crate) use self::vacuum::VacuumJob;
#[cfg(feature = "backup")]
pub use self::{
    backup::backup,
    restore::{RestoreReport, restore},
};
use self::{
    checkpoints::Checkpoints,
    file_lock::Files,
    group::{Mutation, PlainWrite, QueuedWrite},
    health::{Health, Probe},
    identity::IfEmpty,
    key_index::KeyIndex,
    newest_record::NewestRecord,
    readers::Readers,
    scans::new_turns,
    writer::Writer,
};
pub use self::{
    error::StoreError,
    health::ReadOnlyReason,
    vacuum::VacuumReport,
    verify::{FileReport, verify},
};
pub(crate) use super::CommitOutcome;
use crate::{WRITE_TIMEOUT, process_state::ProcessState, turns::Turns, write_error::WriteError};

/// The database. Clones are the same database.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    file: PathBuf,
    state: ProcessState,
    health: Arc<Health>,
    /// `true` if the write-ahead log may still hold erased data.
    log_holds_erased: AtomicBool,
    login_throttle: Mutex<parcelo_domain::login_throttle::LoginThrottle>,
    keys: Arc<KeyIndex>,
    mode: Mode,
}

enum Mode {
    /// A server's file.
    File { writer: Writer, readers: Readers, scans: Turns, probe: Probe },
    /// A database in memory, or a file that a command opens while a server may use it.
    Inline(Mutex<Connection>),
}

impl Store {
    /// Opens a server's database file, and creates it if it does not exist. `fresh_secret` becomes the database's
    /// secret if the database has none yet.
    pub fn open(path: &Path, fresh_secret: [u8; 32]) -> Result<Self, StoreError> {
        // The descriptor of the lock is opened before SQLite's, and is never closed.
        let lock = file_lock::lock(path)?;
        newest_record::verify_newest(path)?;
        let (mut db, secret) = connection::open_writer(path, IfEmpty::Create, fresh_secret)?;
        let failed = |error| StoreError::open(path, error);
        let health = Arc::new(Health::for_files(Files::of_database(path).map_err(failed)?));
        let probe = Probe::open(path)?;
        let checkpoints = Checkpoints::start(&mut db, (path, &lock), &health, checkpoints::LIMITS)?;
        // Done before anything is served, because a keyed write may be decided only when all keys are known.
        let keys =
            KeyIndex::from_file(&mut db).map_err(|error| StoreError::unknown_keys(path, error))?;
        let keys = Arc::new(keys);
        let newest = NewestRecord::new(lock, Arc::clone(&keys));
        let writer = Writer::start(db, newest, checkpoints, Arc::clone(&health)).map_err(failed)?;
        let (readers, scans) = (Readers::new(path.to_owned()), new_turns());
        let mode = Mode::File { writer, readers, scans, probe };
        Ok(Self::from_parts((path, secret), health, keys, mode))
    }

    /// Opens a database file for a command that runs while a server may use the file. A write waits up to 5 s for its
    /// turn, and blocks its thread. A missing file is created. An existing empty file is refused, because the caller
    /// expects data in it.
    pub fn open_for_admin(path: &Path, fresh_secret: [u8; 32]) -> Result<Self, StoreError> {
        let if_empty = if path.exists() { IfEmpty::Refuse } else { IfEmpty::Create };
        newest_record::verify_newest(path)?;
        // A server of an older version relies on an index that the upgrade removes: it refuses a second order under one
        // key. So no server may run during the upgrade, or start while the lock is held.
        let _lock = connection::is_older(path).then(|| file_lock::lock(path)).transpose().map_err(
            |error| match error {
                StoreError::InUse { file } => StoreError::UpgradeInUse { file },
                other => other,
            },
        )?;
        let (db, secret) = connection::open_writer(path, if_empty, fresh_secret)?;
        Ok(Self::inline(db, path, secret))
    }

    /// Creates a database in memory, which is dropped with the last clone of the store.
    pub fn memory(fresh_secret: [u8; 32]) -> Result<Self, StoreError> {
        let name = Path::new(":memory:");
        let db = connection::memory_with_schema()
            .map_err(|error| StoreError::from_sqlite(name, error))?;
        Self::prepared(db, name, fresh_secret)
    }

    fn prepared(mut db: Connection, file: &Path, secret: [u8; 32]) -> Result<Self, StoreError> {
        let secret = connection::prepare(&mut db, file, secret)?;
        Ok(Self::inline(db, file, secret))
    }

    fn inline(db: Connection, file: &Path, secret: [u8; 32]) -> Self {
        let mode = Mode::Inline(Mutex::new(db));
        // The first caller that needs the keys reads them; a command seldom needs them.
        Self::from_parts((file, secret), Arc::default(), Arc::new(KeyIndex::new()), mode)
    }

    fn from_parts(
        (file, secret): (&Path, [u8; 32]),
        health: Arc<Health>,
        keys: Arc<KeyIndex>,
        mode: Mode,
    ) -> Self {
        // An earlier server may have ended before it could truncate its log.
        let log_holds_erased = AtomicBool::new(true);
        let file = file.to_owned();
        Self(Arc::new(Inner {
            file,
            state: ProcessState::new(secret),
            health,
            log_holds_erased,
            login_throttle: Mutex::default(),
            keys,
            mode,
        }))
    }

    pub(super) fn state(&self) -> &ProcessState {
        &self.0.state
    }

    /// Returns `true` if the database is in memory, or a file that a command has opened.
    pub(super) fn is_inline(&self) -> bool {
        matches!(self.0.mode, Mode::Inline(_))
    }

    /// Commits all changes or none, and returns the stored body of the idempotency record. Once this future is polled,
    /// the commit completes, even if the future is dropped.
    pub async fn commit_idempotent(&self, changes: Changes) -> Result<Vec<u8>, CommitOutcome> {
        let (keys, wake) = (Arc::clone(&self.0.keys), Arc::clone(&self.0.state.wake));
        let (queued_write, answer) = Mutation::new(changes, keys, wake);
        self.send(queued_write, answer, Some(WRITE_TIMEOUT))
            .await
            .unwrap_or_else(|write_error| Err(write_error.into()))
    }

    /// Flushes queued writes and releases the file. Other clones can still read.
    pub async fn close(self) {
        let stop = move || match &self.0.mode {
            Mode::File { writer, .. } => writer.stop(),
            Mode::Inline(_) => {}
        };
        // Stopping waits for the writer's thread, and must not block a thread of the runtime.
        let _panicked = tokio::task::spawn_blocking(stop).await;
    }

    /// Returns the size of the write-ahead log in bytes. A missing log counts as 0.
    pub(super) fn log_size(&self) -> u64 {
        vacuum::log_size(&self.0.file)
    }

    pub(super) async fn writer_answers(&self) -> bool {
        match &self.0.mode {
            Mode::File { writer, .. } => writer.answers().await,
            Mode::Inline(_) => true,
        }
    }

    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.0.state.reads.fetch_add(1, Ordering::Relaxed);
        let answer = match &self.0.mode {
            Mode::File { readers, .. } => readers.read(read),
            Mode::Inline(db) => read(&db.lock().unwrap_or_else(PoisonError::into_inner)),
        };
        answer.map_err(|error| self.read_error(error))
    }

    /// Returns the name of the database for errors.
    pub(super) fn name(&self) -> String {
        self.0.file.display().to_string()
    }

    /// Converts the error for the caller. If a parcel cannot be read, counts that.
    pub(super) fn read_error(&self, error: rusqlite::Error) -> StoreError {
        if let Some(table) = error::unreadable_table(&error) {
            self.0.health.count_unreadable(table);
        }
        StoreError::from_sqlite(&self.0.file, error)
    }

    pub(super) async fn call<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        self.call_within(Some(WRITE_TIMEOUT), run).await
    }

    /// Calls like [`Store::call`], with another timeout. `None` waits for the outcome, however long it takes.
    pub(super) async fn call_within<T, F>(
        &self,
        timeout: Option<Duration>,
        run: F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let (queued_write, answer) = PlainWrite::new(run);
        let write_error = |reason: WriteError| reason.into_store_error(self.name());
        let result = self
            .send(queued_write, answer, timeout)
            .await
            .map_err(write_error)?
            .map_err(write_error)?;
        result.map_err(|error| StoreError::from_sqlite(&self.0.file, error))
    }

    async fn send<T>(
        &self,
        queued_write: Box<dyn QueuedWrite>,
        mut answer: oneshot::Receiver<T>,
        timeout: Option<Duration>,
    ) -> Result<T, WriteError> {
        match &self.0.mode {
            Mode::File { writer, .. } => {
                // Counted first, because the thread may answer the write before `push` returns.
                self.0.health.count_queued();
                writer
                    .push(queued_write)
                    .inspect_err(|_| self.0.health.count_answered(1, Duration::ZERO))?;
                let answered = match timeout {
                    Some(limit) => tokio::time::timeout(limit, answer).await,
                    None => Ok(answer.await),
                };
                answered.map_err(|_elapsed| WriteError::Busy)?.map_err(|_ended| WriteError::Broken)
            }
            Mode::Inline(db) => {
                let db = db.lock().unwrap_or_else(PoisonError::into_inner);
                group::commit(&db, &self.0.health, vec![queued_write]);
                // The answer is already there, so it is not awaited: Tokio makes a task that awaits very often yield
                // now and then, and a database in memory must answer at once, even without a runtime.
                answer.try_recv().map_err(|_unanswered| WriteError::Broken)
            }
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("file", &self.0.file).finish_non_exhaustive()
    }
}
