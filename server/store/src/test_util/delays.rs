//! Delays of a store's reads of a few rows, for tests. They belong to the thread, because each test runs on a separate
//! one.

use std::{cell::RefCell, time::Duration};

/// A function that returns how long the next read is delayed.
type Delays = dyn FnMut() -> Duration;

thread_local! {
    static CURRENT: RefCell<Option<Box<Delays>>> = const { RefCell::new(None) };
}

/// Delays the later reads of this thread's stores.
pub fn delay_by(delays: impl FnMut() -> Duration + 'static) {
    CURRENT.set(Some(Box::new(delays)));
}

/// Reads after its delay.
pub(crate) async fn around<T>(call: impl Future<Output = T>) -> T {
    let delay = CURRENT.with_borrow_mut(|current| current.as_mut().map(|delays| delays()));
    if let Some(delay) = delay.filter(|delay| !delay.is_zero()) {
        tokio::time::sleep(delay).await;
    }
    call.await
}
