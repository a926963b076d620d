//! A call of the database on its way to a connection. No caller ever holds a connection: one that goes away
//! leaves a call behind. A write completes, and is answered to no one; a read that has not begun is left out.

use tokio::sync::oneshot;

use futures_util::future::LocalBoxFuture;

use super::{
    connection::Connection,
    error::{DbResult, Failure},
};

/// A call whose answer has a type that only its caller knows.
pub(super) trait Call: Send {
    /// Makes it; when it is made again, its last answer counts.
    fn run<'a>(&'a mut self, db: &'a Connection) -> LocalBoxFuture<'a, DbResult<()>>;
    /// Whether its caller has gone.
    fn is_abandoned(&self) -> bool;
    /// Answers the caller: what it has found, or why it failed.
    fn answer(self: Box<Self>, outcome: DbResult<()>);
}

struct Typed<T, F> {
    run: F,
    found: Option<T>,
    caller: oneshot::Sender<DbResult<T>>,
}

/// A call, and where its answer comes.
pub(super) fn new<T, F>(run: F) -> (Box<dyn Call>, oneshot::Receiver<DbResult<T>>)
where
    T: Send + 'static,
    F: AsyncFn(&Connection) -> DbResult<T> + Send + 'static,
{
    let (caller, answer) = oneshot::channel();
    (Box::new(Typed { run, found: None, caller }), answer)
}

impl<T, F> Call for Typed<T, F>
where
    T: Send,
    F: AsyncFn(&Connection) -> DbResult<T> + Send,
{
    fn run<'a>(&'a mut self, db: &'a Connection) -> LocalBoxFuture<'a, DbResult<()>> {
        Box::pin(async move {
            self.found = Some((self.run)(db).await?);
            Ok(())
        })
    }

    fn is_abandoned(&self) -> bool {
        self.caller.is_closed()
    }

    fn answer(self: Box<Self>, outcome: DbResult<()>) {
        let Self { found, caller, .. } = *self;
        // A caller that has gone needs no answer.
        let _gone = caller.send(outcome.and_then(|()| found.ok_or(Failure::Unanswered)));
    }
}
