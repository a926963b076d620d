//! Calls of async methods from synchronous code, such as `KeyBuilder::issue`.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

use tokio::task::unconstrained;

/// The result of a call. One of a store in memory completes without waiting; PostgreSQL answers from threads of
/// its own, so blocking this one does not keep it from answering. `unconstrained`, because tokio otherwise makes a
/// task that has used up its budget wait for its next turn, which would not come.
pub(super) fn resolve_now<T>(call: impl Future<Output = T>) -> T {
    let mut call = pin!(unconstrained(call));
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match call.as_mut().poll(&mut context) {
            Poll::Ready(result) => return result,
            Poll::Pending => thread::park(),
        }
    }
}

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use crate::mock::MockServer;

    #[tokio::test]
    async fn any_number_of_keys_is_issued_in_one_go() {
        let server = MockServer::start().await;
        for _ in 0..500 {
            let _ = (server.key().issue(), server.carrier_key());
        }
    }
}
