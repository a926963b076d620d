//! Planning faults: the API for tests, with one line for each fault.

use std::time::Duration;

use parcelo_types::{ApiKey, ErrorCode, Operation, model::FieldFault};

use super::{
    MockServer, Reply, Times,
    fault_layer::Recorder,
    fault_plan::{Action, Corruption, Disconnect, FaultPlan, Replacement, Timing, Trigger},
};

/// The planned faults of a server.
///
/// Plans are consulted in the order in which they were added. Latencies of several plans add up. A request gets at most
/// one other fault, from the first plan that is due, and later plans wait for other requests. Only requests of an
/// [`Operation`] get faults. A request that is refused before it reaches its operation (a bad key, an exhausted rate
/// limit) counts, and gets that refusal as its response.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::time::Duration;
///
/// use parcelo::{ErrorCode, Operation};
/// use parcelo_server::mock::MockServer;
///
/// let server = MockServer::start().await;
/// server.faults().on(Operation::CreateOrder).nth(1).after_commit().reset_connection();
/// server.faults().on(Operation::CreateOrder).nth(2).rate_limited(Duration::from_secs(3));
/// server.faults().on_any().probability(0.1).error(ErrorCode::ServiceUnavailable);
/// assert_eq!(server.faults().unused().len(), 3);
/// # }
/// ```
#[derive(Debug)]
pub struct Faults<'a>(&'a Recorder);

/// A fault that is being planned. By default it hits every request, before the operation is executed. The method that
/// names the fault adds it.
#[derive(Debug)]
#[must_use = "the method that names the fault plans it"]
pub struct Fault<'a> {
    recorder: &'a Recorder,
    plan: FaultPlan,
}

impl MockServer {
    /// Returns the planned faults; none at first.
    pub fn faults(&self) -> Faults<'_> {
        Faults(&self.recorder)
    }
}

impl<'a> Faults<'a> {
    /// Starts to plan a fault for requests of this operation.
    pub fn on(&self, operation: Operation) -> Fault<'a> {
        self.select(Some(operation))
    }

    /// Starts to plan a fault for requests of every operation.
    pub fn on_any(&self) -> Fault<'a> {
        self.select(None)
    }

    /// Deletes all plans.
    pub fn clear(&self) {
        self.0.plans().clear();
    }

    /// Returns descriptions of the plans that have hit no request yet.
    pub fn unused(&self) -> Vec<String> {
        self.0.plans().unused()
    }

    fn select(&self, operation: Option<Operation>) -> Fault<'a> {
        Fault { recorder: self.0, plan: FaultPlan::new(operation) }
    }
}

/// Methods that select the requests; by default all. A fault has at most one of `nth`, `first` and `probability`.
impl Fault<'_> {
    /// Hits only the `n`th request from now on, counted from 1.
    ///
    /// # Panics
    ///
    /// If `n` is 0, or the fault has `nth`, `first` or `probability` already.
    #[track_caller]
    pub fn nth(self, n: u64) -> Self {
        self.trigger(Trigger::Nth(n))
    }

    /// Hits only the first `n` requests.
    ///
    /// # Panics
    ///
    /// If `n` is 0, or the fault has `nth`, `first` or `probability` already.
    #[track_caller]
    pub fn first(self, n: u64) -> Self {
        self.trigger(Trigger::First(n))
    }

    /// Hits each request with this probability, above 0 and at most 1. The server's seed determines the requests.
    ///
    /// # Panics
    ///
    /// If it is another number, or the fault has `nth`, `first` or `probability` already.
    #[track_caller]
    pub fn probability(self, probability: f64) -> Self {
        self.trigger(Trigger::Probability(probability))
    }

    /// Selects only requests with this API key; others are not counted.
    pub fn key(self, key: &ApiKey) -> Self {
        let plan = FaultPlan { key: Some(key.clone()), ..self.plan };
        Self { plan, ..self }
    }

    /// Selects only requests about an order, by any of the names that
    /// [`Requests::for_order`](super::Requests::for_order) describes; others are not counted.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), parcelo::Error> {
    /// use parcelo::{ErrorCode, Operation};
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::start().await;
    /// let bad = server.faults().on(Operation::CreateOrder).for_order("SB-SUCCESS-0002");
    /// bad.error(ErrorCode::ParcelDuplicateTracking);
    /// let client = server.client(&server.key().issue());
    /// assert!(client.orders().create(&MockServer::order("SB-SUCCESS-0001")).await.is_ok());
    /// assert!(client.orders().create(&MockServer::order("SB-SUCCESS-0002")).await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn for_order(self, name: &str) -> Self {
        let plan = FaultPlan { order: Some(name.to_owned()), ..self.plan };
        Self { plan, ..self }
    }

    /// Expects the fault to hit this many requests: `2`, `1..`, `..=3`. Checked when the server is dropped, unless the
    /// test is failing already, and by [`MockServer::verify`], which otherwise expects at least one.
    ///
    /// # Panics
    ///
    /// If the range is empty. The method that names the fault panics if `nth` or `first` allow fewer.
    pub fn expect(self, times: impl Into<Times>) -> Self {
        let plan = FaultPlan { expected: Some(times.into()), ..self.plan };
        Self { plan, ..self }
    }

    /// Executes the operation before the fault: the caller does not learn its result.
    pub fn after_commit(self) -> Self {
        Self { plan: FaultPlan { timing: Timing::AfterCommit, ..self.plan }, ..self }
    }

    #[track_caller]
    fn trigger(self, trigger: Trigger) -> Self {
        Self { plan: expect_valid(self.plan.with_trigger(trigger)), ..self }
    }
}

/// Methods that name the fault and plan it.
impl Fault<'_> {
    /// Delays the response, in the runtime's time: the server's clock does not move.
    ///
    /// # Panics
    ///
    /// If the latency is 0.
    #[track_caller]
    pub fn latency(self, latency: Duration) {
        self.add(Action::Latency(latency));
    }

    /// Responds with this error of the service.
    #[track_caller]
    pub fn error(self, code: ErrorCode) {
        self.replace(Replacement::Error(code));
    }

    /// Responds with 429 and this time to wait, rounded to whole seconds and at least one.
    #[track_caller]
    pub fn rate_limited(self, wait: Duration) {
        self.replace(Replacement::rate_limited(wait));
    }

    /// Responds with any status, headers and body, like a proxy in front of the service. The response contains nothing
    /// from the service. Unless [`after_commit`](Self::after_commit) was called, the request does not reach the
    /// service, even with a bad key. A number converts to a status.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use parcelo::{Operation, Retry};
    /// use parcelo_server::mock::{MockServer, Reply};
    ///
    /// let server = MockServer::start().await;
    /// let html = Reply::status(502).header("content-type", "text/html").body("<h1>Bad Gateway</h1>");
    /// server.faults().on(Operation::CreateOrder).after_commit().reply(html);
    /// let client = server.client(&server.key().issue()).with_retry(Retry::none());
    /// let error = client.orders().create(&MockServer::order("SB-SUCCESS-0001")).await.unwrap_err();
    /// assert!(error.may_have_executed() && error.status() == Some(502));
    /// # }
    /// ```
    #[track_caller]
    pub fn reply(self, reply: impl Into<Reply>) {
        self.replace(Replacement::Reply(reply.into()));
    }

    /// Closes the connection without a response.
    #[track_caller]
    pub fn close(self) {
        self.replace(Replacement::Disconnect(Disconnect::Close));
    }

    /// Resets the connection (TCP RST) without a response.
    #[track_caller]
    pub fn reset_connection(self) {
        self.replace(Replacement::Disconnect(Disconnect::Reset));
    }

    /// Closes the connection in the middle of the response's body. The operation is executed, because otherwise there
    /// would be no body.
    #[track_caller]
    pub fn truncated_body(self) {
        self.replace(Replacement::Corrupted(Corruption::Truncated));
    }

    /// Sends the response's body in chunks of 1 KiB, each after this delay, in the runtime's time. The operation is
    /// executed.
    ///
    /// # Panics
    ///
    /// If the delay is 0.
    #[track_caller]
    pub fn slow_body(self, each: Duration) {
        self.replace(Replacement::Corrupted(Corruption::Slow(each)));
    }

    /// Responds with malformed JSON and a correct `content-length`. The operation is executed.
    #[track_caller]
    pub fn malformed_json(self) {
        self.replace(Replacement::Corrupted(Corruption::Malformed));
    }

    #[track_caller]
    fn replace(self, replacement: Replacement) {
        self.add(Action::Replace(replacement));
    }

    #[track_caller]
    fn add(self, action: Action) {
        let plan = expect_valid(self.plan.with_action(action));
        self.recorder.plans().add(plan);
    }
}

/// Returns the plan, or fails the test with what is wrong in it.
#[track_caller]
fn expect_valid(plan: Result<FaultPlan, FieldFault>) -> FaultPlan {
    #[expect(clippy::panic, reason = "a test's own fault is wrong; documented")]
    match plan {
        Ok(plan) => plan,
        Err(fault) => panic!("{}", fault.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_contradictory_or_ineffective_fault_is_not_planned() {
        let wrong: [fn(Fault<'_>); 11] = [
            |fault| fault.nth(1).first(2).close(),
            |fault| fault.first(2).probability(0.5).close(),
            |fault| fault.probability(0.5).nth(1).close(),
            |fault| fault.nth(0).close(),
            |fault| fault.first(0).close(),
            |fault| fault.probability(0.0).close(),
            |fault| fault.probability(f64::NAN).close(),
            |fault| fault.latency(Duration::ZERO),
            |fault| fault.slow_body(Duration::ZERO),
            |fault| fault.expect(2).nth(1).close(),
            |fault| fault.first(2).expect(3..).close(),
        ];
        let server = MockServer::start().await;
        for (index, plan) in wrong.into_iter().enumerate() {
            let planned = std::panic::AssertUnwindSafe(|| plan(server.faults().on_any()));
            assert!(std::panic::catch_unwind(planned).is_err(), "fault {index}");
        }
        assert!(server.faults().unused().is_empty());
    }
}
