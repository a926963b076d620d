//! The thread behind all calls that wait. It runs timers and connections; the call itself runs on the caller's thread,
//! which sleeps while there is nothing to do.
//!
//! The call runs on the caller's thread so that it may borrow. The runtime has a separate thread so that a caller
//! inside another runtime, whose thread it blocks, still makes progress.

use std::{
    future::pending,
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{SyncSender, sync_channel},
    },
    task::{Context, Poll, Wake, Waker},
    thread,
};

use tokio::{
    runtime::{self, Handle},
    task::unconstrained,
};

use crate::client::{Error, Texts};

/// The handle of the thread, which runs until the process ends.
#[derive(Debug, Clone)]
pub(super) struct Driver {
    runtime: Handle,
}

impl Driver {
    /// Returns the thread of this process. The first call starts it; if it fails, the next one tries again.
    pub(super) fn get() -> Result<Self, Error> {
        static DRIVER: Mutex<Option<Driver>> = Mutex::new(None);
        let mut driver = DRIVER.lock().unwrap_or_else(PoisonError::into_inner);
        let running = match driver.take() {
            Some(running) => running,
            None => Self::start()?,
        };
        Ok(driver.insert(running).clone())
    }

    fn start() -> Result<Self, Error> {
        const NOT_STARTED: Texts = (
            "The thread for connections could not be started.",
            "No se pudo iniciar el hilo de las conexiones.",
        );
        let start_error = |error| Error::config(NOT_STARTED).with_source(error);
        let runtime =
            runtime::Builder::new_current_thread().enable_all().build().map_err(start_error)?;
        let driver = Self { runtime: runtime.handle().clone() };
        let run = move || runtime.block_on(pending::<()>());
        thread::Builder::new().name("parcelo".to_owned()).spawn(run).map_err(start_error)?;
        Ok(driver)
    }

    /// Runs a future on the calling thread.
    pub(super) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        let _context = self.runtime.enter();
        // In a tokio task the future would spend the budget of that task, which is renewed only when the task
        // yields, and a blocked task never does.
        block_on(unconstrained(pin!(future)))
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
    use std::time::Duration;

    use futures_util::future::join;
    use tokio::time;

    use super::*;

    const ONE_MILLISECOND: Duration = Duration::from_millis(1);

    /// Sleeps by a timer of the runtime in which it is first polled.
    async fn sleep(time: Duration) {
        time::sleep(time).await;
    }

    #[test]
    fn all_calls_of_the_process_share_a_thread() {
        let id_of_thread = || {
            let driver = Driver::get().unwrap();
            let id = driver.runtime.spawn(async { thread::current().id() });
            driver.wait(id).unwrap()
        };
        let ids = [(); 8].map(|()| thread::spawn(id_of_thread));
        let ids = ids.map(|caller| caller.join().unwrap());
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    }

    #[test]
    fn a_nested_wait_loses_no_wakeup_of_the_outer_one() {
        let driver = Driver::start().unwrap();
        let inner = async { driver.wait(sleep(20 * ONE_MILLISECOND)) };
        // The first of them is done while the second holds the thread.
        driver.wait(join(sleep(ONE_MILLISECOND), inner));
    }

    #[tokio::test]
    async fn a_blocking_wait_has_no_cooperative_budget() {
        let driver = Driver::start().unwrap();
        for _ in 0..200 {
            driver.wait(sleep(Duration::ZERO));
        }
    }
}
