//! Checks at the end of a test.

use super::{MockServer, exactly_once, expect};

impl MockServer {
    /// Fails the test if something was not done exactly once ([`MockServer::assert_exactly_once`]), if a planned fault
    /// hit no request or one of webhooks no event, or if requests or faults were not as
    /// [expected](super::Requests::expect).
    ///
    /// ```should_panic
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use parcelo::Operation;
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::builder().verify_on_drop().start().await;
    /// server.faults().on(Operation::CreateOrder).nth(2).close();
    /// // ... and no second order is created.
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If a check finds an offence. The panic lists all of them.
    #[track_caller]
    pub fn verify(&self) {
        fail_with(&self.offences());
    }

    /// Returns the offences that [`MockServer::verify`] would list.
    pub(super) fn offences(&self) -> Vec<String> {
        let unused_faults = self.recorder.plans().unused_without_expectation();
        let unused_webhook_fault = self.dispatcher.unused_fault();
        let unused_webhook_fault = unused_webhook_fault
            .map(|fault| format!("a planned fault of webhooks hit no event: {fault}"));
        let unused = unused_faults.into_iter().chain(unused_webhook_fault).collect();
        [exactly_once::offences(self), unused, expect::offences(self)].concat()
    }

    /// Fails the test if an order was shipped twice: if an idempotency key created two parcels, if a parcel has no key,
    /// if one key created parcels with two API keys of an account within 24 hours, or if two parcels of an account have
    /// the same external order id. The last two checks ignore voided parcels.
    ///
    /// Boxes of one order that are shipped separately need different ids, such as `A-17/1`.
    ///
    /// # Panics
    ///
    /// If an order was shipped twice. The panic names the keys, orders and parcels.
    #[track_caller]
    pub fn assert_exactly_once(&self) {
        fail_with(&exactly_once::offences(self));
    }
}

/// Fails the test if there are offences.
#[track_caller]
pub(super) fn fail_with(offences: &[String]) {
    assert!(offences.is_empty(), "the mock server found:\n- {}", offences.join("\n- "));
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use parcelo_types::Operation;

    use crate::mock::MockServer;

    async fn start_with_unused_fault(verifies: bool) -> MockServer {
        let builder = MockServer::builder();
        let builder = if verifies { builder.verify_on_drop() } else { builder };
        let server = builder.start().await;
        server.faults().on(Operation::CreateOrder).nth(2).close();
        server
    }

    fn panic_message(run: impl FnOnce()) -> String {
        let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("it panics");
        panic.downcast_ref::<String>().cloned().unwrap_or_default()
    }

    #[tokio::test]
    async fn a_fault_that_hit_nothing_fails_the_test_on_drop() {
        let server = start_with_unused_fault(true).await;
        let text = panic_message(|| drop(server));
        assert!(text.contains("hit no request: CreateOrder no. 2"), "{text}");
        drop(start_with_unused_fault(false).await);
    }

    #[tokio::test]
    async fn an_unmet_expectation_fails_the_test_on_drop() {
        for (count, wrong) in [(0, 1), (1, 2), (2, 0)] {
            let server = MockServer::start().await;
            let expected = server.requests().of(Operation::Health).for_order("A-17");
            expected.expect(wrong..=wrong);
            server.requests().expect(count);
            for _ in 0..count {
                get(&server, "/api/v1/health?externalOrderId=A-17").await;
            }
            let text = panic_message(|| drop(server));
            let (start, end) = text.split_once(", got ").unwrap();
            assert!(start.ends_with(" of Health about A-17"), "{text}");
            let listed =
                "\n  GET /api/v1/health (no key): 401".repeat(usize::try_from(count).unwrap());
            assert_eq!(end, format!("{count}{listed}"));
        }
    }

    #[tokio::test]
    async fn met_expectations_pass_with_any_log() {
        for log in [0, 1, 10_000] {
            let server = MockServer::builder().request_log(log).start().await;
            get(&server, "/api/v1/health").await;
            server.requests().of(Operation::Health).expect(2); // from now on
            server.requests().of(Operation::CreateOrder).expect(..1);
            server.faults().on(Operation::Health).first(1).expect(1).reply(503);
            server.faults().on(Operation::CreateOrder).expect(0).close();
            get(&server, "/api/v1/health").await;
            get(&server, "/api/v1/health").await;
            server.verify();
        }
    }

    #[tokio::test]
    async fn a_fault_that_hit_too_many_or_too_few_fails_the_test() {
        let server = MockServer::start().await;
        server.faults().on(Operation::Health).expect(2..).reply(503);
        server.faults().on(Operation::CreateOrder).nth(1).expect(1).close();
        get(&server, "/api/v1/health").await;
        let text = panic_message(|| server.verify());
        let lines = [
            "- expected to hit at least 2 requests, hit 1: Health: answer 503\n",
            "- expected to hit 1 request, hit 0: CreateOrder no. 1: connection closed\n",
            "\n  GET /api/v1/health (no key): 503 [Health: answer 503]",
        ];
        assert!(lines.iter().all(|line| text.contains(line)), "{text}");
        server.faults().clear();
    }

    async fn get(server: &MockServer, path: &str) {
        let request = axum::http::Request::get(path).body(axum::body::Body::empty()).unwrap();
        tower::ServiceExt::oneshot(server.routes(), request).await.unwrap();
    }

    #[tokio::test]
    async fn a_failing_test_keeps_its_reason() {
        let servers = [start_with_unused_fault(true).await, start_with_unused_fault(true).await];
        servers[0].requests().expect(1);
        let run = move || {
            let _servers = servers;
            let text = String::from("the test's own reason");
            std::panic::panic_any(text);
        };
        assert_eq!(panic_message(run), "the test's own reason");
    }
}
