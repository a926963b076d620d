//! Planning faults: what a test says, one line for each fault.

use std::time::Duration;

use parcelo::{ApiKey, ErrorCode, Operation};

use super::{
    MockServer, Reply, Times,
    exchange::Desk,
    plan::{Action, Cut, End, Moment, Plan, Spoilt, When},
};

/// The faults of a server.
///
/// Plans are asked in the order in which they were added. Latencies of several plans add up; of the
/// other faults a request meets one, from the first plan that is due, and the later plans stay for
/// other requests. Only requests of an [`Operation`] meet faults. One that is turned away before it
/// reaches its operation (a bad key, a window that is used up) is counted, and answered so.
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
pub struct Faults<'a>(&'a Desk);

/// A fault that is being planned: which requests, and before the operation is carried out, unless
/// said otherwise. A method that names a fault adds it.
#[derive(Debug)]
#[must_use = "nothing is planned before the fault is named"]
pub struct Fault<'a> {
    desk: &'a Desk,
    plan: Plan,
}

impl MockServer {
    /// The faults that requests meet; none at first.
    pub fn faults(&self) -> Faults<'_> {
        Faults(&self.desk)
    }
}

impl<'a> Faults<'a> {
    /// A fault of one operation.
    pub fn on(&self, operation: Operation) -> Fault<'a> {
        self.select(Some(operation))
    }

    /// A fault of every operation.
    pub fn on_any(&self) -> Fault<'a> {
        self.select(None)
    }

    /// Forgets all plans.
    pub fn clear(&self) {
        self.0.plans().clear();
    }

    /// The plans that no request has met yet, in words: a test that plans a fault wants it to
    /// happen.
    pub fn unused(&self) -> Vec<String> {
        self.0.plans().unused()
    }

    fn select(&self, operation: Option<Operation>) -> Fault<'a> {
        let plan = Plan {
            operation,
            key: None,
            order: None,
            when: When::Always,
            moment: Moment::Before,
            action: Action::Latency(Duration::ZERO),
            expected: None,
        };
        Fault { desk: self.0, plan }
    }
}

/// Which requests: all of them, unless one of these says otherwise. Of `nth`, `first` and `probability`
/// a fault has one at most.
impl Fault<'_> {
    /// Only the `n`th request, counted from 1 when the fault is planned.
    ///
    /// # Panics
    ///
    /// When `n` is 0, or the requests were chosen already.
    pub fn nth(self, n: u64) -> Self {
        assert!(n > 0, "nth counts from 1");
        self.when(When::Nth(n))
    }

    /// Only the first `n` requests.
    ///
    /// # Panics
    ///
    /// When `n` is 0, or the requests were chosen already.
    pub fn first(self, n: u64) -> Self {
        assert!(n > 0, "first counts from 1");
        self.when(When::First(n))
    }

    /// Each request with this probability, above 0 and up to 1; the server's seed decides which.
    ///
    /// # Panics
    ///
    /// When it is another number, or the requests were chosen already.
    pub fn probability(self, probability: f64) -> Self {
        assert!(probability > 0.0 && probability <= 1.0, "a probability is above 0 and up to 1");
        self.when(When::Sometimes(probability))
    }

    /// Only requests with this key; only they are counted.
    pub fn key(self, key: &ApiKey) -> Self {
        let plan = Plan { key: Some(key.clone()), ..self.plan };
        Self { plan, ..self }
    }

    /// Only requests about an order, by any of its names, as [`Requests::for_order`](super::Requests::for_order)
    /// knows them; only they are counted.
    ///
    /// ```
    /// # #[cfg(feature = "sdk")]
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
    /// # #[cfg(not(feature = "sdk"))]
    /// # fn main() {}
    /// ```
    pub fn for_order(self, name: &str) -> Self {
        let plan = Plan { order: Some(name.to_owned()), ..self.plan };
        Self { plan, ..self }
    }

    /// Expects that so many requests meet the fault: `2`, `1..`, `..=3`. Checked when the server is dropped,
    /// unless the test fails already, and by [`MockServer::verify`]; without it, that wants at least one.
    ///
    /// # Panics
    ///
    /// When no number is in the range.
    pub fn expect(self, times: impl Into<Times>) -> Self {
        let plan = Plan { expected: Some(times.into()), ..self.plan };
        Self { plan, ..self }
    }

    /// The operation is carried out, and then the fault happens: the caller does not learn what
    /// was done.
    pub fn after_commit(self) -> Self {
        Self { plan: Plan { moment: Moment::AfterCommit, ..self.plan }, ..self }
    }

    fn when(self, when: When) -> Self {
        let is_free = self.plan.when == When::Always;
        assert!(is_free, "of nth, first and probability a fault has one: plan two faults");
        Self { plan: Plan { when, ..self.plan }, ..self }
    }
}

/// What happens.
impl Fault<'_> {
    /// It takes longer, in real time: not the server's clock passes, but the runtime's.
    ///
    /// # Panics
    ///
    /// When it takes no longer.
    pub fn latency(self, latency: Duration) {
        assert!(!latency.is_zero(), "a latency of 0 does nothing");
        self.act(Action::Latency(latency));
    }

    /// The service answers with this error.
    pub fn error(self, code: ErrorCode) {
        self.end(End::Error(code));
    }

    /// The service answers that the window is used up, and for how long: in whole seconds, at
    /// least one.
    pub fn rate_limited(self, wait: Duration) {
        let seconds = u32::try_from(wait.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX);
        self.end(End::RateLimited(seconds.max(1)));
    }

    /// An answer of the test's own choice, with any status, headers and body, as a proxy in front of the
    /// service might give it: nothing of the service's is in it, and before the commit the service does not see the
    /// request, whatever its key. A number is a status.
    ///
    /// ```
    /// # #[cfg(feature = "sdk")]
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
    /// # #[cfg(not(feature = "sdk"))]
    /// # fn main() {}
    /// ```
    pub fn reply(self, reply: impl Into<Reply>) {
        self.end(End::Reply(reply.into()));
    }

    /// The connection is closed without an answer.
    pub fn close(self) {
        self.end(End::Cut(Cut::Closed));
    }

    /// The connection is reset (TCP RST) without an answer.
    pub fn reset_connection(self) {
        self.end(End::Cut(Cut::Reset));
    }

    /// The connection is closed in the middle of the answer's body. There is a body only when the
    /// operation is carried out, so it is.
    pub fn truncated_body(self) {
        self.end(End::Spoilt(Spoilt::Truncated));
    }

    /// The answer's body comes in pieces of 1 KiB, and each piece takes this long, in real time.
    /// The operation is carried out.
    ///
    /// # Panics
    ///
    /// When a piece takes no time.
    pub fn slow_body(self, each: Duration) {
        assert!(!each.is_zero(), "a body that takes 0 for each piece is not slow");
        self.end(End::Spoilt(Spoilt::Slow(each)));
    }

    /// The answer's body is broken JSON of a right length. The operation is carried out.
    pub fn malformed_json(self) {
        self.end(End::Spoilt(Spoilt::Malformed));
    }

    fn end(self, end: End) {
        self.act(Action::End(end));
    }

    fn act(self, action: Action) {
        self.desk.plans().add(Plan { action, ..self.plan });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_fault_that_contradicts_itself_or_does_nothing_is_not_planned() {
        let wrong: [fn(Fault<'_>); 9] = [
            |fault| fault.nth(1).first(2).close(),
            |fault| fault.first(2).probability(0.5).close(),
            |fault| fault.probability(0.5).nth(1).close(),
            |fault| fault.nth(0).close(),
            |fault| fault.first(0).close(),
            |fault| fault.probability(0.0).close(),
            |fault| fault.probability(f64::NAN).close(),
            |fault| fault.latency(Duration::ZERO),
            |fault| fault.slow_body(Duration::ZERO),
        ];
        let server = MockServer::start().await;
        for (place, plan) in wrong.into_iter().enumerate() {
            let planned = std::panic::AssertUnwindSafe(|| plan(server.faults().on_any()));
            assert!(std::panic::catch_unwind(planned).is_err(), "no. {place}");
        }
        assert!(server.faults().unused().is_empty());
    }
}
