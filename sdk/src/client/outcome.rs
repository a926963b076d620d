//! The outcome of a write: whether this call executed it or an earlier one did.

use http::{HeaderMap, HeaderName, StatusCode};
use parcelo_types::{Operation, internal::header};

/// The call that executed a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// This call executed it. (Every read has this outcome too.)
    Created,
    /// An earlier call with the same idempotency key executed it; this is that call's response.
    Replayed,
}

/// Parses the outcome from its header, or else from the status: a service that only follows the specification
/// distinguishes 201 from 200.
pub(super) fn outcome(
    operation: Option<Operation>,
    status: StatusCode,
    headers: &HeaderMap,
) -> Outcome {
    static REPLAYED: HeaderName = HeaderName::from_static(header::IDEMPOTENT_REPLAYED);
    let is_replayed = headers.get(&REPLAYED).is_some_and(|value| value == "true");
    let creates = matches!(operation, Some(Operation::CreateOrder | Operation::SubmitManifest));
    if is_replayed || (creates && status == StatusCode::OK) {
        Outcome::Replayed
    } else {
        Outcome::Created
    }
}
