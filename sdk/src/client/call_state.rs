//! The state of a call besides its last response. Every error of the call carries it.

use parcelo_types::IdempotencyKey;

use super::{Error, ErrorKind, StopReason, error::Texts, response::ResponseSummary};

/// The state of a call so far.
#[derive(Debug, Clone)]
pub(super) struct CallState {
    pub(super) attempts: u32,
    pub(super) idempotency_key: Option<IdempotencyKey>,
    /// Set if the call changes something.
    pub(super) is_write: bool,
    /// Set if an attempt sent its request, or may have.
    pub(super) was_sent: bool,
    /// Set if an attempt without a key ended with an unknown outcome. With a key, the key remembers that.
    pub(super) outcome_unknown: bool,
}

impl CallState {
    /// Returns `true` if the service may have executed the request, in this call or in an earlier one with the same
    /// key.
    pub(super) fn may_have_executed(&self) -> bool {
        let by_key =
            || self.idempotency_key.as_ref().is_some_and(IdempotencyKey::may_have_executed);
        self.is_write && (self.outcome_unknown || by_key())
    }

    /// Returns an error of the call.
    pub(super) fn error(&self, kind: ErrorKind, texts: Texts) -> Error {
        Error::new(kind, texts).with(|inner| {
            inner.attempts = self.attempts;
            inner.idempotency_key.clone_from(&self.idempotency_key);
            inner.may_have_executed = self.may_have_executed();
        })
    }

    /// Returns the error of the call for a response that cannot be used.
    pub(super) fn decode_error(&self, head: &ResponseSummary, texts: Texts) -> Error {
        self.error(ErrorKind::Decode, texts).with(|inner| {
            inner.status = Some(head.status.as_u16());
            inner.request_id = head.request_id();
            inner.stop_reason = Some(StopReason::Permanent);
        })
    }
}
