//! Group commit: many writes, one transaction, one fsync.
//!
//! Each write has a savepoint, so that one which refuses or panics undoes only itself. No caller is answered
//! before the commit. That includes refusals: "this number exists" may rest on a row that another write of
//! the same group inserted, and if the commit fails, that row never existed.
//!
//! There are two kinds of write: changes that the domain decided, and plain calls (accounts, keys, purges).

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use rusqlite::Connection;
use tokio::sync::{Notify, oneshot};

use super::{
    CommitOutcome, apply,
    error::{is_busy, is_constraint, is_corrupt, is_fatal},
    health::{Health, Lost},
    living_keys::LivingKeys,
};

/// One write: what it does to the database, and how its caller is answered.
pub(super) trait WriteJob: Send {
    /// Writes, inside a savepoint.
    fn apply(&mut self, db: &Connection) -> rusqlite::Result<SavepointAction>;
    /// Answers the caller.
    fn answer(self: Box<Self>, result: JobResult);
    /// How many orders it writes.
    fn orders(&self) -> usize {
        0
    }
}

/// What is to be done with a write's savepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SavepointAction {
    /// The write stands.
    Release,
    /// The write refuses; whatever it did is undone.
    RollBack,
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobResult {
    /// It was done and is durable, or it refused and the reason is durable.
    Settled(SavepointAction),
    /// Another process held the database; nothing was done.
    Busy,
    /// It failed and is not acknowledged. Nothing was done, unless it was the commit's own fsync that
    /// failed: then the next start may find it done.
    Broken,
}

/// Changes on their way to the database.
pub(super) struct Mutation {
    ready: apply::Ready,
    outcome: CommitOutcome,
    has_enqueued: bool,
    keys: Arc<LivingKeys>,
    /// The row of its idempotency record.
    record: Option<i64>,
    /// Notified when an event was enqueued.
    dispatcher: Arc<Notify>,
    caller: oneshot::Sender<CommitOutcome>,
}

impl Mutation {
    pub(super) fn new(
        ready: apply::Ready,
        keys: Arc<LivingKeys>,
        dispatcher: Arc<Notify>,
    ) -> (Box<Self>, oneshot::Receiver<CommitOutcome>) {
        let (caller, answer) = oneshot::channel();
        let outcome = CommitOutcome::Broken;
        let (has_enqueued, record) = (false, None);
        let job = Self { ready, outcome, has_enqueued, keys, record, dispatcher, caller };
        (Box::new(job), answer)
    }
}

impl WriteJob for Mutation {
    fn apply(&mut self, db: &Connection) -> rusqlite::Result<SavepointAction> {
        (self.outcome, self.has_enqueued) = apply::apply(db, &self.keys, &self.ready)?;
        self.record = self.ready.keeps_record().then(|| self.keys.last_added());
        let done = matches!(self.outcome, CommitOutcome::Committed);
        Ok(if done { SavepointAction::Release } else { SavepointAction::RollBack })
    }

    fn answer(self: Box<Self>, result: JobResult) {
        if result == JobResult::Settled(SavepointAction::Release) {
            if let Some(row) = self.record {
                self.keys.committed(row);
            }
            if self.has_enqueued {
                self.dispatcher.notify_one();
            }
        }
        // A caller that has gone needs no answer.
        let _gone = self.caller.send(match result {
            JobResult::Settled(_) => self.outcome,
            JobResult::Busy => CommitOutcome::Busy,
            JobResult::Broken => CommitOutcome::Broken,
        });
    }

    fn orders(&self) -> usize {
        self.ready.orders()
    }
}

/// A plain call on its way to the database.
pub(super) struct PlainWrite<T, F> {
    run: F,
    result: Option<rusqlite::Result<T>>,
    caller: oneshot::Sender<PlainWriteOutcome<T>>,
}

/// What became of a plain call.
pub(super) enum PlainWriteOutcome<T> {
    Done(rusqlite::Result<T>),
    Busy,
    Broken,
}

impl<T, F> PlainWrite<T, F>
where
    T: Send + 'static,
    F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
{
    pub(super) fn new(run: F) -> (Box<Self>, oneshot::Receiver<PlainWriteOutcome<T>>) {
        let (caller, answer) = oneshot::channel();
        (Box::new(Self { run, result: None, caller }), answer)
    }
}

impl<T, F> WriteJob for PlainWrite<T, F>
where
    T: Send + 'static,
    F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
{
    fn apply(&mut self, db: &Connection) -> rusqlite::Result<SavepointAction> {
        match (self.run)(db) {
            Err(error) if is_constraint(&error) => {
                self.result = Some(Err(error));
                Ok(SavepointAction::RollBack)
            }
            done => {
                self.result = Some(Ok(done?));
                Ok(SavepointAction::Release)
            }
        }
    }

    fn answer(self: Box<Self>, result: JobResult) {
        let outcome = match (result, self.result) {
            (JobResult::Settled(_), Some(done)) => PlainWriteOutcome::Done(done),
            (JobResult::Busy, _) => PlainWriteOutcome::Busy,
            (JobResult::Settled(_) | JobResult::Broken, _) => PlainWriteOutcome::Broken,
        };
        // A caller that has gone needs no answer.
        let _gone = self.caller.send(outcome);
    }
}

/// Does all of `jobs` in one transaction, then answers each.
pub(super) fn commit(db: &Connection, health: &Health, mut jobs: Vec<Box<dyn WriteJob>>) {
    let results = results(db, health, &mut jobs);
    for (job, result) in jobs.into_iter().zip(results) {
        job.answer(result);
    }
}

fn results(db: &Connection, health: &Health, jobs: &mut [Box<dyn WriteJob>]) -> Vec<JobResult> {
    let mut excluded = Vec::new();
    while health.is_writable() {
        match transact(db, jobs, &excluded) {
            // A commit into a file that is no longer there is gone with the process.
            Ok(_) if !health.check_place() => break,
            Ok(results) => {
                count(health, &results, jobs);
                return results;
            }
            // A damaged page fails only the writes that touch it: the group is repeated without this one.
            // `ensure_rolled_back` rolls back here, in the guard: after such an error SQLite takes no
            // write before that, and where it fails the next arm ends the database.
            Err(Failed { error, by: Some(by) }) if is_corrupt(&error) && ensure_rolled_back(db) => {
                tracing::error!(%error, "a write met a page that is damaged, and was undone");
                excluded.push(by);
            }
            Err(Failed { error, .. }) => return vec![fail(db, health, &error); jobs.len()],
        }
    }
    vec![JobResult::Broken; jobs.len()]
}

/// What an error of the whole group means for all of it.
fn fail(db: &Connection, health: &Health, error: &rusqlite::Error) -> JobResult {
    let is_rolled_back = ensure_rolled_back(db);
    if is_fatal(error) || !is_rolled_back {
        health.end(Lost::Disk);
        tracing::error!(%error, "the database failed: it is read-only from now on");
    } else {
        tracing::warn!(%error, "a group of writes was rolled back");
    }
    if is_busy(error) { JobResult::Busy } else { JobResult::Broken }
}

/// Rolls the transaction back unless `SQLite` has done so; true if none is open any more. After some errors (a full
/// disk, an I/O error) `SQLite` does it by itself: then it is in autocommit mode again, and a `ROLLBACK` would fail.
fn ensure_rolled_back(db: &Connection) -> bool {
    db.is_autocommit() || run(db, "ROLLBACK").is_ok()
}

fn count(health: &Health, results: &[JobResult], jobs: &[Box<dyn WriteJob>]) {
    let kept = jobs
        .iter()
        .zip(results)
        .filter(|(_, result)| **result == JobResult::Settled(SavepointAction::Release));
    let orders: Vec<_> = kept.map(|(job, _)| job.orders()).collect();
    health.count(&orders);
}

/// An error of the whole group, and the write that brought it about.
struct Failed {
    error: rusqlite::Error,
    by: Option<usize>,
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self { error, by: None }
    }
}

/// Does all but those that are `excluded`, by their positions.
fn transact(
    db: &Connection,
    jobs: &mut [Box<dyn WriteJob>],
    excluded: &[usize],
) -> Result<Vec<JobResult>, Failed> {
    // Takes the write lock now: a lock that is first wanted by a later statement can fail with `BUSY` there, when
    // part of the group is done.
    run(db, "BEGIN IMMEDIATE")?;
    let results = jobs.iter_mut().enumerate().map(|(at, job)| {
        if excluded.contains(&at) {
            return Ok(JobResult::Broken);
        }
        run_job(db, job.as_mut()).map_err(|error| Failed { error, by: Some(at) })
    });
    let results = results.collect::<Result<_, _>>()?;
    run(db, "COMMIT")?;
    Ok(results)
}

/// Does one write; an error is one of the whole group.
fn run_job(db: &Connection, job: &mut dyn WriteJob) -> rusqlite::Result<JobResult> {
    // The savepoint is opened outside `catch_unwind`: a panic leaves it open, to be rolled back below.
    run(db, "SAVEPOINT one")?;
    // A connection is as usable after a panic as before: every statement is reset when it is dropped.
    match catch_unwind(AssertUnwindSafe(|| job.apply(db))) {
        Ok(Ok(SavepointAction::Release)) => {
            run(db, "RELEASE one")?;
            Ok(JobResult::Settled(SavepointAction::Release))
        }
        Ok(Ok(SavepointAction::RollBack)) => {
            undo(db, JobResult::Settled(SavepointAction::RollBack))
        }
        // In autocommit mode the transaction, savepoints and all, is gone: nothing of this group stands.
        Ok(Err(error)) if is_fatal(&error) || db.is_autocommit() => Err(error),
        Ok(Err(error)) => {
            tracing::error!(%error, "a write failed and was undone");
            undo(db, JobResult::Broken)
        }
        Err(_panic) => {
            tracing::error!("a write panicked and was undone");
            undo(db, JobResult::Broken)
        }
    }
}

fn undo(db: &Connection, result: JobResult) -> rusqlite::Result<JobResult> {
    run(db, "ROLLBACK TO one")?;
    run(db, "RELEASE one")?;
    Ok(result)
}

fn run(db: &Connection, sql: &str) -> rusqlite::Result<()> {
    db.prepare_cached(sql)?.execute([]).map(drop)
}
