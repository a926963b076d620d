//! The two kinds of write: changes that the core decided, and plain calls (accounts, keys, purge).

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::{Notify, oneshot};

use super::{
    Commit, apply,
    error::is_constraint,
    group::{Applied, Fate, Work},
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

impl Work for Mutation {
    fn apply(&mut self, db: &Connection) -> rusqlite::Result<Applied> {
        (self.outcome, self.told.0) = apply::apply(db, &self.ready)?;
        let done = matches!(self.outcome, Commit::Committed);
        Ok(if done { Applied::Keep } else { Applied::Undo })
    }

    fn answer(self: Box<Self>, fate: Fate) {
        if fate == Fate::Settled(Applied::Keep) && self.told.0 {
            self.told.1.notify_one();
        }
        // A caller that has gone needs no answer.
        let _gone = self.caller.send(match fate {
            Fate::Settled(_) => self.outcome,
            Fate::Busy => Commit::Busy,
            Fate::Broken => Commit::Broken,
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

impl<T, F> Work for Call<T, F>
where
    T: Send + 'static,
    F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
{
    fn apply(&mut self, db: &Connection) -> rusqlite::Result<Applied> {
        match (self.run)(db) {
            Err(error) if is_constraint(&error) => {
                self.made = Some(Err(error));
                Ok(Applied::Undo)
            }
            made => {
                self.made = Some(Ok(made?));
                Ok(Applied::Keep)
            }
        }
    }

    fn answer(self: Box<Self>, fate: Fate) {
        let called = match (fate, self.made) {
            (Fate::Settled(_), Some(made)) => Called::Done(made),
            (Fate::Busy, _) => Called::Busy,
            (Fate::Settled(_) | Fate::Broken, _) => Called::Broken,
        };
        // A caller that has gone needs no answer.
        let _gone = self.caller.send(called);
    }
}
