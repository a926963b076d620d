//! Checkpoints: a separate thread moves the write-ahead log's pages into the database file, so that no commit waits
//! while thousands of pages are written and synced.
//!
//! After each commit the writer knows the number of the log's pages. Beyond a threshold it asks the thread to move them
//! (`PASSIVE`: writers and readers continue). Commits make the log longer while the thread works, so the thread repeats
//! until only a short tail is left. The writer moves that tail itself, between two commits, because a commit can start
//! the log from its beginning only while the whole log is in the file. While commits follow one another, another thread
//! never sees such a moment. So the log's file stays at about the threshold.
//!
//! The thread syncs the log (which the commits have already synced) and then the file, however large it is, and no
//! commit waits for that. The writer syncs both again for the tail only, because the rest is already on the disk.
//! `SQLite` syncs the file only when the whole log is moved, so the thread syncs the file through our own descriptor.
//!
//! A read pins the log from the page at which it began. If that keeps the log from being moved, the log grows. At the
//! ceiling the writer waits a moment for reads to end, and it waits again whenever the log has grown by half. So
//! overlapping reads still let the log begin again. A stuck read, perhaps of another process, costs orders a few short
//! waits, and the disk a longer log. Afterwards its file becomes shorter in steps.

use std::{
    io,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use rusqlite::Connection;

use super::{
    StoreError, connection,
    file_lock::{FileLock, OpenFile},
    health::{Health, ReadOnlyReason},
};

/// The lengths that trigger checkpoints, in pages of 4 KiB, and the wait for readers that block a checkpoint.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Length from which the log is moved. A long log is cheaper, because a page that many commits write is moved once.
    threshold: usize,
    /// Length of the tail that the writer moves itself: about as much as a large commit.
    tail: usize,
    /// Length from which the writer waits for readers.
    ceiling: usize,
    /// Duration of that wait: longer than nearly all reads, and short compared with the timeout of an order.
    wait: Duration,
    /// Length that the log's file keeps.
    kept: usize,
    /// Maximum length by which the file becomes shorter at once.
    step: usize,
}

/// Limits of 40 MB, 1 MB, 160 MB, 180 MB and 16 MB.
pub(super) const LIMITS: Limits = Limits {
    threshold: 10_000,
    tail: 250,
    ceiling: 40_000,
    wait: Duration::from_millis(50),
    kept: 45_000,
    step: 4_000,
};

/// Maximum number of times in a row that the thread moves the log. If the writer is still ahead of it after that, the
/// writer waits for the disk: it moves the tail itself, however long the tail is.
const MAX_PASSES: usize = 4;

/// The outcome of moving the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckpointOutcome {
    /// Everything but a short tail.
    All,
    /// As much as a reader or another process allowed.
    Part,
}

/// The writer's share of the checkpoints.
pub(super) struct Checkpoints {
    limits: Limits,
    log: Arc<Log>,
    /// `None` when the thread must end.
    thread: Option<(Sender<()>, JoinHandle<()>)>,
    answers: Receiver<CheckpointOutcome>,
    is_asked: bool,
    /// The log length at which the thread is asked next.
    due: usize,
    /// The log length at which the writer waits next.
    ceiling: usize,
    file: LogFile,
}

/// The log's file, which `SQLite` shortens to a limit when the log begins again. A read that was stuck for a minute may
/// leave gigabytes. Freeing them at once would stop all orders for seconds, so the limit is never far below the length.
#[derive(Default)]
struct LogFile {
    pages: usize,
    limit: usize,
    /// Length of the log after the last commit.
    log: usize,
}

impl LogFile {
    /// Returns the limit after a commit, if it is another than before.
    fn change_limit(&mut self, log: usize, limits: Limits) -> Option<usize> {
        if log < self.log {
            // The log has begun again.
            self.pages = self.pages.min(self.limit);
        }
        self.log = log;
        self.pages = self.pages.max(log);
        let steps = self.pages.saturating_sub(limits.kept).div_ceil(limits.step);
        let limit = limits.kept + steps.saturating_sub(1) * limits.step;
        let is_other = limit != self.limit;
        self.limit = limit;
        is_other.then_some(limit)
    }
}

/// The write-ahead log, as the writer and the thread see it.
#[derive(Default)]
struct Log {
    /// Length after the last commit.
    pages: AtomicUsize,
    /// Held while the thread moves pages, because `SQLite` allows one checkpoint at a time.
    checkpoint_lock: Mutex<()>,
}

impl Log {
    fn pages(&self) -> usize {
        self.pages.load(Ordering::Relaxed)
    }

    fn lock_checkpoint(&self) -> MutexGuard<'_, ()> {
        self.checkpoint_lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Checkpoints {
    /// Starts the thread, and removes checkpoints from the writer's commits.
    pub(super) fn start(
        writer: &mut Connection,
        (file, lock): (&Path, &FileLock),
        health: &Arc<Health>,
        limits: Limits,
    ) -> Result<Self, StoreError> {
        let failed = |error| StoreError::from_sqlite(file, error);
        let db = connection::open_checkpointer(file).map_err(failed)?;
        let log = Arc::new(Log::default());
        let writer_log = Arc::clone(&log);
        // SQLite has a single hook of this kind, so this replaces the built-in hook, which would move the log inside a
        // commit.
        writer
            .wal_hook(Some(move |_: &mut _, pages: i32| {
                writer_log.pages.store(usize::try_from(pages).unwrap_or(0), Ordering::Relaxed);
                Ok(())
            }))
            .map_err(failed)?;
        let (ask, asked) = channel();
        let (answer, answers) = channel();
        let checkpointer = Checkpointer { db, file: lock.file(), log: Arc::clone(&log), limits };
        let health = Arc::clone(health);
        let serve = move || {
            while asked.recv().is_ok() {
                // A writer that has ended needs no answer.
                let _gone = answer.send(checkpointer.run(&health));
            }
        };
        let thread = thread::Builder::new().name("store-checkpoints".to_owned()).spawn(serve);
        let thread = Some((ask, thread.map_err(|error| StoreError::open(file, error))?));
        let (due, ceiling) = (limits.threshold, limits.ceiling);
        // A start shortens the file to nothing, unless a reader holds the log; then the first commit shows its length.
        let file = LogFile::default();
        Ok(Self { limits, log, thread, answers, is_asked: false, due, ceiling, file })
    }

    /// Runs the writer's share of a checkpoint; call it after each commit.
    pub(super) fn after_commit(&mut self, db: &Connection) -> rusqlite::Result<()> {
        let pages = self.log.pages();
        if let Some(limit) = self.file.change_limit(pages, self.limits) {
            connection::limit_log(db, limit)?;
        }
        let answer = self.answers.try_recv().ok();
        self.is_asked &= answer.is_none();
        if pages < self.limits.threshold {
            // The log has begun again.
            (self.due, self.ceiling) = (self.limits.threshold, self.limits.ceiling);
        } else if answer == Some(CheckpointOutcome::All) {
            checkpoint(db, "PASSIVE")?;
        } else if pages >= self.ceiling {
            self.ceiling = pages + pages / 2;
            self.wait_for_readers(db, pages)?;
        } else if pages >= self.due && !self.is_asked {
            // If a reader is in the way, the thread is not asked again at every commit.
            self.due = pages + self.limits.threshold / 4;
            self.is_asked = true;
            // If the thread has panicked, the ceiling takes over.
            let _ended = self.thread.as_ref().map(|(ask, _)| ask.send(()));
        }
        Ok(())
    }

    /// Moves the whole log and truncates its file. Returns `false` if a reader still uses the log.
    pub(super) fn truncate_log(&self, db: &Connection) -> rusqlite::Result<bool> {
        let _lock = self.log.lock_checkpoint();
        connection::truncate_log(db)
    }

    fn wait_for_readers(&self, db: &Connection, pages: usize) -> rusqlite::Result<()> {
        let _lock = self.log.lock_checkpoint();
        db.busy_timeout(self.limits.wait)?;
        let moved = checkpoint(db, "RESTART");
        db.busy_timeout(connection::BUSY_TIMEOUT)?;
        if moved?.0 == CheckpointOutcome::Part {
            tracing::warn!(
                megabytes = pages / 256,
                "a reader keeps the write-ahead log from beginning again: it grows until that ends, which may be a backup or an \
                 open transaction of another program"
            );
        }
        Ok(())
    }
}

impl Drop for Checkpoints {
    /// Waits for the thread.
    fn drop(&mut self) {
        if let Some((ask, thread)) = self.thread.take() {
            drop(ask);
            // If it has panicked, there is nothing to wait for.
            let _panicked = thread.join();
        }
    }
}

/// The thread's share of the checkpoints.
struct Checkpointer {
    db: Connection,
    file: OpenFile,
    log: Arc<Log>,
    limits: Limits,
}

impl Checkpointer {
    fn run(&self, health: &Health) -> CheckpointOutcome {
        let _lock = self.log.lock_checkpoint();
        self.passes().unwrap_or_else(|error| {
            // As after a commit, a failed fsync cannot be retried.
            if let Some(reason) = error.read_only_reason() {
                health.stop_writes(reason);
            }
            tracing::error!(%error, "the write-ahead log could not be moved into the database");
            CheckpointOutcome::Part
        })
    }

    fn passes(&self) -> Result<CheckpointOutcome, CheckpointError> {
        for _ in 0..MAX_PASSES {
            let (moved, pages) = checkpoint(&self.db, "PASSIVE")?;
            self.file.sync()?;
            if moved == CheckpointOutcome::Part {
                return Ok(CheckpointOutcome::Part);
            }
            if self.log.pages().saturating_sub(pages) <= self.limits.tail {
                break;
            }
        }
        Ok(CheckpointOutcome::All)
    }
}

#[derive(Debug, thiserror::Error)]
enum CheckpointError {
    #[error(transparent)]
    Engine(#[from] rusqlite::Error),
    #[error(transparent)]
    Sync(#[from] io::Error),
}

impl CheckpointError {
    /// Returns the reason to stop writes, if the error is fatal.
    fn read_only_reason(&self) -> Option<ReadOnlyReason> {
        match self {
            Self::Engine(error) => ReadOnlyReason::after(error),
            Self::Sync(_) => Some(ReadOnlyReason::Disk),
        }
    }
}

/// Moves pages of the log. Returns whether all of them were moved, and the number of the log's pages that are now in
/// the file.
fn checkpoint(db: &Connection, mode: &str) -> rusqlite::Result<(CheckpointOutcome, usize)> {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    db.prepare_cached(&sql)?.query_row([], |row| {
        let (is_busy, pages, moved): (bool, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let is_all = !is_busy && pages == moved;
        let moved = usize::try_from(moved).unwrap_or(0);
        Ok((if is_all { CheckpointOutcome::All } else { CheckpointOutcome::Part }, moved))
    })
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::{
        CommitOutcome,
        sqlite::{file_lock, identity::IfEmpty, tests::commit_as_group},
        tests::conformance::{SECRET, create, sandbox},
    };

    /// A writer whose log is moved from 20 pages on.
    struct Fixture {
        checkpoints: Checkpoints,
        db: Connection,
        lock: FileLock,
        made: u32,
        folder: TempDir,
    }

    const SMALL: Limits = Limits {
        threshold: 20,
        tail: 1_000,
        ceiling: 80,
        wait: Duration::from_secs(5),
        kept: 100,
        step: 50,
    };

    impl Fixture {
        fn new(limits: Limits) -> Self {
            let folder = TempDir::new().unwrap();
            let file = folder.path().join("parcelo.db");
            let lock = file_lock::lock(&file).unwrap();
            let (mut db, _) = connection::open_writer(&file, IfEmpty::Create, SECRET).unwrap();
            let health = Arc::default();
            let checkpoints = Checkpoints::start(&mut db, (&file, &lock), &health, limits).unwrap();
            Self { checkpoints, db, lock, made: 0, folder }
        }

        /// Commits an order and returns the number of pages that the log has then.
        fn commit(&mut self) -> usize {
            self.made += 1;
            let order = create(sandbox(1), &format!("SB-NUMBER-{:04}", self.made), self.made);
            assert_eq!(commit_as_group(&self.db, vec![order]), [CommitOutcome::Committed]);
            let pages = self.checkpoints.log.pages();
            self.checkpoints.after_commit(&self.db).unwrap();
            pages
        }

        fn commit_until(&mut self, is_enough: impl Fn(usize) -> bool) {
            while !is_enough(self.commit()) {}
        }

        fn reader(&self) -> Connection {
            let db = connection::open_reader(&self.folder.path().join("parcelo.db")).unwrap();
            db.execute_batch("BEGIN; SELECT count(*) FROM parcels;").unwrap();
            db
        }
    }

    #[test]
    fn the_log_stays_short_under_steady_load() {
        let mut fixture = Fixture::new(SMALL);
        let longest = (0..600).map(|_| fixture.commit()).max().unwrap();
        // However slow the thread is, the writer moves the log at the ceiling. The last commit may exceed it.
        assert!((20..=80 + 20).contains(&longest), "{longest}");
        let log = connection::wal_path(&fixture.folder.path().join("parcelo.db"));
        assert!(std::fs::metadata(log).unwrap().len() < 110 * 4_200);
    }

    #[test]
    fn a_long_log_restarts_after_the_thread_moved_it() {
        let mut fixture = Fixture::new(Limits { ceiling: usize::MAX, ..SMALL });
        fixture.commit_until(|pages| pages >= 20);
        assert_eq!(fixture.checkpoints.answers.recv(), Ok(CheckpointOutcome::All));
        assert!(fixture.commit() < 20);
    }

    #[test]
    fn the_writer_moves_the_rest_that_the_thread_left() {
        let mut fixture = Fixture::new(Limits { ceiling: usize::MAX, ..SMALL });
        fixture.checkpoints.is_asked = true;
        let (answer, answers) = channel();
        fixture.checkpoints.answers = answers;
        fixture.commit_until(|pages| pages >= 40);
        answer.send(CheckpointOutcome::All).unwrap();
        assert!(fixture.commit() > 40, "what is moved after it begins the next");
        assert!(fixture.commit() < 20);
    }

    #[test]
    fn a_stuck_reader_blocks_no_order() {
        let mut fixture = Fixture::new(Limits { wait: Duration::ZERO, ..SMALL });
        let stuck = fixture.reader();
        fixture.commit_until(|pages| pages > 300);
        // It waited at 80, 120, 180 and 270 pages, and not at each 20 more.
        assert!(fixture.checkpoints.ceiling > 400, "{}", fixture.checkpoints.ceiling);
        drop(stuck);
        fixture.commit_until(|pages| pages < 20);
    }

    #[test]
    fn a_log_that_a_stuck_reader_made_long_becomes_shorter_in_steps() {
        let mut fixture = Fixture::new(Limits { wait: Duration::ZERO, ..SMALL });
        let log = connection::wal_path(&fixture.folder.path().join("parcelo.db"));
        let length = || usize::try_from(std::fs::metadata(&log).unwrap().len()).unwrap() / 4_120;
        let stuck = fixture.reader();
        fixture.commit_until(|pages| pages > 300);
        drop(stuck);
        let mut lengths = vec![length()];
        while length() > 100 {
            fixture.commit();
            if lengths.last() != Some(&length()) {
                lengths.push(length());
            }
        }
        let longest_step = lengths.windows(2).map(|pair| pair[0].saturating_sub(pair[1])).max();
        assert!(longest_step <= Some(50), "{lengths:?}");
    }

    #[test]
    fn at_the_ceiling_the_writer_waits_for_reads_to_end() {
        let mut fixture = Fixture::new(SMALL);
        fixture.checkpoints.is_asked = true;
        let read = fixture.reader();
        let ended = thread::spawn(move || drop(read));
        fixture.commit_until(|pages| pages >= 80);
        assert!(fixture.commit() < 20);
        ended.join().unwrap();
    }

    #[test]
    fn a_failed_checkpoint_makes_the_store_read_only() {
        let mut fixture =
            Fixture::new(Limits { threshold: usize::MAX, ceiling: usize::MAX, ..SMALL });
        fixture.commit();
        let db = connection::open_reader(&fixture.folder.path().join("parcelo.db")).unwrap();
        let (file, log) = (fixture.lock.file(), Arc::default());
        let health = Health::default();
        let outcome = Checkpointer { db, file, log, limits: SMALL }.run(&health);
        assert_eq!(outcome, CheckpointOutcome::Part);
        assert_eq!(health.read_only_reason(), Some(ReadOnlyReason::Disk));
    }
}
