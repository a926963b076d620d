//! The table of doubt: every end that the creation of an order can have without the response that the service gives,
//! and whether the order is created nevertheless.

use parcelo_types::ErrorCode;

use super::{Piece, Step};
use crate::transport::Phase;

/// The end of a call that creates an order: what the client gets, and whether the service creates it.
///
/// To try other ends than those of [`call_ends`], make your own.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallEnd {
    /// The result that the client gets.
    pub step: Step,
    /// The execution by the service.
    pub execution: Execution,
}

/// The execution of a request whose call has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Execution {
    /// It is not executed.
    Never,
    /// It was executed.
    Done,
    /// It is executed later: before the next creation, or within ten minutes. Until then its parcel is not found.
    UnderWay,
}

impl CallEnd {
    /// Returns an end of a call.
    pub fn new(step: Step, execution: Execution) -> Self {
        Self { step, execution }
    }
}

/// Returns every end: the request was sent or not, executed or not, its response was read whole, in part or not at all,
/// and came from the service, from a proxy or from another program at its address. An end that leaves open whether the
/// order is created is there once for each [`Execution`].
///
/// See [`testing`](crate::testing) for an example.
pub fn call_ends() -> impl Iterator<Item = CallEnd> {
    let never = unexecuted().into_iter().map(|step| CallEnd::new(step, Execution::Never));
    let done = executed().into_iter().map(|step| CallEnd::new(step, Execution::Done));
    let open = undecided().into_iter().flat_map(|step| {
        [Execution::Never, Execution::Done, Execution::UnderWay]
            .map(|execution| CallEnd::new(step.clone(), execution))
    });
    never.chain(done).chain(open)
}

/// Returns the ends that rule out that this request was executed.
fn unexecuted() -> Vec<Step> {
    use ErrorCode::{
        AuthInvalidApiKey, AuthIpNotAllowed, IdempotencyConflict, NotFound,
        ParcelDuplicateTracking, RateLimitExceeded,
    };
    let phases = [Phase::NotSent, Phase::Refused, Phase::Untrusted].map(Step::Fail);
    let faults = ["receiver.phone", "body"].map(faulty_field);
    let codes = [
        AuthInvalidApiKey,
        AuthIpNotAllowed,
        NotFound,
        ParcelDuplicateTracking,
        IdempotencyConflict,
        RateLimitExceeded,
    ]
    .map(Step::refusal);
    let long_ban = Step::refusal(RateLimitExceeded).with_header("retry-after", "3600");
    let statuses = [302, 307, 400, 404, 422, 429].map(|status| Step::response(status, ""));
    [phases.into(), faults.into(), codes.into(), vec![long_ban], statuses.into()].concat()
}

/// Returns the response to an order with this invalid field.
pub(super) fn faulty_field(field: &str) -> Step {
    let fault = serde_json::json!({"field": field, "message": "Invalid.", "code": "INVALID"});
    let error = serde_json::json!({"code": "VALIDATION_FAILED", "message": "Invalid.",
        "details": {"errors": [fault]}});
    let body = serde_json::json!({"success": false, "error": error});
    Step::response(400, body.to_string()).by_service()
}

/// Returns the ends that say that the request was executed, and not which parcel it made.
fn executed() -> [Step; 2] {
    let unreadable = || Step::response(201, r#"{"success":true,"new":1}"#);
    [unreadable().by_service(), unreadable()]
}

/// Returns the ends that leave open whether the request was executed.
fn undecided() -> Vec<Step> {
    let phases = [Phase::Stale, Phase::MaybeSent, Phase::Timeout, Phase::NotHttp].map(Step::Fail);
    let begun = Piece::Bytes("{".into());
    let broken = [
        Step::Hang,
        Step::in_pieces(201, [begun.clone(), Piece::Break]),
        Step::in_pieces(201, [begun, Piece::Silence]),
        Step::in_pieces(400, [Piece::Break]),
    ];
    let contradictory = r#"{"success":false,"error":{"code":"INTERNAL_ERROR","message":"No."}}"#;
    let unreadable = [
        Step::response(201, contradictory),
        Step::response(201, ""),
        Step::response(200, "<html>"),
        Step::refusal(ErrorCode::IdempotencyInProgress),
        Step::refusal(ErrorCode::ServiceUnavailable).with_header("retry-after", "20"),
        Step::refusal(ErrorCode::InternalError),
    ];
    // A 409 without its code may have been IDEMPOTENCY_IN_PROGRESS.
    let statuses = [101, 303, 399, 408, 409, 419, 499, 500, 501, 503, 599, 799]
        .map(|status| Step::response(status, ""));
    [phases.into(), broken.into(), unreadable.into(), statuses.to_vec()].concat()
}

/// Generates one of [`call_ends`], and shrinks to simple ones.
#[cfg(feature = "proptest")]
impl proptest::arbitrary::Arbitrary for CallEnd {
    type Parameters = ();
    type Strategy = proptest::sample::Select<Self>;

    fn arbitrary_with((): ()) -> Self::Strategy {
        proptest::sample::select(call_ends().collect::<Vec<_>>())
    }
}
