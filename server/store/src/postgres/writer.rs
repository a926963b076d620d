//! The writer: one task that owns one connection. It runs all queued writes in one transaction, so that many orders
//! share a COMMIT.
//!
//! If the connection is cut before a COMMIT is answered, the transaction may or may not have been committed, and
//! callers get the result "outcome unknown". A caller that repeats its write under its key learns the outcome,
//! because the insert of the key waits until the first transaction has ended.

use std::{
    collections::HashMap,
    convert::identity,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use parcelo_domain::Tenant;
use parcelo_system::clock::monotonic_now;
use tokio::{
    sync::{mpsc, oneshot},
    time::sleep,
};

use super::{
    connection::{Connector, spawn_thread},
    error::{DbResult, Failure},
    group,
    lock_wait::{LockWait, LockWaits},
    migrations,
    write_queue::{RollbackReason, Write, WriteOutcome},
    writer_connection::{Health, WriterConnection},
};
use crate::write_error::WriteError;

/// Maximum number of queued writes; further writes are refused.
const MAX_QUEUED_WRITES: usize = 4_096;
/// Maximum number of writes in one transaction, because the first of them waits for the last.
const MAX_WRITES_PER_COMMIT: usize = 256;
/// Maximum number of retries of a deadlocked group.
const MAX_CONFLICTS: u32 = 20;
/// Maximum number of times that a write is retried alone when its rows are locked, for 1.5 s each time. Together with
/// the preceding wait of its group, this is shorter than the time that its caller waits. If several writes are locked
/// out, only the first waits this long: a lock that affects many (of a table, or of a count that all of a tenant's
/// orders update) would otherwise stop all other writes for minutes.
const MAX_WAITS_FOR_LOCKS: u32 = 2;
/// Maximum number of a tenant's writes in a row that may be locked out. Its other writes are then not tried, because
/// they most likely need the same row, and each would wait for it.
const MAX_LOCKED_OUT: usize = 3;
/// Draws a server's id from the database's randomness.
const DRAW_SERVER_ID: &str =
    "SELECT ('x' || substr(md5(gen_random_uuid()::text), 1, 16))::bit(64)::bigint";
/// Interval at which the connection is checked while no writes arrive.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// The handle to the writer, which stops when the last handle is dropped.
pub(super) struct Writer {
    /// The queued writes; `None` stops the writer.
    queue: mpsc::Sender<Option<Write>>,
}

/// The result of preparing a database for this server.
pub(super) struct Prepared {
    /// The database's secret.
    pub(super) secret: [u8; 32],
    /// A number that is unique to this server.
    pub(super) server: i64,
}

impl Writer {
    /// Starts the writer, which creates the schema first. `fresh_secret` becomes the secret of a new database.
    pub(super) async fn start(
        connector: Connector,
        health: Arc<Health>,
        fresh_secret: [u8; 32],
    ) -> DbResult<(Self, Prepared)> {
        let (queue, waiting) = mpsc::channel(MAX_QUEUED_WRITES);
        let (caller, prepared) = oneshot::channel();
        spawn_thread("store-writer", async move || {
            let connection = WriterConnection::new(connector, Arc::clone(&health));
            let mut writer = WriterLoop { health, connection, lock_waits: LockWaits::default() };
            let prepared = writer.prepare(fresh_secret).await;
            let is_prepared = prepared.is_ok();
            // A caller that has gone has dropped the queue.
            let _gone = caller.send(prepared);
            if is_prepared {
                writer.serve(waiting).await;
            }
        })?;
        let prepared = prepared.await.unwrap_or(Err(Failure::Broken))?;
        Ok((Self { queue }, prepared))
    }

    /// Queues a write. Once queued it completes, even if its caller stops waiting.
    pub(super) fn push(&self, write: Write) -> Result<(), WriteError> {
        self.queue.try_send(Some(write)).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => WriteError::Full,
            mpsc::error::TrySendError::Closed(_) => WriteError::Broken,
        })
    }

    /// Returns the number of queued writes.
    pub(super) fn queued(&self) -> u64 {
        (self.queue.max_capacity() - self.queue.capacity()) as u64
    }

    /// Returns `true` if the writer has ended, even by a panic: a server without a writer must end.
    pub(super) fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    /// Waits until the writer has finished the queued writes and ended.
    pub(super) async fn stop(&self) {
        // If the writer has ended already, there is nothing to wait for.
        let _ended = self.queue.send(None).await;
        self.queue.closed().await;
    }
}

/// The state of the writer's loop, across connections.
struct WriterLoop {
    health: Arc<Health>,
    connection: WriterConnection,
    lock_waits: LockWaits,
}

impl WriterLoop {
    async fn prepare(&mut self, fresh_secret: [u8; 32]) -> DbResult<Prepared> {
        let mut db = self.connection.connector.connect().await?;
        // Creating an index on a large table may take long, and so may waiting for another server's migration.
        let answer_timeout = db.set_answer_timeout(Duration::MAX);
        let secret = migrations::prepare(&db, fresh_secret).await?;
        db.set_answer_timeout(answer_timeout);
        let server = db.value(DRAW_SERVER_ID, &[]).await?;
        self.connection.put_back(db);
        Ok(Prepared { secret, server })
    }

    async fn serve(mut self, mut waiting: mpsc::Receiver<Option<Write>>) {
        let mut taken = Vec::new();
        loop {
            let count = tokio::select! {
                count = waiting.recv_many(&mut taken, MAX_WRITES_PER_COMMIT) => count,
                // A server without a connection is not ready and gets no writes, so a connection must be opened without
                // waiting for a write.
                () = sleep(CHECK_INTERVAL) => {
                    self.connection.ensure_open().await;
                    continue;
                }
            };
            let writes: Vec<_> = taken.drain(..).map_while(identity).collect();
            let is_last = count == 0 || writes.len() < count;
            if !writes.is_empty() {
                let started = monotonic_now();
                self.commit(writes).await;
                let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
                self.health.commit_micros.fetch_add(micros, Ordering::Relaxed);
            }
            if is_last {
                break;
            }
        }
    }

    /// Runs all `writes` in one transaction, then answers each. A write that would roll back the others is retried
    /// alone.
    async fn commit(&mut self, writes: Vec<Write>) {
        let group_wait = self.lock_waits.group_wait();
        let mut alone = self.commit_together(writes, group_wait).await;
        let now = monotonic_now();
        let first = self.lock_waits.first_wait(now);
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
                let still_locked = self.commit_together(vec![write], lock_wait).await;
                if let Some(tenant) = tenant {
                    let before = in_a_row.get(&tenant).copied().unwrap_or_default();
                    in_a_row.insert(tenant, if still_locked.is_empty() { 0 } else { before + 1 });
                }
                locked_out.extend(still_locked);
                if !locked_out.is_empty() {
                    lock_wait = LockWait::Short;
                }
            }
            alone = locked_out;
            if alone.len() < 2 {
                lock_wait = group_wait;
            }
        }
        self.lock_waits.record_outcome(alone.is_empty(), first, now);
        for write in alone {
            tracing::warn!("a write was not done: someone holds its rows locked");
            write.fail(Failure::Conflict);
        }
    }

    /// Runs writes in one transaction, and answers them. Returns the writes that must be retried alone; a single write
    /// is returned if its rows are locked.
    async fn commit_together(&mut self, mut writes: Vec<Write>, lock_wait: LockWait) -> Vec<Write> {
        let (mut alone, mut conflicts) = (Vec::new(), 0);
        while !writes.is_empty() {
            let rollback_reason = match self.transact(&mut writes, lock_wait).await {
                Ok(outcomes) => {
                    writes = self.answer(writes, outcomes);
                    continue;
                }
                Err(rollback_reason) => rollback_reason,
            };
            let is_group = writes.len() > 1;
            match rollback_reason {
                RollbackReason::OneWrite { at, .. } if is_group => alone.push(writes.remove(at)),
                RollbackReason::OneWrite { outcome, .. } => {
                    self.answer(std::mem::take(&mut writes), vec![outcome]);
                }
                // When two groups deadlock, one of them completes, so a retry of the other one can succeed.
                RollbackReason::Failed(failure)
                    if failure.can_retry_at_once() && conflicts < MAX_CONFLICTS =>
                {
                    conflicts += 1;
                    sleep(Duration::from_millis(u64::from(fastrand::u32(1..=5 * conflicts)))).await;
                }
                RollbackReason::Failed(failure) if failure.is_connection_error() => {
                    tracing::debug!(error = %failure, "writes failed with their connection");
                    writes.drain(..).for_each(|write| write.fail(failure.to_shared_failure()));
                }
                RollbackReason::Failed(failure) if is_group || failure.is_conflict() => {
                    // It is unknown which write caused the failure, so each is retried alone.
                    tracing::warn!(error = %failure, "a group of writes was rolled back");
                    alone.append(&mut writes);
                }
                RollbackReason::Failed(failure) => {
                    tracing::error!(error = %failure, "a write failed and was undone");
                    writes.drain(..).for_each(|write| write.fail(Failure::Broken));
                }
            }
        }
        alone
    }

    /// Answers the writes that have an outcome, and returns the writes that must be retried.
    fn answer(&self, writes: Vec<Write>, outcomes: Vec<WriteOutcome>) -> Vec<Write> {
        let committed = writes.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_committed());
        let (changes, orders) = committed
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
    ) -> Result<Vec<WriteOutcome>, RollbackReason> {
        // Whatever prevents a connection (a changed password, a primary that became a standby), nothing was done.
        let db = self.connection.take().await.map_err(|_| Failure::Unreachable)?;
        // Boxed once per group, because the future of a group's work is too large to be part of this one.
        let outcomes = match Box::pin(group::write(&db, lock_wait, writes)).await {
            Ok(outcomes) => outcomes,
            Err(rollback_reason) => {
                // If the connection has failed, there is no point in waiting for another answer.
                if !rollback_reason.is_connection_error() && db.run("ROLLBACK").await.is_ok() {
                    self.connection.put_back(db);
                } else {
                    self.connection.abandon(&db);
                }
                return Err(rollback_reason);
            }
        };
        // The answers of all statements were read and none was an error, so the transaction is not aborted. A COMMIT of
        // an aborted transaction would answer ROLLBACK without an error.
        let Err(failure) = db.run("COMMIT").await else {
            self.connection.put_back(db);
            return Ok(outcomes);
        };
        if failure.is_connection_error() {
            tracing::warn!(error = %failure, "the answer to a COMMIT was cut off");
            self.connection.abandon(&db);
            return Err(RollbackReason::Failed(Failure::OutcomeUnknown));
        }
        // PostgreSQL itself reports that nothing was committed.
        self.connection.put_back(db);
        Err(RollbackReason::Failed(failure))
    }
}
