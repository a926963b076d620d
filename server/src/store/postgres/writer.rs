//! The writer: one task that owns one connection. It takes all that waits into one transaction, so one
//! COMMIT serves many orders.
//!
//! A COMMIT whose answer was cut off may have been done or not, and callers are answered just that. Who repeats a write
//! under its key is answered exactly: the insert of the key waits for the transaction in doubt.

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
    writer_connection::{Health, WriterConnection},
    writes::{Stopped, Verdict, Write},
};
use crate::{clock::stopwatch, domain::Tenant};

/// Writes that may wait; more are refused.
const MAX_QUEUED_WRITES: usize = 4_096;
/// The most writes of one transaction: the first of them waits for the last.
const MAX_WRITES_PER_COMMIT: usize = 256;
/// How often a group that stood in the way of another server's, and that in its, is tried again.
const MAX_CONFLICTS: u32 = 20;
/// How often a write waits alone for rows that someone else holds locked, 1.5 s each time: with the wait of its group
/// before that, less than its caller waits. The writes beside it do not, and of several only the first waits so long:
/// a lock that keeps many out (a table's, a count's that all of a tenant's orders add to) would stop all others' for minutes.
const MAX_WAITS_FOR_LOCKS: u32 = 2;
/// Of a tenant's writes so many are found locked out one after the other before the others are not tried: they most likely
/// want the same row, and each would wait for it in turn.
const MAX_LOCKED_OUT: usize = 3;
/// A server's number, from the database's own randomness.
const SERVER: &str = "SELECT ('x' || substr(md5(gen_random_uuid()::text), 1, 16))::bit(64)::bigint";
/// How often the connection is looked at while no write comes.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The way to the writer, which ends with the last of it.
pub(super) struct Writer {
    queue: mpsc::Sender<Message>,
    thread: std::sync::Mutex<Option<JoinHandle<()>>>,
}

enum Message {
    /// The first: makes the schema.
    Prepare([u8; 32], oneshot::Sender<DbResult<([u8; 32], i64)>>),
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
                health: Arc::clone(&health),
                connection: WriterConnection::new(connector, health),
                is_prepared: false,
                lock_waits: LockWaits::default(),
            };
            LocalSet::new().block_on(&runtime, session.serve(waiting));
        })?;
        Ok(Self { queue, thread: std::sync::Mutex::new(Some(thread)) })
    }

    /// Makes the schema and returns the database's secret, which is `fresh` if it is new, and a number that no other server
    /// has.
    pub(super) async fn prepare(&self, fresh: [u8; 32]) -> DbResult<([u8; 32], i64)> {
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
    health: Arc<Health>,
    connection: WriterConnection,
    /// Whether the schema is there, without which no connection is of use.
    is_prepared: bool,
    lock_waits: LockWaits,
}

impl Session {
    async fn serve(mut self, mut waiting: mpsc::Receiver<Message>) {
        loop {
            let next = tokio::select! {
                next = waiting.recv() => next,
                // Also while no write comes: without a connection the server is not ready, and gets none.
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
        // An index on a large table takes as long as it takes, and so does waiting for another server's.
        let answer_timeout = db.set_answer_timeout(Duration::MAX);
        let secret = migrations::prepare(&db, fresh).await?;
        db.set_answer_timeout(answer_timeout);
        let server = db.value(SERVER, &[]).await?;
        self.connection.begin(db);
        self.is_prepared = true;
        Ok((secret, server))
    }

    /// Does all of `writes` in one transaction, but those that would undo the others' alone, then answers
    /// each.
    async fn commit(&mut self, writes: Vec<Write>) {
        let of_group = self.lock_waits.of_group();
        let mut alone = self.commit_together(writes, of_group).await;
        let now = stopwatch();
        let first = self.lock_waits.of_first(now);
        let mut lock_wait = first;
        for _ in 0..MAX_WAITS_FOR_LOCKS {
            let (mut locked_out, mut in_a_row) = (Vec::new(), HashMap::<i64, usize>::new());
            // In the order in which they came: the first has waited longest. Who has gone repeats it, or does not want it.
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

    /// Does writes in one transaction, and answers them. Those that are to be tried alone come back; one that was
    /// alone does when its rows are locked.
    async fn commit_together(&mut self, mut writes: Vec<Write>, lock_wait: LockWait) -> Vec<Write> {
        let (mut alone, mut conflicts) = (Vec::new(), 0);
        while !writes.is_empty() {
            let stopped = match self.transact(&mut writes, lock_wait).await {
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
                Stopped::InDoubt => writes.drain(..).for_each(Write::leave_in_doubt),
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
    async fn transact(
        &mut self,
        writes: &mut [Write],
        lock_wait: LockWait,
    ) -> Result<Vec<Verdict>, Stopped> {
        // Whatever forbids it (a password that was changed, a primary that became a standby), nothing was done.
        let db = self.connection.take().await.map_err(|_| Failure::Unreachable)?;
        // Boxed, once a group: all that a group does is too large to be a part of this future.
        let verdicts = match Box::pin(group::write(&db, lock_wait, writes)).await {
            Ok(verdicts) => verdicts,
            Err(stopped) => {
                // Of what fails with its connection no further answer is waited for.
                if !stopped.is_of_connection() && db.run("ROLLBACK").await.is_ok() {
                    self.connection.put_back(db);
                } else {
                    self.connection.abandon(&db);
                }
                return Err(stopped);
            }
        };
        // Every statement's answer was read and none was an error, so the transaction is not aborted: a
        // COMMIT of an aborted one would answer ROLLBACK without an error.
        match db.run("COMMIT").await {
            Ok(()) => {
                self.connection.put_back(db);
                Ok(verdicts)
            }
            Err(failure) if !failure.is_of_connection() => {
                // PostgreSQL says itself that it was not done.
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
    /// At its end, and also when it panics: a server without a writer is to end.
    fn drop(&mut self) {
        self.health.is_closed.store(true, Ordering::Release);
    }
}
