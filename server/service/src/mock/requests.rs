//! Queries of the request log.

use std::{fmt::Write, panic::Location, sync::Arc, time::Duration};

use parcelo_types::{ApiKey, Operation};

use super::{
    MockServer, Times,
    log::RequestLog,
    recorded_request::RecordedRequest,
    selection::{Predicate, Selection},
};

/// A query of the requests that a server has handled, or was handling when the client disconnected: the newest
/// 10,000, unless [`Builder::request_log`](super::Builder::request_log) sets another number.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use parcelo::Operation;
/// use parcelo_server::mock::MockServer;
///
/// let server = MockServer::start().await;
/// let key = server.key().issue();
/// server.requests().of(Operation::CreateOrder).with_key(&key).assert_count(0);
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Requests<'a> {
    log: &'a RequestLog,
    selection: Selection,
}

impl MockServer {
    /// Returns a query of all requests so far.
    pub fn requests(&self) -> Requests<'_> {
        Requests { log: self.recorder.log(), selection: Selection::default() }
    }
}

impl Requests<'_> {
    /// Selects only requests of this operation.
    pub fn of(self, operation: Operation) -> Self {
        self.narrow(|selection| Selection { operation: Some(operation), ..selection })
    }

    /// Selects only requests with this API key.
    pub fn with_key(self, key: &ApiKey) -> Self {
        self.narrow(|selection| Selection { key: Some(key.clone()), ..selection })
    }

    /// Selects only requests about an order, by any of its names: tracking number, external order id, idempotency key.
    /// A request has one of them in its path, query, headers or body; the others come from the request that created the
    /// order, while the log keeps it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), parcelo::Error> {
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::start().await;
    /// let client = server.client(&server.key().issue());
    /// let mut order = MockServer::order("SB-SUCCESS-0001");
    /// order.external_order_id = Some("A-17".into());
    /// let created = client.orders().create(&order).await?;
    /// client.tracking().get(&created.parcel.tracking_number).await?;
    /// server.requests().for_order("A-17").assert_count(2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn for_order(self, name: &str) -> Self {
        self.narrow(|selection| Selection { order: Some(name.to_owned()), ..selection })
    }

    /// Selects only requests with this header, whose name may be in any case, and this value. Credentials are not in
    /// the log: select a key by [`with_key`](Self::with_key).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), parcelo::Error> {
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::start().await;
    /// let client = server.client(&server.key().issue());
    /// client.orders().create(&MockServer::order("SB-SUCCESS-0001")).await?;
    /// server.requests().with_header("Content-Type", "application/json").assert_count(1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_header(self, name: &str, value: &str) -> Self {
        let description = format!("with {name}: {value}");
        let (name, value) = (name.to_owned(), value.to_owned());
        self.add_predicate(description, move |request| {
            request.header(&name) == Some(value.as_str())
        })
    }

    /// Selects only requests for which `predicate` returns `true`. It is called while the log is locked, so it must not
    /// query the log.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), parcelo::Error> {
    /// use parcelo_server::mock::{MockServer, RecordedRequest};
    ///
    /// let server = MockServer::start().await;
    /// let client = server.client(&server.key().issue());
    /// client.orders().create(&MockServer::order("SB-SUCCESS-0001")).await?;
    /// let is_to_ecuador = |request: &RecordedRequest| {
    ///     request.request.json().is_some_and(|order| order["receiver"]["address"]["country"] == "EC")
    /// };
    /// server.requests().matching(is_to_ecuador).assert_count(1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn matching(
        self,
        predicate: impl Fn(&RecordedRequest) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.add_predicate("matching a predicate".to_owned(), predicate)
    }

    fn add_predicate(
        mut self,
        description: String,
        holds: impl Fn(&RecordedRequest) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.selection.predicates.push(Predicate { description, holds: Arc::new(holds) });
        self
    }

    fn narrow(self, narrow: impl FnOnce(Selection) -> Selection) -> Self {
        Self { selection: narrow(self.selection), ..self }
    }

    /// Returns the requests in the order of their responses.
    pub fn all(&self) -> Vec<RecordedRequest> {
        self.log.read(|records| self.selection.filter(records).cloned().collect())
    }

    /// Returns the number of requests.
    pub fn count(&self) -> usize {
        self.log.read(|records| self.selection.filter(records).count())
    }

    /// Fails the test unless there are exactly `expected` requests.
    ///
    /// # Panics
    ///
    /// If there are more or fewer; the message lists all requests.
    #[track_caller]
    pub fn assert_count(&self, expected: usize) {
        let count = self.count();
        assert!(
            count == expected,
            "expected {expected} requests, got {count}:{}",
            self.describe_all()
        );
    }

    /// Waits until there are at least `count` requests, and returns them.
    ///
    /// # Panics
    ///
    /// If fewer have arrived within `timeout`, in real time. The message names the line of the call, since the panic's
    /// own line is in this crate.
    #[track_caller]
    pub fn wait_for(
        self,
        count: usize,
        timeout: Duration,
    ) -> impl Future<Output = Vec<RecordedRequest>> {
        let caller = Location::caller();
        async move {
            let mut added = self.log.watch();
            let enough = async { while self.count() < count && added.changed().await.is_ok() {} };
            let in_time = tokio::time::timeout(timeout, enough).await.is_ok();
            let all = self.all();
            assert!(
                in_time,
                "{caller}: expected {count} requests within {timeout:?}, got {}:{}",
                all.len(),
                self.describe_all()
            );
            all
        }
    }

    /// Expects this many of these requests from now on: `2`, `1..`, `..=3`. Checked when the server is dropped, unless
    /// the test is failing already, and by [`MockServer::verify`].
    ///
    /// ```should_panic
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use parcelo::Operation;
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::start().await;
    /// server.requests().of(Operation::CreateOrder).for_order("A-17").expect(1);
    /// // ... and it is never created: "expected 1 request of CreateOrder about A-17, got 0".
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If the range is empty.
    pub fn expect(self, times: impl Into<Times>) {
        self.log.expectations().add(self.selection, times.into());
    }

    /// Describes every request on a line, selected or not, so that a failed test shows the unexpected one.
    pub(super) fn describe_all(&self) -> String {
        let mut text = String::new();
        for record in self.log.read(Clone::clone) {
            let key = record.api_key.as_deref().unwrap_or("no key");
            let status = record.status.map_or("no answer".to_owned(), |status| status.to_string());
            // Writing to a `String` cannot fail.
            let _ = write!(text, "\n  {} {} ({key}): {status}", record.method, record.path);
            if !record.faults.is_empty() {
                let _ = write!(text, " [{}]", record.faults.join(", "));
            }
        }
        text
    }
}
