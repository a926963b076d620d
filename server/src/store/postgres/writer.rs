//! The writer: one task that owns one connection. It takes all that waits into one transaction, so one
//! COMMIT serves many orders.
//!
//! A COMMIT whose answer was cut off may have been done or not. Each group updates the row of its
//! connection in `writers`: on a new connection that row says which it was, once the old backend is gone.
//! Callers are answered only then.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tokio::{
    sync::{mpsc, oneshot},
    task::LocalSet,
    time::sleep,
};

use super::{
    connection::{Backend, Connector},
    error::{DbResult, Failure},
    fence::{Live, begin, count_batch, end_backend, settle},
    group,
    migrations::{self, Secrets},
    writes::{Stopped, Verdict, Write},
};
use crate::clock::{is_older, stopwatch};

/// Writes that may wait; more are refused.
const MAX_QUEUED_WRITES: usize = 4_096;
/// The most writes of one transaction: the first of them waits for the last.
const MAX_WRITES_PER_COMMIT: usize = 256;
/// How often a group that stood in the way of another server's, and that in its, is tried again.
const MAX_CONFLICTS: u32 = 20;
/// How often a write waits alone for rows that someone else holds locked, 1.5 s each time: with the wait of its group
/// before that, less than its caller waits. The writes beside it do not.
const MAX_WAITS_FOR_LOCKS: u32 = 2;
/// How often the connection is looked at while no write comes.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// After a failure the next connection is opened no sooner: writes are refused meanwhile, at once.
const OPEN_PAUSE: Duration = Duration::from_millis(250);
/// Between two looks for the outcome of a COMMIT.
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);

/// What is known of the writer from outside.
#[derive(Debug, Default)]
pub(super) struct Health {
    pub(super) is_connected: AtomicBool,
    pub(super) is_closed: AtomicBool,
    pub(super) commits: AtomicU64,
    pub(super) changes: AtomicU64,
    pub(super) orders: AtomicU64,
}

/// The way to the writer, which ends with the last of it.
pub(super) struct Writer {
    queue: mpsc::Sender<Message>,
    thread: std::sync::Mutex<Option<JoinHandle<()>>>,
}

enum Message {
    /// The first: makes the schema.
    Prepare([u8; 32], oneshot::Sender<DbResult<(Secrets, i64)>>),
    Write(Write),
    Stop,
}

/// Why a write was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotTaken {
    /// Too many wait.
    Full,
    /// The writer has ended.
    Stopped,
}

impl Writer {
    pub(super) fn start(connector: Connector, health: Arc<Health>) -> std::io::Result<Self> {
        let (queue, waiting) = mpsc::channel(MAX_QUEUED_WRITES);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = thread::Builder::new().name("store-writer".to_owned()).spawn(move || {
            let session = Session {
                connector,
                health,
                live: None,
                abandoned: None,
                failed: None,
                is_prepared: false,
            };
            LocalSet::new().block_on(&runtime, session.serve(waiting));
        })?;
        Ok(Self { queue, thread: std::sync::Mutex::new(Some(thread)) })
    }

    /// Makes the schema and answers the database's secrets, the one `fresh` if it is new, and the number of
    /// the first connection, which no other server has.
    pub(super) async fn prepare(&self, fresh: [u8; 32]) -> DbResult<(Secrets, i64)> {
        let (caller, answer) = oneshot::channel();
        // A writer that has ended gives no answer.
        let _ended = self.queue.send(Message::Prepare(fresh, caller)).await;
        answer.await.unwrap_or(Err(Failure::Unanswered))
    }

    /// Hands a write over; from here on it completes, even if no caller waits for it.
    pub(super) fn push(&self, write: Write) -> Result<(), NotTaken> {
        self.queue.try_send(Message::Write(write)).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => NotTaken::Full,
            mpsc::error::TrySendError::Closed(_) => NotTaken::Stopped,
        })
    }

    /// Lets the writer finish what waits, and answers its thread, to be waited for.
    pub(super) async fn stop(&self) -> Option<JoinHandle<()>> {
        // A writer that has ended already leaves nothing to wait for.
        let _ended = self.queue.send(Message::Stop).await;
        self.thread.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
    }
}

/// The life of the writer: connections come and go.
struct Session {
    connector: Connector,
    health: Arc<Health>,
    live: Option<Live>,
    /// The backend of a connection that failed within a transaction. It may not know, and hold its locks.
    abandoned: Option<Backend>,
    /// When the last connection could not be opened.
    failed: Option<Instant>,
    /// Whether the schema is there, without which no connection is of use.
    is_prepared: bool,
}

impl Session {
    async fn serve(mut self, mut waiting: mpsc::Receiver<Message>) {
        loop {
            let next = tokio::select! {
                next = waiting.recv() => next,
                // Also while no write comes: without a connection the server is not ready, and gets none.
                () = sleep(LOOK_INTERVAL) => {
                    if self.is_prepared && !self.is_connected() {
                        self.try_to_connect().await;
                    }
                    continue;
                }
            };
            let first = match next {
                Some(Message::Write(first)) => first,
                Some(Message::Prepare(fresh, caller)) => {
                    // A caller that has gone needs no answer.
                    let _gone = caller.send(self.prepare(fresh).await);
                    continue;
                }
                Some(Message::Stop) | None => break,
            };
            let mut writes = vec![first];
            let mut is_last = false;
            while writes.len() < MAX_WRITES_PER_COMMIT && !is_last {
                match waiting.try_recv() {
                    Ok(Message::Write(write)) => writes.push(write),
                    Ok(Message::Stop) => is_last = true,
                    Ok(Message::Prepare(..)) | Err(_) => break,
                }
            }
            self.commit(writes).await;
            if is_last {
                break;
            }
        }
        self.end().await;
    }

    async fn prepare(&mut self, fresh: [u8; 32]) -> DbResult<(Secrets, i64)> {
        let mut db = self.connector.connect().await?;
        // An index on a large table takes as long as it takes, and so does waiting for another server's.
        let answer_timeout = db.set_answer_timeout(Duration::MAX);
        let secrets = migrations::prepare(&db, fresh).await?;
        db.set_answer_timeout(answer_timeout);
        let live = begin(db).await?;
        let server = live.writer;
        self.live = Some(live);
        self.is_prepared = true;
        self.health.is_connected.store(true, Ordering::Release);
        Ok((secrets, server))
    }

    /// Whether there is a connection, as far as is known.
    fn is_connected(&self) -> bool {
        let is_connected = self.live.as_ref().is_some_and(|live| !live.db.is_closed());
        self.health.is_connected.store(is_connected, Ordering::Release);
        is_connected
    }

    /// Does all of `writes` in one transaction, but those that would undo the others' alone, then answers
    /// each.
    async fn commit(&mut self, writes: Vec<Write>) {
        let mut alone = self.commit_together(writes).await;
        for _ in 0..MAX_WAITS_FOR_LOCKS {
            let mut locked_out = Vec::new();
            // In the order in which they came: the first has waited longest.
            for write in alone {
                locked_out.extend(self.commit_together(vec![write]).await);
            }
            alone = locked_out;
        }
        for write in alone {
            tracing::warn!("a write was not done: someone holds its rows locked");
            write.refuse(Failure::Conflict);
        }
    }

    /// Does writes in one transaction, and answers them. Those that are to be tried alone come back; one that was
    /// alone does when its rows are locked.
    async fn commit_together(&mut self, mut writes: Vec<Write>) -> Vec<Write> {
        let (mut alone, mut conflicts) = (Vec::new(), 0);
        while !writes.is_empty() {
            let stopped = match self.transact(&mut writes).await {
                Ok(verdicts) => {
                    let later = self.answer(writes, verdicts);
                    writes = later;
                    continue;
                }
                Err(stopped) => stopped,
            };
            let is_group = writes.len() > 1;
            match stopped {
                Stopped::By { at, .. } if is_group => alone.push(writes.remove(at)),
                Stopped::By { verdict, .. } => {
                    self.answer(std::mem::take(&mut writes), vec![verdict]);
                }
                // Two groups in each other's way: one of them goes through, so the other will.
                Stopped::Failed(failure) if failure.is_deadlock() && conflicts < MAX_CONFLICTS => {
                    conflicts += 1;
                    sleep(Duration::from_millis(u64::from(fastrand::u32(1..=5 * conflicts)))).await;
                }
                Stopped::Fenced => {}
                Stopped::Failed(failure) if failure.is_of_connection() => {
                    tracing::debug!(error = %failure, "writes were not done: no connection");
                    writes.drain(..).for_each(|write| write.refuse(Failure::Unreachable));
                }
                Stopped::Failed(failure) if is_group || failure.is_conflict() => {
                    // Which of them brought it about is not known: each goes alone.
                    tracing::warn!(error = %failure, "a group of writes was rolled back");
                    alone.append(&mut writes);
                }
                Stopped::Failed(failure) => {
                    tracing::error!(error = %failure, "a write failed and was undone");
                    writes.drain(..).for_each(Write::fail);
                }
            }
        }
        alone
    }

    /// Answers what is settled; answers what is to be tried again.
    fn answer(&self, writes: Vec<Write>, verdicts: Vec<Verdict>) -> Vec<Write> {
        let kept = writes.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_kept());
        let (changes, orders) = kept
            .fold((0, 0), |(changes, orders), (write, _)| (changes + 1, orders + write.orders()));
        // Before the first answer: who has it may look at the counts.
        if changes > 0 {
            self.health.commits.fetch_add(1, Ordering::Relaxed);
            self.health.changes.fetch_add(changes, Ordering::Relaxed);
            self.health.orders.fetch_add(orders, Ordering::Relaxed);
        }
        let mut later = Vec::new();
        for (write, verdict) in writes.into_iter().zip(verdicts) {
            match verdict {
                Verdict::Later => later.push(write),
                verdict => write.answer(verdict),
            }
        }
        later
    }

    /// One transaction. `Ok` only when it is known to be committed.
    async fn transact(&mut self, writes: &mut [Write]) -> Result<Vec<Verdict>, Stopped> {
        // Whatever forbids it (a password that was changed, a primary that became a standby), nothing was done.
        let mut live = self.connection().await.map_err(|_| Failure::Unreachable)?;
        // Boxed, once a group: all that a group does is too large to be a part of this future.
        let done = Box::pin(group::write(&live.db, writes, count_batch(&live))).await;
        let verdicts = match done {
            Ok(verdicts) => verdicts,
            Err(stopped) => {
                // Of what fails with its connection no further answer is waited for.
                if !stopped.is_of_connection() && live.db.run("ROLLBACK").await.is_ok() {
                    self.live = Some(live);
                } else {
                    self.abandoned = Some(live.db.backend().clone());
                }
                return Err(stopped);
            }
        };
        // Every statement's answer was read and none was an error, so the transaction is not aborted: a
        // COMMIT of an aborted one would answer ROLLBACK without an error.
        let committed = live.db.run("COMMIT").await;
        match committed {
            Ok(()) => {
                live.batch += 1;
                self.live = Some(live);
                Ok(verdicts)
            }
            Err(failure) if !failure.is_of_connection() => {
                // PostgreSQL says itself that it was not done.
                self.live = Some(live);
                Err(Stopped::Failed(failure))
            }
            Err(failure) => {
                tracing::warn!(error = %failure, "the answer to a COMMIT was cut off");
                if self.was_committed(&live).await {
                    Ok(verdicts)
                } else {
                    Err(Stopped::Failed(Failure::Unreachable))
                }
            }
        }
    }

    /// Whether the commit after `lost.batch` was done. It is asked until there is an answer: till then no
    /// caller can be answered, and no other write is taken.
    async fn was_committed(&mut self, lost: &Live) -> bool {
        loop {
            match self.connector.connect().await {
                Ok(db) => match settle(&db, lost).await {
                    Ok(was_committed) => {
                        self.live = begin(db).await.ok();
                        // Under a steady stream of writes nothing else would say so.
                        self.health.is_connected.store(self.live.is_some(), Ordering::Release);
                        return was_committed;
                    }
                    Err(failure) => {
                        tracing::warn!(error = %failure, "the outcome of a COMMIT is not known yet");
                    }
                },
                Err(failure) => {
                    self.health.is_connected.store(false, Ordering::Release);
                    tracing::warn!(error = %failure, "the outcome of a COMMIT is not known yet");
                }
            }
            sleep(RECONNECT_PAUSE).await;
        }
    }

    /// The connection, opened if need be.
    async fn connection(&mut self) -> DbResult<Live> {
        if let Some(live) = self.live.take()
            && !live.db.is_closed()
        {
            return Ok(live);
        }
        if self.failed.is_some_and(|failed| !is_older(failed, OPEN_PAUSE)) {
            return Err(Failure::Unreachable);
        }
        let opened = self.open().await;
        self.health.is_connected.store(opened.is_ok(), Ordering::Release);
        let failed = std::mem::replace(&mut self.failed, opened.is_err().then(stopwatch));
        match &opened {
            // Once, however often it is tried: `/readyz` tells the rest.
            Err(failure) if failed.is_none() => {
                tracing::error!(error = %failure, "no connection to the database");
            }
            Err(failure) => tracing::debug!(error = %failure, "still no connection"),
            Ok(_) if failed.is_some() => tracing::info!("connected to the database again"),
            Ok(_) => {}
        }
        opened
    }

    async fn open(&mut self) -> DbResult<Live> {
        let db = self.connector.connect().await?;
        if let Some(abandoned) = &self.abandoned {
            end_backend(&db, abandoned).await?;
            self.abandoned = None;
        }
        begin(db).await
    }

    async fn try_to_connect(&mut self) {
        self.live = self.connection().await.ok();
    }

    async fn end(&mut self) {
        if let Some(live) = self.live.take() {
            // What is left of it is deleted in a month.
            let _left =
                live.db.execute("DELETE FROM writers WHERE writer = $1", &[&live.writer]).await;
        }
    }
}

impl Drop for Session {
    /// At its end, and also when it panics: a server without a writer is to end.
    fn drop(&mut self) {
        self.health.is_closed.store(true, Ordering::Release);
    }
}
