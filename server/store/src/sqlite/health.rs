//! Health of the database: whether it can be written and read, and whether it is still the same file.

use std::{
    path::Path,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rusqlite::{Connection, ErrorCode};

use super::{
    Mode, Store, StoreError, connection,
    error::{is_busy, is_fatal},
    file_lock::Files,
};
use crate::{
    meta::{self, SECRET},
    sql::{Sql, poll_now},
    stats::Stats,
};

/// Time for which reads of our own table fail before the server reports that it is not ready. A single read may have
/// failed because a program was replacing the log.
const UNREADY_AFTER: Duration = Duration::from_secs(2);
/// Time for which these reads fail before the database is given up.
const GIVE_UP_AFTER: Duration = Duration::from_secs(6);

/// The reason why a store accepts no more writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOnlyReason {
    /// It was closed.
    Closed,
    /// A write or its fsync failed in a way after which the file cannot be trusted.
    Disk,
    /// The file's disk has no space left.
    Full,
    /// The file, or its log, was deleted or replaced.
    Replaced,
    /// It can no longer be read.
    Unreadable,
}

impl ReadOnlyReason {
    /// Returns the reason to stop writes after an error, if the error is fatal.
    pub(super) fn after(error: &rusqlite::Error) -> Option<Self> {
        let is_full = error.sqlite_error_code() == Some(ErrorCode::DiskFull);
        is_fatal(error).then_some(if is_full { Self::Full } else { Self::Disk })
    }
}

/// The state of the database: whether it can be written, and the counts of writes.
#[derive(Debug, Default)]
pub(super) struct Health {
    lost: OnceLock<ReadOnlyReason>,
    is_unreadable: AtomicBool,
    /// `None` in memory.
    files: Option<Files>,
    commits: AtomicU64,
    changes: AtomicU64,
    orders: AtomicU64,
    commit_micros: AtomicU64,
    /// Number of writes in the queue and in the transaction that is open.
    queued: AtomicU64,
    unreadable_parcels: AtomicU64,
    unreadable_events: AtomicU64,
}

impl Health {
    /// Returns the health of a database in these files.
    pub(super) fn for_files(files: Files) -> Self {
        Self { files: Some(files), ..Self::default() }
    }

    pub(super) fn read_only_reason(&self) -> Option<ReadOnlyReason> {
        self.lost.get().copied()
    }

    pub(super) fn is_writable(&self) -> bool {
        self.read_only_reason().is_none()
    }

    /// Stops further writes. The first reason is kept.
    pub(super) fn stop_writes(&self, why: ReadOnlyReason) {
        let _ = self.lost.set(why);
    }

    /// Returns `true` if the files are where they were. If they are not, no more writes are accepted.
    pub(super) fn check_files(&self) -> bool {
        let Some(missing) = self.files.as_ref().and_then(Files::missing) else { return true };
        if self.is_writable() {
            let file = missing.display();
            tracing::error!(%file, "the file was deleted or replaced: the database is read-only from now on");
        }
        self.stop_writes(ReadOnlyReason::Replaced);
        false
    }

    /// Counts a parcel whose row, or whose history, could not be read.
    pub(super) fn count_unreadable(&self, table: &'static str) {
        let count = match table {
            "events" => &self.unreadable_events,
            _ => &self.unreadable_parcels,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts writes that were added to the queue.
    pub(super) fn count_queued(&self) {
        self.queued.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts writes that were answered, in transactions of this duration.
    pub(super) fn count_answered(&self, writes: usize, duration: Duration) {
        self.queued.fetch_sub(writes as u64, Ordering::Relaxed);
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.commit_micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Counts a commit. `orders` holds the number of orders of each write that it kept.
    pub(super) fn count_commit(&self, orders: &[usize]) {
        if !orders.is_empty() {
            self.commits.fetch_add(1, Ordering::Relaxed);
            self.changes.fetch_add(orders.len() as u64, Ordering::Relaxed);
            self.orders.fetch_add(orders.iter().sum::<usize>() as u64, Ordering::Relaxed);
        }
    }
}

/// The state of the disk according to a series of reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readable {
    /// As far as is known, it is readable.
    Yes,
    /// It has not been readable for some seconds.
    NotNow,
    /// It has been unreadable for too long to wait any longer.
    Never,
}

/// Successive reads of our own table.
#[derive(Debug, Default)]
struct Reads {
    failing_since: Option<Instant>,
}

impl Reads {
    /// Records whether a read succeeded, and returns the state that follows.
    fn record(&mut self, was_read: bool, now: Instant) -> Readable {
        if was_read {
            self.failing_since = None;
            return Readable::Yes;
        }
        let since = *self.failing_since.get_or_insert(now);
        match now.saturating_duration_since(since) {
            failing if failing >= GIVE_UP_AFTER => Readable::Never,
            failing if failing >= UNREADY_AFTER => Readable::NotNow,
            _ => Readable::Yes,
        }
    }
}

/// A connection that only checks that the file can be read. It stays open, because a server without a free descriptor
/// could not open it for a check, and would consider its disk broken.
pub(super) struct Probe {
    db: Mutex<Connection>,
    reads: Mutex<Reads>,
}

impl Probe {
    pub(super) fn open(file: &Path) -> Result<Self, StoreError> {
        let db =
            connection::open_reader(file).map_err(|error| StoreError::from_sqlite(file, error))?;
        Ok(Self { db: Mutex::new(db), reads: Mutex::default() })
    }

    /// Reads the secret from the file and not from `SQLite`'s cache, which says nothing about the disk.
    fn read(&self) -> rusqlite::Result<[u8; 32]> {
        let db = self.db.lock().unwrap_or_else(PoisonError::into_inner);
        db.execute_batch("PRAGMA shrink_memory")?;
        let db = Sql::Sqlite(&db);
        poll_now(async { db.require(meta::get(db, SECRET).await?) })
    }
}

impl Store {
    /// Returns the statistics of writes.
    pub fn stats(&self) -> Stats {
        let Health { commits, changes, orders, commit_micros, queued, .. } = &*self.0.health;
        let counts = [commits, changes, orders, commit_micros, queued];
        let [commits, changes, orders, commit_micros, queued] =
            counts.map(|count| count.load(Ordering::Relaxed));
        let commit_time = Duration::from_micros(commit_micros);
        let unreadable = [
            ("parcels", &self.0.health.unreadable_parcels),
            ("events", &self.0.health.unreadable_events),
        ];
        let unreadable = unreadable.map(|(table, count)| (table, count.load(Ordering::Relaxed)));
        let reads = self.0.state.reads.load(Ordering::Relaxed);
        Stats { commits, changes, orders, commit_time, queued, reads, unreadable }
    }

    /// Returns the reason why the store accepts no more writes, or `None` if it accepts them.
    pub fn read_only_reason(&self) -> Option<ReadOnlyReason> {
        self.0.health.read_only_reason()
    }

    /// Returns the reason, as a part of a sentence without the file's path, why the file cannot be used.
    pub fn unavailable_reason(&self) -> Option<String> {
        let reason = match self.read_only_reason() {
            Some(ReadOnlyReason::Full) => "the database's disk is full",
            Some(ReadOnlyReason::Disk) => "the database's disk has failed or is read-only",
            Some(ReadOnlyReason::Replaced) => "the database's file was deleted or replaced",
            Some(ReadOnlyReason::Unreadable) => "the database's disk can no longer be read",
            None if !self.is_readable() => "the database's disk cannot be read",
            Some(ReadOnlyReason::Closed) | None => return None,
        };
        Some(reason.to_owned())
    }

    /// Returns `false` if reads of the store's own settings have been failing for some seconds.
    pub fn is_readable(&self) -> bool {
        !self.0.health.is_unreadable.load(Ordering::Acquire)
    }

    /// Checks at `now` that the file still exists and is readable. Blocking; call it periodically.
    pub fn check(&self, now: Instant) {
        let Mode::File { probe, .. } = &self.0.mode else { return };
        let health = &self.0.health;
        if !health.check_files() {
            return;
        }
        let found = probe.read();
        let was_read = match &found {
            Ok(secret) => *secret == self.0.state.secret,
            // A lock of another process says nothing about the disk.
            Err(error) => is_busy(error),
        };
        let reads =
            probe.reads.lock().unwrap_or_else(PoisonError::into_inner).record(was_read, now);
        let was_unreadable = health.is_unreadable.swap(reads != Readable::Yes, Ordering::AcqRel);
        let error = found.err();
        match reads {
            Readable::Yes => {}
            Readable::NotNow if was_unreadable => {}
            Readable::NotNow => {
                tracing::error!(?error, "the database cannot be read: the server is not ready");
            }
            Readable::Never => {
                tracing::error!(?error, "the database cannot be read for good");
                health.stop_writes(ReadOnlyReason::Unreadable);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parcelo_system::clock::monotonic_now;

    #[test]
    fn failing_reads_become_not_ready_then_fatal() {
        let (mut reads, start) = (Reads::default(), monotonic_now());
        let table = [
            (0, true, Readable::Yes),
            (1, false, Readable::Yes),
            (2, false, Readable::Yes),
            (3, false, Readable::NotNow),
            (4, true, Readable::Yes),
            (5, false, Readable::Yes),
            (7, false, Readable::NotNow),
            (10, false, Readable::NotNow),
            (11, false, Readable::Never),
            (12, true, Readable::Yes),
        ];
        for (second, was_read, expected) in table {
            let now = start + Duration::from_secs(second);
            assert_eq!(reads.record(was_read, now), expected, "second {second}");
        }
    }
}
