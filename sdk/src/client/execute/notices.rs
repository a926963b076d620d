//! Reports of how a call and its attempts ended, to the observer and to the call's span.

use std::time::Duration;

use super::CallExecution;
use crate::client::{
    Attempt, Error, FailureClass, clock,
    retry::Decision,
    spans::{record_error, record_success},
};

impl CallExecution {
    /// Reports the end of the call: success, or the error if its response cannot be returned.
    pub(in crate::client) fn finish(&self, error: Option<&Error>) {
        let Some(response) = &self.response else { return };
        match error {
            Some(error) => record_error(&self.span, error),
            None => record_success(&self.span, self.state.attempts, response),
        }
        self.notify_observer(|attempt| Attempt {
            status: Some(response.head.status.as_u16()),
            request_id: response.head.request_id(),
            failure: error.map(|_| FailureClass::Permanent),
            kind: error.map(Error::kind),
            outcome: response.outcome.filter(|_| error.is_none()),
            may_have_executed: error.is_some_and(Error::may_have_executed),
            stopped: error.and_then(Error::stop_reason),
            ..attempt
        });
    }

    /// Records that the call failed after its response had begun.
    pub(in crate::client) fn record_error(&self, error: &Error) {
        record_error(&self.span, error);
    }

    pub(super) fn notify_failure(&self, error: &Error, class: FailureClass, decision: Decision) {
        let (wait, stopped) = match decision {
            Decision::Wait(wait) => (Some(wait), None),
            Decision::GiveUp(reason) => (None, Some(reason)),
        };
        self.notify_observer(|attempt| Attempt {
            status: error.status(),
            request_id: error.request_id().cloned(),
            failure: Some(class),
            kind: Some(error.kind()),
            may_have_executed: self.state.may_have_executed(),
            wait,
            stopped,
            ..attempt
        });
    }

    /// Notifies the observer that the call ends with an attempt that was not made.
    pub(super) fn notify_not_made(&self, error: &Error) {
        self.notify_observer(|attempt| Attempt {
            number: attempt.number.saturating_add(1),
            failure: Some(FailureClass::NotAdmitted),
            kind: Some(error.kind()),
            may_have_executed: error.may_have_executed(),
            took: Duration::ZERO,
            stopped: error.stop_reason(),
            ..attempt
        });
    }

    fn notify_observer(&self, complete: impl FnOnce(Attempt) -> Attempt) {
        let (Some(observer), Some(operation)) = (&self.client.shared.observer, self.operation)
        else {
            return;
        };
        (observer.0)(&complete(Attempt {
            operation,
            number: self.state.attempts,
            status: None,
            request_id: None,
            failure: None,
            kind: None,
            outcome: None,
            may_have_executed: false,
            queued: self.queued,
            took: clock::now().saturating_duration_since(self.attempt_started),
            wait: None,
            stopped: None,
        }));
    }
}
