//! Whether the database can be written and read, and is still the file it was.

use std::{
    path::Path,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rusqlite::Connection;

use super::{Mode, Store, StoreError, connection, error::is_busy, hold::Files};

/// For how long reads of our own table fail before the server says that it is not ready. One that fails
/// once may have met a program that replaced the log.
const UNREADY_AFTER: Duration = Duration::from_secs(2);
/// For how long they fail before the database is given up.
const GIVE_UP_AFTER: Duration = Duration::from_secs(6);

/// Why a store takes no more writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// It was closed.
    Closed,
    /// A write or its fsync failed in a way after which the file cannot be trusted.
    Disk,
    /// The file, or its log, was deleted or replaced.
    Place,
    /// It can no longer be read.
    Reads,
}

/// How much was written since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Transactions.
    pub commits: u64,
    /// The writes they held.
    pub changes: u64,
    /// The orders among those.
    pub orders: u64,
    /// Reads that were not part of a write.
    pub reads: u64,
    /// Reads that met a parcel which cannot be read, by the table that holds the damage.
    pub unreadable: [(&'static str, u64); 2],
}

/// Whether the database can be written, and how much was.
#[derive(Debug, Default)]
pub(super) struct Health {
    lost: OnceLock<Lost>,
    is_unreadable: AtomicBool,
    /// None in memory.
    files: Option<Files>,
    commits: AtomicU64,
    changes: AtomicU64,
    orders: AtomicU64,
    unreadable_parcels: AtomicU64,
    unreadable_events: AtomicU64,
}

impl Health {
    /// That of a database in these files.
    pub(super) fn for_files(files: Files) -> Self {
        Self { files: Some(files), ..Self::default() }
    }

    pub(super) fn lost(&self) -> Option<Lost> {
        self.lost.get().copied()
    }

    pub(super) fn is_writable(&self) -> bool {
        self.lost().is_none()
    }

    /// No write is taken from here on. The first reason stays.
    pub(super) fn end(&self, why: Lost) {
        let _ = self.lost.set(why);
    }

    /// Whether the files are where they were; if not, no write is taken any more.
    pub(super) fn check_place(&self) -> bool {
        let Some(missing) = self.files.as_ref().and_then(Files::missing) else { return true };
        if self.is_writable() {
            let file = missing.display();
            tracing::error!(%file, "the file was deleted or replaced: the database is read-only from now on");
        }
        self.end(Lost::Place);
        false
    }

    /// Counts that a parcel's row, or its history's, could not be read.
    pub(super) fn count_unreadable(&self, table: &'static str) {
        let count = match table {
            "events" => &self.unreadable_events,
            _ => &self.unreadable_parcels,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a commit by the orders of each write that it kept.
    pub(super) fn count(&self, orders: &[usize]) {
        if !orders.is_empty() {
            self.commits.fetch_add(1, Ordering::Relaxed);
            self.changes.fetch_add(orders.len() as u64, Ordering::Relaxed);
            self.orders.fetch_add(orders.iter().sum::<usize>() as u64, Ordering::Relaxed);
        }
    }
}

/// What a series of reads says about the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readable {
    /// As far as is known.
    Yes,
    /// Not for some seconds.
    NotNow,
    /// Not for so long that waiting does not help.
    Never,
}

/// Reads of our own table, one after the other.
#[derive(Debug, Default)]
struct Reads {
    failing_since: Option<Instant>,
}

impl Reads {
    fn after(&mut self, was_read: bool, now: Instant) -> Readable {
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

/// A connection that does nothing but see whether the file can be read: were it opened for that each
/// time, a server without a free descriptor would take its disk for broken.
pub(super) struct Probe {
    db: Mutex<Connection>,
    reads: Mutex<Reads>,
}

impl Probe {
    pub(super) fn open(file: &Path) -> Result<Self, StoreError> {
        let db = connection::reader(file).map_err(|error| StoreError::from_sqlite(file, error))?;
        Ok(Self { db: Mutex::new(db), reads: Mutex::default() })
    }

    /// Reads the secret, from the file: what `SQLite` remembers of it says nothing about the disk.
    fn read(&self) -> rusqlite::Result<[u8; 32]> {
        let db = self.db.lock().unwrap_or_else(PoisonError::into_inner);
        db.execute_batch("PRAGMA shrink_memory")?;
        db.query_row("SELECT value FROM meta WHERE name = 'secret'", [], |row| row.get(0))
    }
}

impl Store {
    /// How much was written.
    pub fn stats(&self) -> Stats {
        let Health { commits, changes, orders, .. } = &*self.0.health;
        let [commits, changes, orders] =
            [commits, changes, orders].map(|count| count.load(Ordering::Relaxed));
        let unreadable = [
            ("parcels", &self.0.health.unreadable_parcels),
            ("events", &self.0.health.unreadable_events),
        ];
        let unreadable = unreadable.map(|(table, count)| (table, count.load(Ordering::Relaxed)));
        let reads = self.0.reads.load(Ordering::Relaxed);
        Stats { commits, changes, orders, reads, unreadable }
    }

    /// False once the disk has failed or the store is closed: it is read-only from then on, for a
    /// failed fsync cannot be tried again, and the process should end.
    pub fn is_writable(&self) -> bool {
        self.0.health.is_writable()
    }

    /// Why it takes no more writes, if so.
    pub fn lost(&self) -> Option<Lost> {
        self.0.health.lost()
    }

    /// False while reads of the store's own settings fail, for some seconds already.
    pub fn is_readable(&self) -> bool {
        !self.0.health.is_unreadable.load(Ordering::Acquire)
    }

    /// Looks whether the file is still there and can be read, as of `now`. Call it every now and then;
    /// it blocks.
    pub fn check(&self, now: Instant) {
        let Mode::File { probe, .. } = &self.0.mode else { return };
        let health = &self.0.health;
        if !health.check_place() {
            return;
        }
        let found = probe.read();
        let was_read = match &found {
            Ok(secret) => *secret == self.0.secret,
            // A lock held by another process says nothing about the disk.
            Err(error) => is_busy(error),
        };
        let reads = probe.reads.lock().unwrap_or_else(PoisonError::into_inner).after(was_read, now);
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
                health.end(Lost::Reads);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::stopwatch;

    #[test]
    fn reads_that_fail_for_some_seconds_are_not_ready_and_then_for_good() {
        let (mut reads, start) = (Reads::default(), stopwatch());
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
            assert_eq!(reads.after(was_read, now), expected, "second {second}");
        }
    }
}
