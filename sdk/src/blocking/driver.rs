//! The thread of a blocking client. It runs timers and connections; the call itself runs on the caller's
//! thread, which sleeps while there is nothing to do.
//!
//! The call runs on the caller's thread so that it may borrow. The runtime has a separate thread so that a caller
//! inside another runtime, whose thread it blocks, still makes progress.

use std::{
    convert::Infallible,
    pin::pin,
    sync::{
        Arc,
        mpsc::{SyncSender, sync_channel},
    },
    task::{Context, Poll, Wake, Waker},
    thread,
};

use futures_util::future::{Either, select};
use tokio::{
    runtime::{self, Handle},
    sync::mpsc,
    task::unconstrained,
};

use crate::client::{Error, ErrorKind, Texts};

/// The handle of the thread, which runs as long as a clone of this exists.
#[derive(Debug, Clone)]
pub(super) struct Driver {
    runtime: Handle,
    /// Nothing is sent through it: each side only notices when the other is dropped.
    thread: mpsc::Sender<Infallible>,
}

impl Driver {
    /// Starts the thread.
    pub(super) fn start() -> Result<Self, Error> {
        const NOT_STARTED: Texts = (
            "The client's thread could not be started.",
            "No se pudo iniciar el hilo del cliente.",
        );
        let start_error = |error| Error::config(NOT_STARTED).with_source(error);
        let runtime =
            runtime::Builder::new_current_thread().enable_all().build().map_err(start_error)?;
        let (thread, callers) = mpsc::channel(1);
        let driver = Self { runtime: runtime.handle().clone(), thread };
        let run = move || {
            // Moved in here, so that it is dropped before the runtime: callers must not use timers after the runtime
            // has ended.
            let mut callers = callers;
            runtime.block_on(callers.recv());
        };
        thread::Builder::new().name("parcelo".to_owned()).spawn(run).map_err(start_error)?;
        Ok(driver)
    }

    /// Runs a future on the calling thread.
    ///
    /// Errors when the driver's thread has ended, since the future could then wait forever.
    pub(super) fn wait<T>(&self, future: impl Future<Output = T>) -> Result<T, Error> {
        const ENDED: Texts = (
            "The client's thread has ended: make a new client.",
            "El hilo del cliente terminó: cree un cliente nuevo.",
        );
        let ended = || Error::new(ErrorKind::Network, ENDED);
        if self.thread.is_closed() {
            return Err(ended());
        }
        let _context = self.runtime.enter();
        // In a tokio task the future would spend the budget of that task, which is renewed only when the task
        // yields, and a blocked task never does.
        match block_on(unconstrained(select(pin!(self.thread.closed()), pin!(future)))) {
            Either::Right((output, _)) => Ok(output),
            Either::Left(_) => Err(ended().with(|inner| inner.may_have_executed = true)),
        }
    }
}

/// A value that a blocking method returns, converted from the result of its asynchronous twin.
pub(super) trait FromAsync<'a, Returned> {
    fn from_async(returned: Returned, driver: &'a Driver) -> Self;
}

/// Waits for the call, and converts its output.
impl<'a, T, Call> FromAsync<'a, Call> for Result<T, Error>
where
    Call: IntoFuture<Output = Self>,
{
    fn from_async(call: Call, driver: &'a Driver) -> Self {
        driver.wait(async { call.await })?
    }
}

/// Wakes the thread at the other end of the channel. Each call has a separate channel, since a call within a call
/// waits on the same thread.
struct ThreadWaker(SyncSender<()>);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        // If the channel is full, a wakeup is already waiting.
        let _sent = self.0.try_send(());
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let (waker, wakeups) = sync_channel(1);
    let waker = Waker::from(Arc::new(ThreadWaker(waker)));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        // The channel stays open as long as `waker` exists, so only a wakeup ends this wait.
        let _woken = wakeups.recv();
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, time::Duration};

    use futures_util::future::join;
    use tokio::time;

    use super::*;

    const ONE_MILLISECOND: Duration = Duration::from_millis(1);

    /// Sleeps by a timer of the runtime in which it is first polled.
    async fn sleep(time: Duration) {
        time::sleep(time).await;
    }

    #[test]
    fn a_thread_that_has_ended_is_an_error() {
        let (thread, callers) = mpsc::channel(1);
        let driver = Driver { thread, ..Driver::start().unwrap() };
        let ends = async {
            drop(callers);
            pending::<()>().await;
        };
        assert!(driver.wait(ends).unwrap_err().may_have_executed());
        let error = driver.wait(sleep(ONE_MILLISECOND)).unwrap_err();
        assert_eq!((error.kind(), error.may_have_executed()), (ErrorKind::Network, false));
    }

    #[test]
    fn the_thread_ends_with_the_last_clone() {
        let driver = Driver::start().unwrap();
        let (alive, ended) = std::sync::mpsc::channel();
        let held = alive.clone();
        drop(alive);
        driver.runtime.spawn(async move {
            let _held = held;
            pending::<()>().await;
        });
        let clone = driver.clone();
        drop(driver);
        clone.wait(sleep(ONE_MILLISECOND)).unwrap();
        drop(clone);
        assert_eq!(ended.recv(), Err::<(), _>(std::sync::mpsc::RecvError));
    }

    #[test]
    fn a_nested_wait_loses_no_wakeup_of_the_outer_one() {
        let driver = Driver::start().unwrap();
        let inner = async { driver.wait(sleep(20 * ONE_MILLISECOND)).unwrap() };
        // The first of them is done while the second holds the thread.
        driver.wait(join(sleep(ONE_MILLISECOND), inner)).unwrap();
    }

    #[tokio::test]
    async fn a_blocking_wait_has_no_cooperative_budget() {
        let driver = Driver::start().unwrap();
        for _ in 0..200 {
            driver.wait(sleep(Duration::ZERO)).unwrap();
        }
    }
}
