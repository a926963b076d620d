//! Requests that a test expects, counted as they come and checked at its end.

use std::collections::VecDeque;

use super::{MockServer, Requests, Times, log::Recorded, selection::Selection};

/// What tests expect.
#[derive(Debug, Default)]
pub(super) struct Expectations(Vec<Expectation>);

#[derive(Debug)]
struct Expectation {
    selection: Selection,
    times: Times,
    count: u64,
}

impl Expectations {
    pub(super) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts a request, which comes after the others.
    pub(super) fn count(&mut self, record: &Recorded, others: &VecDeque<Recorded>) {
        for expected in &mut self.0 {
            expected.count += u64::from(expected.selection.has(record, others));
        }
    }

    /// Those that are not met, in words.
    fn unmet(&self) -> Vec<String> {
        let unmet = self.0.iter().filter(|expected| !expected.times.allows(expected.count));
        let said = |one: &Expectation| {
            format!("expected {} of {}, got {}", one.times, one.selection, one.count)
        };
        unmet.map(said).collect()
    }
}

impl Requests<'_> {
    /// Expects so many of these requests from now on: `2`, `1..`, `..=3`. Checked when the server is dropped,
    /// unless the test fails already, and by [`MockServer::verify`].
    ///
    /// ```should_panic
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use parcelo::Operation;
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::start().await;
    /// server.requests().of(Operation::CreateOrder).for_order("A-17").expect(1);
    /// // ... and nobody creates it: "expected 1 request of CreateOrder about A-17, got 0".
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When no number is in the range.
    pub fn expect(self, times: impl Into<Times>) {
        let expected = Expectation { selection: self.selection, times: times.into(), count: 0 };
        self.log.expectations().0.push(expected);
    }
}

/// The expectations of requests and of faults that are not met, in words, with the requests that came.
pub(super) fn offences(server: &MockServer) -> Vec<String> {
    let mut offences = server.desk.log().expectations().unmet();
    offences.extend(server.desk.plans().unexpected());
    if let Some(last) = offences.last_mut() {
        last.push_str(&server.requests().in_words());
    }
    offences
}
