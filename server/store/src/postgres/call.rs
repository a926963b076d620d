//! Database calls that are queued for a connection. Callers never hold a connection. If a caller is dropped, its write
//! still completes, and the answer is discarded; a read that has not begun is skipped.

use tokio::sync::oneshot;

use futures_util::future::LocalBoxFuture;

use super::{
    connection::Connection,
    error::{DbResult, Failure},
};

/// A call whose result type is known only to its caller.
pub(super) trait Call: Send {
    /// Runs the call. If the call is repeated, the caller gets the result of the last run.
    fn run<'a>(&'a mut self, db: &'a Connection) -> LocalBoxFuture<'a, DbResult<()>>;
    /// Returns `true` if the caller has gone.
    fn is_abandoned(&self) -> bool;
    /// Sends the caller its result or the failure.
    fn answer(self: Box<Self>, outcome: DbResult<()>);
}

/// A call whose result type is known.
struct TypedCall<T, F> {
    run: F,
    result: Option<T>,
    caller: oneshot::Sender<DbResult<T>>,
}

/// Creates a call, and the receiver of its answer.
pub(super) fn new<T, F>(run: F) -> (Box<dyn Call>, oneshot::Receiver<DbResult<T>>)
where
    T: Send + 'static,
    F: AsyncFn(&Connection) -> DbResult<T> + Send + 'static,
{
    let (caller, answer) = oneshot::channel();
    (Box::new(TypedCall { run, result: None, caller }), answer)
}

impl<T, F> Call for TypedCall<T, F>
where
    T: Send,
    F: AsyncFn(&Connection) -> DbResult<T> + Send,
{
    fn run<'a>(&'a mut self, db: &'a Connection) -> LocalBoxFuture<'a, DbResult<()>> {
        Box::pin(async move {
            self.result = Some((self.run)(db).await?);
            Ok(())
        })
    }

    fn is_abandoned(&self) -> bool {
        self.caller.is_closed()
    }

    fn answer(self: Box<Self>, outcome: DbResult<()>) {
        let Self { result, caller, .. } = *self;
        // A caller that has gone needs no answer.
        let _gone = caller.send(outcome.and_then(|()| result.ok_or(Failure::Broken)));
    }
}
