//! The two kinds of write: changes that the core decided, and plain calls (accounts, keys, purge).

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{
    Commit, apply,
    error::is_constraint,
    group::{Applied, Fate, Work},
};

/// Changes on their way to the database.
pub(super) struct Mutation {
    ready: apply::Ready,
    outcome: Commit,
    caller: oneshot::Sender<Commit>,
}

impl Mutation {
    pub(super) fn new(ready: apply::Ready) -> (Box<Self>, oneshot::Receiver<Commit>) {
        let (caller, answer) = oneshot::channel();
        (Box::new(Self { ready, outcome: Commit::Broken, caller }), answer)
    }
}

impl Work for Mutation {
    fn apply(&mut self, db: &Connection) -> rusqlite::Result<Applied> {
        self.outcome = apply::apply(db, &self.ready)?;
        let done = matches!(self.outcome, Commit::Committed);
        Ok(if done { Applied::Keep } else { Applied::Undo })
    }

    fn answer(self: Box<Self>, fate: Fate) {
        // A caller that has gone needs no answer.
        let _gone = self.caller.send(match fate {
            Fate::Settled(_) => self.outcome,
            Fate::Busy => Commit::Busy,
            Fate::Broken => Commit::Broken,
        });
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
