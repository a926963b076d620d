//! Delays of a store's calls, for tests. They belong to the thread, because each test runs on a separate one.

use std::{cell::RefCell, time::Duration};

/// Returns how long a call of a method is delayed.
type Delays = dyn FnMut(&'static str) -> Duration;

thread_local! {
    static CURRENT: RefCell<Option<Box<Delays>>> = const { RefCell::new(None) };
}

/// Delays the later calls of this thread's stores.
pub(crate) fn delay_by(delays: impl FnMut(&'static str) -> Duration + 'static) {
    CURRENT.set(Some(Box::new(delays)));
}

/// Makes a call after its delay.
pub(super) async fn around<T>(method: &'static str, call: impl Future<Output = T>) -> T {
    let delay = CURRENT.with_borrow_mut(|current| current.as_mut().map(|delays| delays(method)));
    if let Some(delay) = delay.filter(|delay| !delay.is_zero()) {
        tokio::time::sleep(delay).await;
    }
    call.await
}
