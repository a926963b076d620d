//! What must hold when a test ends.

use super::{MockServer, exactly_once};

/// Each tells, in words, what does not hold.
const CHECKS: [fn(&MockServer) -> Vec<String>; 2] = [exactly_once::offences, unused_faults];

impl MockServer {
    /// Fails the test when an idempotency key made two parcels, a parcel has no key, or a planned
    /// fault hit no request.
    ///
    /// ```should_panic
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use parcelo::Operation;
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::builder().verify_on_drop().start().await;
    /// server.faults().on(Operation::CreateOrder).nth(2).close();
    /// // ... and nobody creates a second order.
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When something does not hold; the message names it.
    pub fn verify(&self) {
        let offences: Vec<_> = CHECKS.iter().flat_map(|check| check(self)).collect();
        fail_with(&offences);
    }

    /// Fails the test when an idempotency key made two parcels, or a parcel has no key.
    ///
    /// # Panics
    ///
    /// When one did or has not; the message names keys and parcels.
    pub fn assert_exactly_once(&self) {
        fail_with(&exactly_once::offences(self));
    }
}

fn unused_faults(server: &MockServer) -> Vec<String> {
    let plans = server.faults().unused().into_iter();
    plans.map(|plan| format!("a planned fault hit no request: {plan}")).collect()
}

fn fail_with(offences: &[String]) {
    assert!(offences.is_empty(), "the mock server found:\n- {}", offences.join("\n- "));
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use parcelo::Operation;

    use crate::mock::MockServer;

    async fn with_unused_fault(verifies: bool) -> MockServer {
        let builder = MockServer::builder();
        let builder = if verifies { builder.verify_on_drop() } else { builder };
        let server = builder.start().await;
        server.faults().on(Operation::CreateOrder).nth(2).close();
        server
    }

    fn message(run: impl FnOnce()) -> String {
        let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("it panics");
        panic.downcast_ref::<String>().cloned().unwrap_or_default()
    }

    #[tokio::test]
    async fn a_fault_that_hit_nothing_fails_the_test_when_the_server_is_dropped() {
        let server = with_unused_fault(true).await;
        let said = message(|| drop(server));
        assert!(said.contains("hit no request: CreateOrder no. 2"), "{said}");
        drop(with_unused_fault(false).await);
    }

    #[tokio::test]
    async fn a_test_that_fails_already_keeps_its_reason() {
        let servers = [with_unused_fault(true).await, with_unused_fault(true).await];
        let run = move || {
            let _servers = servers;
            let text = String::from("the test's own reason");
            std::panic::panic_any(text);
        };
        assert_eq!(message(run), "the test's own reason");
    }
}
