//! Asking the log: which requests came, and how many.

use std::{fmt::Write, time::Duration};

use parcelo::{ApiKey, Operation};

use super::{
    MockServer,
    log::{Log, Recorded},
    selection::Selection,
};

/// The requests that a server has answered, or was to answer when the client left: the newest
/// 10,000, unless [`Builder::request_log`](super::Builder::request_log) says otherwise.
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
    pub(super) log: &'a Log,
    pub(super) selection: Selection,
}

impl MockServer {
    /// The requests so far.
    pub fn requests(&self) -> Requests<'_> {
        Requests { log: self.desk.log(), selection: Selection::default() }
    }
}

impl Requests<'_> {
    /// Only those of an operation.
    pub fn of(self, operation: Operation) -> Self {
        self.narrow(|selection| Selection { operation: Some(operation), ..selection })
    }

    /// Only those with this key.
    pub fn with_key(self, key: &ApiKey) -> Self {
        self.narrow(|selection| Selection { key: Some(key.clone()), ..selection })
    }

    /// Only those about an order, by any of its names: tracking number, external order id, idempotency key.
    /// A request says one of them in its path, query, headers or body; its other names are known from the
    /// request that created it, as long as that is remembered.
    ///
    /// ```
    /// # #[cfg(feature = "sdk")]
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
    /// # #[cfg(not(feature = "sdk"))]
    /// # fn main() {}
    /// ```
    pub fn for_order(self, name: &str) -> Self {
        self.narrow(|selection| Selection { order: Some(name.to_owned()), ..selection })
    }

    fn narrow(self, narrow: impl FnOnce(Selection) -> Selection) -> Self {
        Self { selection: narrow(self.selection), ..self }
    }

    /// All of them, in the order in which they were answered.
    pub fn all(&self) -> Vec<Recorded> {
        self.log.read(|records| self.selection.among(records).cloned().collect())
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.log.read(|records| self.selection.among(records).count())
    }

    /// Fails the test unless there are `expected`.
    ///
    /// # Panics
    ///
    /// When there are more or fewer.
    #[track_caller]
    pub fn assert_count(&self, expected: usize) {
        let count = self.count();
        assert!(count == expected, "{count} requests, not {expected}:{}", self.in_words());
    }

    /// Waits until there are at least `count`, and answers with them.
    ///
    /// # Panics
    ///
    /// When fewer have come within `most`, which is real time.
    pub async fn wait_for(self, count: usize, most: Duration) -> Vec<Recorded> {
        let mut added = self.log.watch();
        let enough = async { while self.count() < count && added.changed().await.is_ok() {} };
        let in_time = tokio::time::timeout(most, enough).await.is_ok();
        let all = self.all();
        assert!(in_time, "{} of {count} requests in {most:?}:{}", all.len(), self.in_words());
        all
    }

    /// A line for each of all requests, so that the one that was not expected is seen.
    pub(super) fn in_words(&self) -> String {
        let mut text = String::new();
        for record in self.log.read(Clone::clone) {
            let key = record.api_key.as_deref().unwrap_or("no key");
            let status = record.status.map_or("no answer".to_owned(), |status| status.to_string());
            // Writing to a text cannot fail.
            let _ = write!(text, "\n  {} {} ({key}): {status}", record.method, record.path);
            if !record.faults.is_empty() {
                let _ = write!(text, " [{}]", record.faults.join(", "));
            }
        }
        text
    }
}
