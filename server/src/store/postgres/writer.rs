//! The writer: one task that owns one connection. It runs all queued writes in one transaction, so that many orders
//! share a COMMIT.
//!
//! If the connection is cut before a COMMIT is answered, the transaction may have been committed or not, and callers
//! get exactly that answer. A caller that repeats its write under its key gets the definite answer, because the insert
//! of the key waits for the transaction in doubt.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot},
    task::LocalSet,
    time::sleep,
};

use super::{
    connection::Connector,
    error::{DbResult, Failure},
    group,
    lock_wait::{LockWait, LockWaits},
    migrations,
    write_queue::{Stopped, Write, WriteOutcome},
    writer_connection::{Health, WriterConnection},
};
use crate::{clock::stopwatch, domain::Tenant, store::not_done::NotDone};

/// Maximum number of queued writes; further writes are refused.
const MAX_QUEUED_WRITES: usize = 4_096;
/// Maximum number of writes in one transaction, because the first of them waits for the last.
const MAX_WRITES_PER_COMMIT: usize = 256;
/// Maximum number of retries of a deadlocked group.
const MAX_CONFLICTS: u32 = 20;
/// Maximum number of times that a write is retried alone when its rows are locked, for 1.5 s each time. Together with
/// its group's wait before, that is less than its caller waits. If several writes are locked out, only the first waits
/// this long: a lock that affects many (of a table, or of a count that all of a tenant's orders update) would otherwise
/// stop all other writes for minutes.
const MAX_WAITS_FOR_LOCKS: u32 = 2;
/// Number of a tenant's writes that are locked out in a row before its other writes are not tried: they most likely
/// need the same row, and each would wait for it.
const MAX_LOCKED_OUT: usize = 3;
/// Draws a server's number from the database's randomness.
const SERVER: &str = "SELECT ('x' || substr(md5(gen_random_uuid()::text), 1, 16))::bit(64)::bigint";
/// Interval at which the connection is checked while no writes arrive.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The handle to the writer, which stops when the last handle is dropped.
pub(super) struct Writer {
    queue: mpsc::Sender<Message>,
    thread: std::sync::Mutex<Option<JoinHandle<()>>>,
}

enum Message {
    /// The first message, which creates the schema.
    Prepare([u8; 32], oneshot::Sender<DbResult<([u8; 32], i64)>>),
    Write(Write),
    Stop,
}

impl Writer {
    pub(super) fn start(connector: Connector, health: Arc<Health>) -> std::io::Result<Self> {
        let (queue, waiting) = mpsc::channel(MAX_QUEUED_WRITES);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = thread::Builder::new().name("store-writer".to_owned()).spawn(move || {
            let session = Session {
                health: Arc::clone(&health),
                connection: WriterConnection::new(connector, health),
                is_prepared: false,
                lock_waits: LockWaits::default(),
            };
            LocalSet::new().block_on(&runtime, session.serve(waiting));
        })?;
        Ok(Self { queue, thread: std::sync::Mutex::new(Some(thread)) })
    }

    /// Creates the schema. Returns the database's secret, which is `fresh` if the database is new, and a number that is
    /// unique to this server.
    pub(super) async fn prepare(&self, fresh: [u8; 32]) -> DbResult<([u8; 32], i64)> {
        let (caller, answer) = oneshot::channel();
        // If the writer has ended, no answer arrives.
        let _ended = self.queue.send(Message::Prepare(fresh, caller)).await;
        answer.await.unwrap_or(Err(Failure::Unanswered))
    }

    /// Queues a write. Once queued it completes, even if its caller stops waiting.
    pub(super) fn push(&self, write: Write) -> Result<(), NotDone> {
        self.queue.try_send(Message::Write(write)).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => NotDone::Full,
            mpsc::error::TrySendError::Closed(_) => NotDone::Broken,
        })
    }

    /// Lets the writer finish the queued writes, and returns its thread, to be joined.
    pub(super) async fn stop(&self) -> Option<JoinHandle<()>> {
        // If the writer has ended already, there is nothing to wait for.
        let _ended = self.queue.send(Message::Stop).await;
        self.thread.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
    }
}

/// The state of the writer's loop, across connections.
struct Session {
    health: Arc<Health>,
    connection: WriterConnection,
    /// `true` once the schema exists. Before that, no connection is of use.
    is_prepared: bool,
    lock_waits: LockWaits,
}

impl Session {
    async fn serve(mut self, mut waiting: mpsc::Receiver<Message>) {
        loop {
            let next = tokio::select! {
                next = waiting.recv() => next,
                // Also while no writes arrive: a server without a connection is not ready, and so gets none.
                () = sleep(LOOK_INTERVAL) => {
                    if self.is_prepared {
                        self.connection.look().await;
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
    }

    async fn prepare(&mut self, fresh: [u8; 32]) -> DbResult<([u8; 32], i64)> {
        let mut db = self.connection.open_unprepared().await?;
        // Creating an index on a large table may take long, and so may waiting for another server's migration.
        let answer_timeout = db.set_answer_timeout(Duration::MAX);
        let secret = migrations::prepare(&db, fresh).await?;
        db.set_answer_timeout(answer_timeout);
        let server = db.value(SERVER, &[]).await?;
        self.connection.begin(db);
        self.is_prepared = true;
        Ok((secret, server))
    }

    /// Runs all `writes` in one transaction, then answers each. A write that would undo the others runs alone.
    async fn commit(&mut self, writes: Vec<Write>) {
        let of_group = self.lock_waits.of_group();
        let mut alone = self.commit_together(writes, of_group).await;
        let now = stopwatch();
        let first = self.lock_waits.of_first(now);
        let mut lock_wait = first;
        for _ in 0..MAX_WAITS_FOR_LOCKS {
            let (mut locked_out, mut in_a_row) = (Vec::new(), HashMap::<i64, usize>::new());
            // In the order of arrival, because the first has waited longest. A caller that has gone either repeats its
            // write or does not need it.
            for write in alone.into_iter().filter(|write| !write.is_abandoned()) {
                let tenant = write.tenant().map(Tenant::number);
                if tenant.is_some_and(|tenant| in_a_row.get(&tenant) == Some(&MAX_LOCKED_OUT)) {
                    locked_out.push(write);
                    continue;
                }
                let left = self.commit_together(vec![write], lock_wait).await;
                if let Some(tenant) = tenant {
                    let before = in_a_row.get(&tenant).copied().unwrap_or_default();
                    in_a_row.insert(tenant, if left.is_empty() { 0 } else { before + 1 });
                }
                locked_out.extend(left);
                if !locked_out.is_empty() {
                    lock_wait = LockWait::Short;
                }
            }
            alone = locked_out;
            if alone.len() < 2 {
                lock_wait = of_group;
            }
        }
        self.lock_waits.note(alone.is_empty(), first, now);
        for write in alone {
            tracing::warn!("a write was not done: someone holds its rows locked");
            write.refuse(Failure::Conflict);
        }
    }

    /// Runs writes in one transaction, and answers them. Returns the writes that must be retried alone; a single write
    /// is returned if its rows are locked.
    async fn commit_together(&mut self, mut writes: Vec<Write>, lock_wait: LockWait) -> Vec<Write> {
        let (mut alone, mut conflicts) = (Vec::new(), 0);
        while !writes.is_empty() {
            let stopped = match self.transact(&mut writes, lock_wait).await {
                Ok(outcomes) => {
                    let later = self.answer(writes, outcomes);
                    writes = later;
                    continue;
                }
                Err(stopped) => stopped,
            };
            let is_group = writes.len() > 1;
            match stopped {
                Stopped::By { at, .. } if is_group => alone.push(writes.remove(at)),
                Stopped::By { outcome, .. } => {
                    self.answer(std::mem::take(&mut writes), vec![outcome]);
                }
                // When two groups deadlock, one of them completes, so a retry of the other one can succeed.
                Stopped::Failed(failure) if failure.is_deadlock() && conflicts < MAX_CONFLICTS => {
                    conflicts += 1;
                    sleep(Duration::from_millis(u64::from(fastrand::u32(1..=5 * conflicts)))).await;
                }
                Stopped::InDoubt => writes.drain(..).for_each(Write::leave_in_doubt),
                Stopped::Failed(failure) if failure.is_of_connection() => {
                    tracing::debug!(error = %failure, "writes were not done: no connection");
                    writes.drain(..).for_each(|write| write.refuse(Failure::Unreachable));
                }
                Stopped::Failed(failure) if is_group || failure.is_conflict() => {
                    // It is unknown which write caused the failure, so each is retried alone.
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

    /// Answers the writes that have an outcome, and returns the writes that must be retried.
    fn answer(&self, writes: Vec<Write>, outcomes: Vec<WriteOutcome>) -> Vec<Write> {
        let kept = writes.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_kept());
        let (changes, orders) = kept
            .fold((0, 0), |(changes, orders), (write, _)| (changes + 1, orders + write.orders()));
        // Counted before the first answer, because its caller may check the counts.
        if changes > 0 {
            self.health.commits.fetch_add(1, Ordering::Relaxed);
            self.health.changes.fetch_add(changes, Ordering::Relaxed);
            self.health.orders.fetch_add(orders, Ordering::Relaxed);
        }
        let mut later = Vec::new();
        for (write, outcome) in writes.into_iter().zip(outcomes) {
            match outcome {
                WriteOutcome::Later => later.push(write),
                outcome => write.answer(outcome),
            }
        }
        later
    }

    /// Runs one transaction. Returns `Ok` only if it is known to be committed.
    async fn transact(
        &mut self,
        writes: &mut [Write],
        lock_wait: LockWait,
    ) -> Result<Vec<WriteOutcome>, Stopped> {
        // Whatever prevents a connection (a changed password, a primary that became a standby), nothing was done.
        let db = self.connection.take().await.map_err(|_| Failure::Unreachable)?;
        // Boxed once per group, because the future of a group's work is too large to be part of this one.
        let outcomes = match Box::pin(group::write(&db, lock_wait, writes)).await {
            Ok(outcomes) => outcomes,
            Err(stopped) => {
                // If the connection has failed, there is no point in waiting for another answer.
                if !stopped.is_of_connection() && db.run("ROLLBACK").await.is_ok() {
                    self.connection.put_back(db);
                } else {
                    self.connection.abandon(&db);
                }
                return Err(stopped);
            }
        };
        // The answers of all statements were read and none was an error, so the transaction is not aborted. A COMMIT of
        // an aborted transaction would answer ROLLBACK without an error.
        match db.run("COMMIT").await {
            Ok(()) => {
                self.connection.put_back(db);
                Ok(outcomes)
            }
            Err(failure) if !failure.is_of_connection() => {
                // PostgreSQL itself reports that nothing was committed.
                self.connection.put_back(db);
                Err(Stopped::Failed(failure))
            }
            Err(failure) => {
                tracing::warn!(error = %failure, "the answer to a COMMIT was cut off");
                self.connection.abandon(&db);
                Err(Stopped::InDoubt)
            }
        }
    }
}

impl Drop for Session {
    /// Runs at the end, even after a panic, because a server without a writer must end.
    fn drop(&mut self) {
        self.health.is_closed.store(true, Ordering::Release);
    }
}
