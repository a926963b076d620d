//! The only thread that writes a database file: it takes all queued writes, commits them together, and answers them.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread::{self, JoinHandle},
};

use parcelo_system::clock::monotonic_now;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{
    checkpoints::Checkpoints,
    group::{self, QueuedWrite},
    health::{Health, ReadOnlyReason},
    newest_record::NewestRecord,
};
use crate::write_error::WriteError;

/// Maximum number of queued writes. A further write is answered with 503 at once, because behind all of them it would
/// only time out.
const MAX_QUEUED_WRITES: usize = 4_096;
/// Maximum number of writes in one commit. They share one fsync (measured: 22,000 orders a second with 32 writers,
/// 39,000 with 256), and the first of them waits for the last.
const MAX_WRITES_PER_COMMIT: usize = 256;

/// The handle to the writer's thread, which ends when the last handle is dropped.
pub(super) struct Writer {
    queue: SyncSender<Message>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

enum Message {
    Write(Box<dyn QueuedWrite>),
    TruncateLog(oneshot::Sender<bool>),
    Ping(oneshot::Sender<()>),
    Stop,
}

impl Writer {
    /// Starts the thread, which keeps the lock of `newest` until its last write is done.
    pub(super) fn start(
        db: Connection,
        newest: NewestRecord,
        checkpoints: Checkpoints,
        health: Arc<Health>,
    ) -> io::Result<Self> {
        let (queue, waiting) = sync_channel(MAX_QUEUED_WRITES);
        let thread = thread::Builder::new().name("store-writer".to_owned()).spawn(move || {
            // However the thread ends, the store then reports that it accepts no more writes.
            let serve = || serve(&waiting, (&db, &newest), checkpoints, &health);
            let _panicked = catch_unwind(AssertUnwindSafe(serve));
            health.stop_writes(ReadOnlyReason::Closed);
            drop(db);
            drop(newest);
        })?;
        Ok(Self { queue, thread: Mutex::new(Some(thread)) })
    }

    /// Queues a write. From then on it completes, even if no caller waits for it.
    pub(super) fn push(&self, queued_write: Box<dyn QueuedWrite>) -> Result<(), WriteError> {
        self.queue.try_send(Message::Write(queued_write)).map_err(|refused| match refused {
            TrySendError::Full(_) => WriteError::Full,
            TrySendError::Disconnected(_) => WriteError::Broken,
        })
    }

    /// Truncates the write-ahead log, between two commits. Returns `false` if a reader still uses the log, or if
    /// truncating it failed.
    pub(super) async fn truncate_log(&self) -> bool {
        let (answer, done) = oneshot::channel();
        self.queue.try_send(Message::TruncateLog(answer)).is_ok() && done.await.unwrap_or(false)
    }

    /// Returns `true` once the thread has done what was queued before, or `false` if the queue takes nothing.
    pub(super) async fn answers(&self) -> bool {
        let (answer, answered) = oneshot::channel();
        self.queue.try_send(Message::Ping(answer)).is_ok() && answered.await.is_ok()
    }

    /// Lets the thread finish the queued writes, and blocks until it ends.
    pub(super) fn stop(&self) {
        // If the thread has ended already, or by a panic, there is nothing to wait for.
        let _ended = self.queue.send(Message::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _ended = thread.map(JoinHandle::join);
    }
}

fn serve(
    waiting: &Receiver<Message>,
    (db, newest): (&Connection, &NewestRecord),
    mut checkpoints: Checkpoints,
    health: &Health,
) {
    while let Ok(first) = waiting.recv() {
        let mut queued_writes = Vec::new();
        let mut next = Some(first);
        while let Some(Message::Write(queued_write)) = next {
            queued_writes.push(queued_write);
            next = if queued_writes.len() < MAX_WRITES_PER_COMMIT {
                waiting.try_recv().ok()
            } else {
                None
            };
        }
        if !queued_writes.is_empty() {
            let (count, started) = (queued_writes.len(), monotonic_now());
            group::commit(db, health, queued_writes);
            health.count_answered(count, started.elapsed());
            newest.write();
            // A checkpoint would write to a disk that has failed.
            if health.is_writable()
                && let Err(error) = checkpoints.after_commit(db)
            {
                log_failed(&error, health);
            }
        }
        match next {
            Some(Message::Stop) => break,
            Some(Message::TruncateLog(answer)) => {
                // A caller that has gone needs no answer.
                let _gone = answer.send(checkpoints.truncate_log(db).unwrap_or_else(|error| {
                    log_failed(&error, health);
                    false
                }));
            }
            Some(Message::Ping(answer)) => {
                let _gone = answer.send(());
            }
            Some(Message::Write(_)) | None => {}
        }
    }
    // Dropped before the last checkpoint, because a checkpoint of that thread would conflict with it.
    drop(checkpoints);
    if let Err(error) = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
        tracing::warn!(%error, "the last checkpoint failed; the next start makes up for it");
    }
}

fn log_failed(error: &rusqlite::Error, health: &Health) {
    // As after a commit, a failed fsync cannot be retried.
    if let Some(reason) = ReadOnlyReason::after(error) {
        health.stop_writes(reason);
    }
    tracing::error!(%error, "the write-ahead log could not be moved into the database");
}
