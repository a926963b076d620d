//! Calls of the service from code that cannot wait.

use futures_util::FutureExt;
use tokio::task::unconstrained;

/// What the future of a call comes to; a store in memory answers at once. The runtime would
/// otherwise let a task that has done much in one go wait, whatever it asks for.
pub(super) fn at_once<T>(call: impl Future<Output = T>) -> T {
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
