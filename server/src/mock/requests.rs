//! Asking the log: which requests came, and how many.

use std::{fmt::Write, time::Duration};

use parcelo::{ApiKey, Operation};

use super::{
    MockServer,
    log::{Log, Recorded},
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
    log: &'a Log,
    operation: Option<Operation>,
    key: Option<ApiKey>,
}

impl MockServer {
    /// The requests so far.
    pub fn requests(&self) -> Requests<'_> {
        Requests { log: self.desk.log(), operation: None, key: None }
    }
}

impl Requests<'_> {
    /// Only those of an operation.
    pub fn of(self, operation: Operation) -> Self {
        Self { operation: Some(operation), ..self }
    }

    /// Only those with this key.
    pub fn with_key(self, key: &ApiKey) -> Self {
        Self { key: Some(key.clone()), ..self }
    }

    /// All of them, in the order in which they were answered.
    pub fn all(&self) -> Vec<Recorded> {
        self.log
            .read(|records| records.iter().filter(|record| self.selects(record)).cloned().collect())
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.log.read(|records| records.iter().filter(|record| self.selects(record)).count())
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

    fn selects(&self, record: &Recorded) -> bool {
        self.operation.is_none_or(|operation| record.operation == Some(operation))
            && self.key.as_ref().is_none_or(|key| record.key.as_ref() == Some(key))
    }

    /// A line for each of all requests, so that the one that was not expected is seen.
    fn in_words(&self) -> String {
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
