//! A test's expectations of requests, counted as they arrive and checked at its end.

use std::collections::VecDeque;

use super::{MockServer, Times, recorded_request::RecordedRequest, selection::Selection};

/// The expectations of a test.
#[derive(Debug, Default)]
pub(super) struct Expectations(Vec<Expectation>);

#[derive(Debug)]
struct Expectation {
    selection: Selection,
    times: Times,
    count: u64,
}

impl Expectations {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds an expectation, which counts requests from now on.
    pub(super) fn add(&mut self, selection: Selection, times: Times) {
        self.0.push(Expectation { selection, times, count: 0 });
    }

    /// Counts a request for each expectation that selects it. `others` are the earlier requests.
    pub(super) fn count(&mut self, record: &RecordedRequest, others: &VecDeque<RecordedRequest>) {
        for expected in &mut self.0 {
            expected.count += u64::from(expected.selection.matches(record, others));
        }
    }

    /// Returns descriptions of the expectations that are not met.
    fn unmet(&self) -> Vec<String> {
        let unmet = self.0.iter().filter(|expected| !expected.times.allows(expected.count));
        let describe = |unmet: &Expectation| {
            format!("expected {} of {}, got {}", unmet.times, unmet.selection, unmet.count)
        };
        unmet.map(describe).collect()
    }
}

/// Returns descriptions of the unmet expectations of requests and of faults, followed by all requests.
pub(super) fn offences(server: &MockServer) -> Vec<String> {
    let mut offences = server.recorder.log().expectations().unmet();
    offences.extend(server.recorder.plans().unmet_expectations());
    if let Some(last) = offences.last_mut() {
        last.push_str(&server.requests().describe_all());
    }
    offences
}
