//! Calls of async methods from synchronous code, such as `KeyBuilder::issue`.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

use tokio::task::unconstrained;

/// Blocks until a call returns. A store in memory completes without waiting, and PostgreSQL responds from other
/// threads, which continue while this one is blocked. The call is `unconstrained`, because tokio otherwise makes a task
/// that has used up its budget wait for its next turn, which would never come.
pub(super) fn block_on<T>(call: impl Future<Output = T>) -> T {
    let mut call = pin!(unconstrained(call));
    let waker = Waker::from(Arc::new(UnparkWaker(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match call.as_mut().poll(&mut context) {
            Poll::Ready(result) => return result,
            Poll::Pending => thread::park(),
        }
    }
}

/// A waker that unparks a thread.
struct UnparkWaker(Thread);

impl Wake for UnparkWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use crate::mock::MockServer;

    #[tokio::test]
    async fn many_keys_are_issued_without_yielding() {
        let server = MockServer::start().await;
        for _ in 0..500 {
            let _ = (server.key().issue(), server.carrier_key());
        }
    }
}
