//! The result of a write, with the idempotency key that makes it safe to repeat.

use parcelo::{IdempotencyKey, Outcome, Reply, model::RequestId};
use serde::{Serialize, Serializer};

use super::{CommandOutcome, table::Report};
use crate::texts::Text;

/// The result of a write, with the idempotency key that makes it safe to repeat.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WriteResult<T> {
    #[serde(serialize_with = "serialize_outcome")]
    pub(crate) outcome: Outcome,
    #[serde(flatten)]
    pub(crate) value: T,
    pub(crate) idempotency_key: Option<IdempotencyKey>,
    pub(crate) request_id: Option<RequestId>,
}

impl<T> From<Reply<T>> for WriteResult<T> {
    fn from(reply: Reply<T>) -> Self {
        let outcome = reply.outcome();
        let (idempotency_key, request_id) =
            (reply.meta().idempotency_key.clone(), reply.meta().request_id.clone());
        Self { outcome, value: reply.into_inner(), idempotency_key, request_id }
    }
}

impl<T> WriteResult<T>
where
    Self: Report + 'static,
{
    /// Returns the outcome of the command, with a note if the same request was carried out before.
    pub(crate) fn report(self, replayed: Text) -> CommandOutcome {
        let is_replayed = self.outcome == Outcome::Replayed;
        let done = CommandOutcome::report(self);
        if is_replayed { done.note(replayed) } else { done }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) fn serialize_outcome<S: Serializer>(
    outcome: &Outcome,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(outcome_code(*outcome))
}

/// Returns the outcome for programs.
pub(super) fn outcome_code(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Created => "created",
        Outcome::Replayed => "replayed",
    }
}
