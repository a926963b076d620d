//! The two kinds of write: changes that the domain decided, and plain calls (accounts, keys, purge).

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::{Notify, oneshot};

use super::{
    Commit, apply,
    error::is_constraint,
    group::{JobResult, Savepoint, WriteJob},
};

/// Changes on their way to the database.
pub(super) struct Mutation {
    ready: apply::Ready,
    outcome: Commit,
    /// Whether the outbox has something new, and who wants to know.
    told: (bool, Arc<Notify>),
    caller: oneshot::Sender<Commit>,
}

impl Mutation {
    pub(super) fn new(
        ready: apply::Ready,
        wake: Arc<Notify>,
    ) -> (Box<Self>, oneshot::Receiver<Commit>) {
        let (caller, answer) = oneshot::channel();
        let (outcome, told) = (Commit::Broken, (false, wake));
        (Box::new(Self { ready, outcome, told, caller }), answer)
    }
}

impl WriteJob for Mutation {
    fn apply(&mut self, db: &Connection) -> rusqlite::Result<Savepoint> {
        (self.outcome, self.told.0) = apply::apply(db, &self.ready)?;
        let done = matches!(self.outcome, Commit::Committed);
        Ok(if done { Savepoint::Keep } else { Savepoint::Undo })
    }

    fn answer(self: Box<Self>, result: JobResult) {
        if result == JobResult::Settled(Savepoint::Keep) && self.told.0 {
            self.told.1.notify_one();
        }
        // A caller that has gone needs no answer.
        let _gone = self.caller.send(match result {
            JobResult::Settled(_) => self.outcome,
            JobResult::Busy => Commit::Busy,
            JobResult::Broken => Commit::Broken,
        });
    }

    fn orders(&self) -> usize {
        self.ready.orders()
    }
}

/// A plain call on its way to the database.
pub(super) struct Call<T, F> {
    run: F,
    made: Option<rusqlite::Result<T>>,
    caller: oneshot::Sender<Called<T>>,
}

/// What became of a plain call.
pub(super) enum Called<T> {
    Done(rusqlite::Result<T>),
    Busy,
    Broken,
}

impl<T, F> Call<T, F>
where
    T: Send + 'static,
    F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
{
    pub(super) fn new(run: F) -> (Box<Self>, oneshot::Receiver<Called<T>>) {
        let (caller, answer) = oneshot::channel();
        (Box::new(Self { run, made: None, caller }), answer)
    }
}

impl<T, F> WriteJob for Call<T, F>
where
    T: Send + 'static,
    F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
{
    fn apply(&mut self, db: &Connection) -> rusqlite::Result<Savepoint> {
        match (self.run)(db) {
            Err(error) if is_constraint(&error) => {
                self.made = Some(Err(error));
                Ok(Savepoint::Undo)
            }
            made => {
                self.made = Some(Ok(made?));
                Ok(Savepoint::Keep)
            }
        }
    }

    fn answer(self: Box<Self>, result: JobResult) {
        let called = match (result, self.made) {
            (JobResult::Settled(_), Some(made)) => Called::Done(made),
            (JobResult::Busy, _) => Called::Busy,
            (JobResult::Settled(_) | JobResult::Broken, _) => Called::Broken,
        };
        // A caller that has gone needs no answer.
        let _gone = self.caller.send(called);
    }
}
