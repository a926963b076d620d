//! Calls of async methods from synchronous code, such as `KeyBuilder::issue`.

use futures_util::FutureExt;
use tokio::task::unconstrained;

/// The result of a call that completes without waiting, as every call of a store in memory does. `unconstrained`,
/// because tokio otherwise makes a task that has used up its budget wait, and the call would not be ready.
pub(super) fn resolve_now<T>(call: impl Future<Output = T>) -> T {
    #[expect(clippy::expect_used, reason = "a store in memory answers at once")]
    unconstrained(call).now_or_never().expect("a store in memory answers at once")
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
