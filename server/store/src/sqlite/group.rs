//! Group commit: many writes, one transaction, one fsync.
//!
//! No caller is answered before the commit, not even with a refusal: "this number exists" may be based on a row that
//! another write of the same group inserted, and if the commit fails, that row never existed.
//!
//! There are two kinds of write: changes that the domain decided, and plain calls (accounts, keys, purges).
//!
//! A write that stops half way undoes only itself. A plain call has a savepoint for that. Changes have none at first,
//! because it would be a third of an order's cost in SQL, and the reason for a refusal is nearly always found before
//! anything is written. If a panic, an error or a late refusal does stop changes half way (the connection has changed
//! rows since they began), the group is rolled back and repeated with a savepoint for each write. So a write may run
//! twice; the result of the last run counts.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
};

use parcelo_domain::Changes;
use rusqlite::Connection;
use tokio::sync::{Notify, oneshot};

use super::{
    CommitOutcome, apply,
    error::{is_busy, is_constraint, is_corrupt, is_fatal},
    health::{Health, ReadOnlyReason},
    key_index::KeyIndex,
    pending::Pending,
};
use crate::{CommitResult, write_error::WriteError};

/// A write: its statements, and the answer to its caller.
pub(super) trait QueuedWrite: Send {
    /// Executes the statements. It may be called again after a rollback.
    fn apply(&mut self, db: &Connection, pending: &mut Pending) -> rusqlite::Result<ApplyOutcome>;
    /// Answers the caller.
    fn answer(self: Box<Self>, result: WriteResult);
    /// Returns `true` if the write has a savepoint from the start. All pending data is written before the savepoint.
    fn needs_savepoint(&self) -> bool {
        true
    }
    /// Returns the number of orders that it writes.
    fn orders(&self) -> usize {
        0
    }
}

/// The result of executing a write's statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApplyOutcome {
    /// The write is part of the transaction.
    Applied,
    /// The write is refused, and everything it did is undone.
    Refused,
}

/// The outcome of a write. `Ok` is durable, and so is the reason for a refusal.
pub(super) type WriteResult = Result<ApplyOutcome, WriteError>;

/// Changes in the writer's queue.
pub(super) struct Mutation {
    changes: Changes,
    outcome: CommitOutcome,
    has_enqueued: bool,
    keys: Arc<KeyIndex>,
    /// The row of its idempotency record.
    record: Option<i64>,
    /// Notified when an event is enqueued.
    dispatcher: Arc<Notify>,
    caller: oneshot::Sender<CommitResult>,
}

impl Mutation {
    pub(super) fn new(
        changes: Changes,
        keys: Arc<KeyIndex>,
        dispatcher: Arc<Notify>,
    ) -> (Box<Self>, oneshot::Receiver<CommitResult>) {
        let (caller, answer) = oneshot::channel();
        let outcome = CommitOutcome::Broken;
        let (has_enqueued, record) = (false, None);
        let queued_write =
            Self { changes, outcome, has_enqueued, keys, record, dispatcher, caller };
        (Box::new(queued_write), answer)
    }
}

impl QueuedWrite for Mutation {
    fn apply(&mut self, db: &Connection, pending: &mut Pending) -> rusqlite::Result<ApplyOutcome> {
        (self.outcome, self.has_enqueued) =
            apply::apply(db, &self.keys, &mut self.changes, pending)?;
        let keeps_record = self.changes.idempotency_record.is_some();
        self.record = keeps_record.then(|| self.keys.last_added());
        let is_done = matches!(self.outcome, CommitOutcome::Committed);
        Ok(if is_done { ApplyOutcome::Applied } else { ApplyOutcome::Refused })
    }

    fn answer(self: Box<Self>, result: WriteResult) {
        if result == Ok(ApplyOutcome::Applied) {
            if let Some(row) = self.record {
                self.keys.mark_committed(row);
            }
            if self.has_enqueued {
                self.dispatcher.notify_one();
            }
        }
        // A caller that has gone needs no answer.
        let _gone = self.caller.send(match result {
            Ok(ApplyOutcome::Applied) => Ok(self.changes.into_body()),
            Ok(ApplyOutcome::Refused) => Err(self.outcome),
            Err(write_error) => Err(write_error.into()),
        });
    }

    fn needs_savepoint(&self) -> bool {
        false
    }

    fn orders(&self) -> usize {
        self.changes.order_count()
    }
}

/// A plain call in the writer's queue.
pub(super) struct PlainWrite<T, F> {
    run: F,
    result: Option<rusqlite::Result<T>>,
    caller: oneshot::Sender<PlainResult<T>>,
}

/// The result of a plain call, or the reason why it was not done.
type PlainResult<T> = Result<rusqlite::Result<T>, WriteError>;

impl<T, F> PlainWrite<T, F>
where
    T: Send + 'static,
    F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
{
    pub(super) fn new(run: F) -> (Box<Self>, oneshot::Receiver<PlainResult<T>>) {
        let (caller, answer) = oneshot::channel();
        (Box::new(Self { run, result: None, caller }), answer)
    }
}

impl<T, F> QueuedWrite for PlainWrite<T, F>
where
    T: Send + 'static,
    F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
{
    fn apply(&mut self, db: &Connection, _: &mut Pending) -> rusqlite::Result<ApplyOutcome> {
        match (self.run)(db) {
            Err(error) if is_constraint(&error) => {
                self.result = Some(Err(error));
                Ok(ApplyOutcome::Refused)
            }
            done => {
                self.result = Some(Ok(done?));
                Ok(ApplyOutcome::Applied)
            }
        }
    }

    fn answer(self: Box<Self>, result: WriteResult) {
        let Self { result: done, caller, .. } = *self;
        let answer = result.and_then(|_applied| done.ok_or(WriteError::Broken));
        // A caller that has gone needs no answer.
        let _gone = caller.send(answer);
    }
}

/// Runs all writes in one transaction, then answers each.
pub(super) fn commit(
    db: &Connection,
    health: &Health,
    mut queued_writes: Vec<Box<dyn QueuedWrite>>,
) {
    let results = commit_with_retries(db, health, &mut queued_writes);
    for (queued_write, result) in queued_writes.into_iter().zip(results) {
        queued_write.answer(result);
    }
}

/// Commits the writes, repeating the transaction with savepoints or without a failing write if necessary. Returns the
/// result of each write.
fn commit_with_retries(
    db: &Connection,
    health: &Health,
    queued_writes: &mut [Box<dyn QueuedWrite>],
) -> Vec<WriteResult> {
    let mut attempt = GroupAttempt { savepoints: Savepoints::WhereNeeded, excluded: Vec::new() };
    while health.is_writable() {
        let stopped = match transact(db, queued_writes, &attempt) {
            // A commit into a file that no longer exists is lost with the process.
            Ok(_) if !health.check_files() => break,
            Ok(results) => {
                count_commit(health, &results, queued_writes);
                return results;
            }
            Err(stopped) => stopped,
        };
        let is_rolled_back = ensure_rolled_back(db);
        match stopped {
            RollbackReason::PartiallyApplied if is_rolled_back => {
                attempt.savepoints = Savepoints::ForEach;
            }
            // A damaged page fails only the writes that touch it, so the group is repeated without this write. After
            // such an error SQLite accepts no write before a rollback.
            RollbackReason::Failed { error, by: Some(by) }
                if is_corrupt(&error) && is_rolled_back =>
            {
                tracing::error!(%error, "a write met a page that is damaged, and was undone");
                attempt.excluded.push(by);
            }
            RollbackReason::Failed { error, .. } => {
                return vec![fail_group(health, &error, is_rolled_back); queued_writes.len()];
            }
            RollbackReason::PartiallyApplied => {
                health.stop_writes(ReadOnlyReason::Disk);
                tracing::error!("a group could not be rolled back: it is read-only from now on");
            }
        }
    }
    vec![Err(WriteError::Broken); queued_writes.len()]
}

/// Returns the outcome of every write after an error that concerns the whole group.
fn fail_group(health: &Health, error: &rusqlite::Error, is_rolled_back: bool) -> WriteResult {
    let not_rolled_back = (!is_rolled_back).then_some(ReadOnlyReason::Disk);
    if let Some(reason) = ReadOnlyReason::after(error).or(not_rolled_back) {
        health.stop_writes(reason);
        tracing::error!(%error, "the database failed: it is read-only from now on");
    } else {
        tracing::warn!(%error, "a group of writes was rolled back");
    }
    Err(if is_busy(error) { WriteError::Busy } else { WriteError::Broken })
}

/// Rolls the transaction back unless `SQLite` has already done so. Returns `true` if no transaction is open any more.
/// After some errors (a full disk, an I/O error) `SQLite` rolls back by itself. The connection is then in autocommit
/// mode again, and a `ROLLBACK` would fail.
fn ensure_rolled_back(db: &Connection) -> bool {
    db.is_autocommit() || run(db, "ROLLBACK").is_ok()
}

fn count_commit(health: &Health, results: &[WriteResult], queued_writes: &[Box<dyn QueuedWrite>]) {
    let kept = queued_writes
        .iter()
        .zip(results)
        .filter(|(_, result)| **result == Ok(ApplyOutcome::Applied));
    let orders: Vec<_> = kept.map(|(queued_write, _)| queued_write.orders()).collect();
    health.count_commit(&orders);
}

/// The parameters of one attempt at a group.
struct GroupAttempt {
    savepoints: Savepoints,
    /// The positions of the writes that are left out.
    excluded: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Savepoints {
    WhereNeeded,
    ForEach,
}

/// The reason why a transaction is rolled back.
enum RollbackReason {
    /// A write stopped half way and had no savepoint.
    PartiallyApplied,
    /// An error of the whole group, and the write that caused it.
    Failed { error: rusqlite::Error, by: Option<usize> },
}

impl From<rusqlite::Error> for RollbackReason {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed { error, by: None }
    }
}

/// Runs the writes in one transaction and commits it. After an error the caller must roll back.
fn transact(
    db: &Connection,
    queued_writes: &mut [Box<dyn QueuedWrite>],
    attempt: &GroupAttempt,
) -> Result<Vec<WriteResult>, RollbackReason> {
    // Takes the write lock now, because a later statement that was the first to need it could fail with `BUSY`, after
    // part of the group is done.
    run(db, "BEGIN IMMEDIATE")?;
    let mut pending = Pending::default();
    let results = queued_writes.iter_mut().enumerate().map(|(at, queued_write)| {
        if attempt.excluded.contains(&at) {
            return Ok(Err(WriteError::Broken));
        }
        let by = |error| RollbackReason::Failed { error, by: Some(at) };
        if attempt.savepoints == Savepoints::WhereNeeded && !queued_write.needs_savepoint() {
            return run_without_savepoint(db, queued_write.as_mut(), &mut pending)
                .map_err(|error| error.map_or(RollbackReason::PartiallyApplied, by));
        }
        write_pending(db, mem::take(&mut pending))?;
        run_with_savepoint(db, queued_write.as_mut()).map_err(by)
    });
    let results = results.collect::<Result<_, _>>()?;
    write_pending(db, pending)?;
    run(db, "COMMIT")?;
    Ok(results)
}

/// Writes the pending data of several writes. If this meets a damaged page, the group is repeated with a savepoint for
/// each write. Each then writes only its share of the data, so that only the writes that touch the page fail.
fn write_pending(db: &Connection, pending: Pending) -> Result<(), RollbackReason> {
    pending.write(db).map_err(|error| match error {
        error if is_fatal(&error) && !is_corrupt(&error) => error.into(),
        _ => RollbackReason::PartiallyApplied,
    })
}

/// Runs one write without a savepoint. Fails with the error if it concerns the whole group, and with `None` if the
/// write stopped half way and must be rolled back.
fn run_without_savepoint(
    db: &Connection,
    queued_write: &mut dyn QueuedWrite,
    pending: &mut Pending,
) -> Result<WriteResult, Option<rusqlite::Error>> {
    let before = db.total_changes();
    // A connection is as usable after a panic as before, because every statement is reset when it is dropped.
    match catch_unwind(AssertUnwindSafe(|| queued_write.apply(db, pending))) {
        Ok(Ok(ApplyOutcome::Applied)) => Ok(Ok(ApplyOutcome::Applied)),
        Ok(Err(error)) if fails_whole_group(db, &error) => Err(Some(error)),
        _ if db.total_changes() != before => Err(None),
        undone => Ok(outcome_after_undo(undone)),
    }
}

/// Runs one write in a savepoint. An error that this returns concerns the whole group.
fn run_with_savepoint(
    db: &Connection,
    queued_write: &mut dyn QueuedWrite,
) -> rusqlite::Result<WriteResult> {
    // The savepoint is opened outside `catch_unwind`, so that a panic leaves it open, and it can be rolled back below.
    run(db, "SAVEPOINT one")?;
    let apply = || {
        let mut pending = Pending::default();
        let applied = queued_write.apply(db, &mut pending)?;
        if applied == ApplyOutcome::Applied {
            pending.write(db)?;
        }
        Ok(applied)
    };
    match catch_unwind(AssertUnwindSafe(apply)) {
        Ok(Ok(ApplyOutcome::Applied)) => {
            run(db, "RELEASE one")?;
            Ok(Ok(ApplyOutcome::Applied))
        }
        Ok(Err(error)) if fails_whole_group(db, &error) => Err(error),
        undone => {
            run(db, "ROLLBACK TO one")?;
            run(db, "RELEASE one")?;
            Ok(outcome_after_undo(undone))
        }
    }
}

/// Returns `true` if an error in one write concerns its whole group. In autocommit mode the transaction is gone with
/// its savepoints, so nothing that the group wrote stands.
fn fails_whole_group(db: &Connection, error: &rusqlite::Error) -> bool {
    is_fatal(error) || db.is_autocommit()
}

/// Returns the outcome of a write that left no trace.
fn outcome_after_undo(undone: thread::Result<rusqlite::Result<ApplyOutcome>>) -> WriteResult {
    match undone {
        Ok(Ok(applied)) => Ok(applied),
        Ok(Err(error)) => {
            tracing::error!(%error, "a write failed and was undone");
            Err(WriteError::Broken)
        }
        Err(_panic) => {
            tracing::error!("a write panicked and was undone");
            Err(WriteError::Broken)
        }
    }
}

fn run(db: &Connection, sql: &str) -> rusqlite::Result<()> {
    db.prepare_cached(sql)?.execute([]).map(drop)
}
