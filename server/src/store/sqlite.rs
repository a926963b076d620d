//! The `SQLite` engine: one database, in a file or in memory.
//!
//! It keeps what the domain decided ([`Changes`]) whole or not at all, and answers point reads. It
//! decides nothing but what only the database can know: whether a key, a version or a number is
//! taken. A file has one writer thread with group commit and readers beside it; memory is one
//! connection, used inline, with no thread and no timer.

#![expect(clippy::unused_async, reason = "SQLite answers at once; another engine is waited for")]

mod alone;
mod apply;
#[cfg(feature = "server")]
mod backup;
mod carriers;
mod checkpoints;
mod connection;
mod copy;
mod counts;
mod deliveries;
mod endpoints;
mod erase;
pub(super) mod error;
mod group;
mod health;
mod hold;
mod identity;
mod key_chunks;
mod key_map;
mod key_runs;
mod leases;
mod living_keys;
mod mails;
mod manifests;
mod migrations;
mod outbox;
mod pages;
mod pause;
mod pending;
mod readers;
mod records;
mod resets;
mod scans;
mod set_back;
#[cfg(feature = "postgres")]
pub(super) mod transfer;
mod vacuum;
mod writer;

#[cfg(test)]
pub(super) mod tests;
#[cfg(test)]
pub(crate) use tests::{Damage, damage, held};
#[cfg(test)]
#[cfg(feature = "server")]
pub(crate) use tests::{damage_file, reads::hold_list};

use std::{
    collections::HashSet,
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use rusqlite::Connection;
use tokio::sync::{Notify, oneshot};

#[cfg(feature = "server")]
pub(crate) use self::backup::backup;
pub use self::pause::Pause;
use self::{
    checkpoints::Checkpoints,
    group::{Mutation, PlainWrite, PlainWriteOutcome, WriteJob},
    health::{Health, Probe},
    hold::Files,
    identity::IfEmpty,
    living_keys::LivingKeys,
    readers::Readers,
    scans::turns,
    writer::{NotDone, Writer},
};
pub(crate) use self::{
    error::StoreError,
    health::{Lost, Stats},
    vacuum::{ToVacuum, Vacuumed},
};
pub(crate) use super::CommitOutcome;
use crate::{domain::Changes, store::turns::Turns};

/// How long a caller waits for a write. A keyed request is answered `IDEMPOTENCY_IN_PROGRESS` then: the write may
/// still be done, and a repetition finds out.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// The database. Clones are the same database.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    file: PathBuf,
    secret: [u8; 32],
    health: Arc<Health>,
    /// Notified when an event was enqueued.
    wake: Arc<Notify>,
    /// Held by the one mass write that runs; tenants take turns.
    mass_writes: tokio::sync::Mutex<()>,
    resets: Mutex<resets::UnderWay>,
    /// Whether the write-ahead log may still hold what was erased.
    log_holds_erased: AtomicBool,
    /// How often credentials were written through this store.
    credential_writes: AtomicU64,
    reads: AtomicU64,
    /// Errors of unreadable rows that are already in the log.
    logged_unreadable: Mutex<HashSet<String>>,
    #[cfg(feature = "server")]
    login_throttle: Mutex<crate::domain::login_throttle::LoginThrottle>,
    keys: Arc<LivingKeys>,
    /// Whether changes write the e-mails down that they bring.
    sends_mails: AtomicBool,
    mode: Mode,
}

enum Mode {
    /// A server's file.
    File { writer: Writer, readers: Readers, scans: Turns, probe: Probe },
    /// Memory, or a file beside the server that serves it.
    Inline(Mutex<Connection>),
}

impl Store {
    /// Opens a server's database file, and makes it if it does not exist. `fresh_secret` becomes the
    /// database's secret if it has none yet.
    pub fn open(path: &Path, fresh_secret: [u8; 32]) -> Result<Self, StoreError> {
        // The hold's own descriptor comes before SQLite's, and is never closed.
        let hold = hold::hold(path)?;
        let (mut db, secret) = connection::writer(path, IfEmpty::Create, fresh_secret)?;
        let failed = |error| StoreError::open(path, error);
        let health = Arc::new(Health::for_files(Files::of_database(path).map_err(failed)?));
        let probe = Probe::open(path)?;
        let checkpoints = Checkpoints::start(&mut db, (path, &hold), &health, checkpoints::LIMITS)?;
        // Before anything is served: no write under a key is decided without knowing all of them.
        let keys =
            LivingKeys::from_file(&mut db).map_err(|error| StoreError::from_sqlite(path, error))?;
        let writer = Writer::start(db, hold, checkpoints, Arc::clone(&health)).map_err(failed)?;
        let (readers, scans) = (Readers::new(path.to_owned()), turns());
        let mode = Mode::File { writer, readers, scans, probe };
        Ok(Self::from_parts((path, secret), health, keys, mode))
    }

    /// Opens a database file for a command that works beside the server: it waits up to 5 s for
    /// its turn to write, blocking its thread. A missing file is created. An existing empty one is refused,
    /// because the caller expects data in it.
    pub fn open_for_admin(path: &Path, fresh_secret: [u8; 32]) -> Result<Self, StoreError> {
        let if_empty = if path.exists() { IfEmpty::Refuse } else { IfEmpty::Create };
        // A server of an older version relies on what an upgrade takes away: the index that refuses a second order
        // under one key. None starts while this is held, either.
        let _hold =
            connection::is_older(path).then(|| hold::hold(path)).transpose().map_err(|error| {
                match error {
                    StoreError::InUse { file } => StoreError::UpgradeInUse { file },
                    other => other,
                }
            })?;
        let (db, secret) = connection::writer(path, if_empty, fresh_secret)?;
        Ok(Self::inline(db, path, secret))
    }

    /// A database in memory, which ends with the last clone of the store.
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
        // Filled by the first that asks: a command beside the server seldom does.
        Self::from_parts((file, secret), Arc::default(), LivingKeys::new(), mode)
    }

    fn from_parts(
        (file, secret): (&Path, [u8; 32]),
        health: Arc<Health>,
        keys: LivingKeys,
        mode: Mode,
    ) -> Self {
        // A server before this one may have ended before it could truncate its log.
        let log_holds_erased = AtomicBool::new(true);
        let file = file.to_owned();
        Self(Arc::new(Inner {
            file,
            secret,
            health,
            wake: Arc::default(),
            mass_writes: tokio::sync::Mutex::default(),
            resets: Mutex::default(),
            log_holds_erased,
            sends_mails: AtomicBool::new(false),
            credential_writes: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            logged_unreadable: Mutex::default(),
            #[cfg(feature = "server")]
            login_throttle: Mutex::default(),
            keys: Arc::new(keys),
            mode,
        }))
    }

    /// The 32 bytes from which the database's keyed hashes and signatures derive.
    pub fn secret(&self) -> [u8; 32] {
        self.0.secret
    }

    /// Returns how often credentials were written through this store.
    pub(super) fn credential_writes(&self) -> u64 {
        self.0.credential_writes.load(Ordering::Acquire)
    }

    pub(super) fn count_credential_write(&self) {
        self.0.credential_writes.fetch_add(1, Ordering::Release);
    }

    /// Changes write the e-mails down that they bring, from here on.
    pub fn send_mails(&self) {
        self.0.sends_mails.store(true, Ordering::Relaxed);
    }

    /// Commits changes whole or not at all. Once polled they complete, whatever becomes of this
    /// future.
    pub async fn commit(&self, changes: Changes) -> CommitOutcome {
        self.keep(changes).await.err().unwrap_or(CommitOutcome::Committed)
    }

    /// Commits as [`Store::commit`] and returns the body of the idempotency record as it was kept.
    pub async fn keep(&self, mut changes: Changes) -> Result<Vec<u8>, CommitOutcome> {
        if self.0.sends_mails.load(Ordering::Relaxed) {
            changes.add_mails();
        }
        let (keys, wake) = (Arc::clone(&self.0.keys), Arc::clone(&self.0.wake));
        let (job, answer) = Mutation::new(changes, keys, wake);
        self.send(job, answer, Some(WRITE_TIMEOUT)).await.unwrap_or_else(|not_done| {
            Err(match not_done {
                NotDone::Busy => CommitOutcome::Busy,
                NotDone::Full => CommitOutcome::Full,
                NotDone::Stopped => CommitOutcome::Broken,
            })
        })
    }

    /// Finishes the writes that wait, and gives the file free. Other clones can still read.
    pub async fn close(self) {
        let stop = move || match &self.0.mode {
            Mode::File { writer, .. } => writer.stop(),
            Mode::Inline(_) => {}
        };
        // It waits for a thread, which must not hold up the runtime's own.
        let _panicked = tokio::task::spawn_blocking(stop).await;
    }

    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.0.reads.fetch_add(1, Ordering::Relaxed);
        let answer = match &self.0.mode {
            Mode::File { readers, .. } => readers.read(read),
            Mode::Inline(db) => read(&db.lock().unwrap_or_else(PoisonError::into_inner)),
        };
        answer.map_err(|error| self.read_error(error))
    }

    /// What errors call the database.
    fn database(&self) -> String {
        self.0.file.display().to_string()
    }

    /// The error for the caller; a parcel that cannot be read is counted.
    pub(super) fn read_error(&self, error: rusqlite::Error) -> StoreError {
        if let Some(table) = error::unreadable_table(&error) {
            self.0.health.count_unreadable(table);
        }
        StoreError::from_sqlite(&self.0.file, error)
    }

    /// Returns true if an error of a row that cannot be read was not in the log yet.
    pub(super) fn is_first(&self, error: String) -> bool {
        self.0.logged_unreadable.lock().unwrap_or_else(PoisonError::into_inner).insert(error)
    }

    pub(super) async fn call<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        self.call_within(Some(WRITE_TIMEOUT), run).await
    }

    /// As [`Store::call`], with another timeout. `None` waits for the outcome, however long.
    pub(super) async fn call_within<T, F>(
        &self,
        timeout: Option<Duration>,
        run: F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let (job, answer) = PlainWrite::new(run);
        let database = || self.database();
        match self.send(job, answer, timeout).await {
            Ok(PlainWriteOutcome::Done(result)) => {
                result.map_err(|error| StoreError::from_sqlite(&self.0.file, error))
            }
            Ok(PlainWriteOutcome::Busy) | Err(NotDone::Busy) => {
                Err(StoreError::Busy { database: database() })
            }
            Err(NotDone::Full) => Err(StoreError::Full { database: database() }),
            Ok(PlainWriteOutcome::Broken) | Err(NotDone::Stopped) => {
                Err(StoreError::Broken { database: database() })
            }
        }
    }

    async fn send<T>(
        &self,
        job: Box<dyn WriteJob>,
        mut answer: oneshot::Receiver<T>,
        timeout: Option<Duration>,
    ) -> Result<T, NotDone> {
        match &self.0.mode {
            Mode::File { writer, .. } => {
                writer.push(job)?;
                let answered = match timeout {
                    Some(limit) => tokio::time::timeout(limit, answer).await,
                    None => Ok(answer.await),
                };
                answered.map_err(|_elapsed| NotDone::Busy)?.map_err(|_ended| NotDone::Stopped)
            }
            Mode::Inline(db) => {
                self.commit_inline(db, job);
                // It is there already. Tokio makes a task that awaits very often yield now and then, and
                // memory answers at once, also without a runtime.
                answer.try_recv().map_err(|_unanswered| NotDone::Stopped)
            }
        }
    }

    fn commit_inline(&self, db: &Mutex<Connection>, job: Box<dyn WriteJob>) {
        let db = db.lock().unwrap_or_else(PoisonError::into_inner);
        group::commit(&db, &self.0.health, vec![job]);
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("file", &self.0.file).finish_non_exhaustive()
    }
}
