//! The tracing spans of a call and of its attempts. They contain no secret and no personal data.

use std::time::Duration;

use parcelo_types::{Operation, model::RequestId};
use tracing::{Span, debug_span, field::Empty, info_span};
use url::Url;

use super::{
    Error, Outcome,
    attempt_error::AttemptError,
    request::{PreparedRequest, UnsentRequest},
    response::{ResponseSummary, ServiceResponse},
};

/// The parts of a successful response that traces and observers see.
#[derive(Debug)]
pub(super) struct ReportedResponse {
    pub(super) head: ResponseSummary,
    /// `None` for reads.
    pub(super) outcome: Option<Outcome>,
}

/// Returns the span of one attempt, with OpenTelemetry's names for HTTP. It has the path's template and not the
/// address, which contains tracking numbers.
pub(super) fn attempt_span(
    request: &PreparedRequest,
    base: &Url,
    number: u32,
    queued: Duration,
) -> Span {
    let PreparedRequest { method, template, .. } = request;
    debug_span!(
        "parcelo.attempt",
        otel.name = format_args!("{method} {template}"),
        otel.kind = "client",
        "http.request.method" = method.as_str(),
        "url.template" = template,
        "server.address" = base.host_str(),
        "server.port" = base.port_or_known_default(),
        "http.request.resend_count" = number.saturating_sub(1),
        queued_ms = queued.as_millis(),
        "http.response.status_code" = Empty,
        request_id = Empty,
        "error.type" = Empty,
    )
}

/// Records in the span how its attempt ended.
pub(super) fn record_result<T>(span: &Span, result: &Result<ServiceResponse<T>, AttemptError>) {
    if span.is_disabled() {
        return;
    }
    let (status, request_id) = match result {
        Ok(response) => (Some(response.status.as_u16()), response.summary().request_id()),
        Err(error) => {
            span.record("error.type", error.error_type());
            (error.status(), error.request_id())
        }
    };
    record_response(span, status, request_id.as_ref());
}

/// Returns the span of a call. Like that of an attempt, it does not contain the address.
pub(super) fn call_span(request: &UnsentRequest) -> Span {
    info_span!(
        "parcelo.call",
        operation = request.operation.map(Operation::name),
        "http.request.method" = request.method.as_str(),
        "url.template" = request.template,
        "http.response.status_code" = Empty,
        request_id = Empty,
        attempts = Empty,
        queued_ms = Empty,
        outcome = Empty,
        "error.type" = Empty,
        may_have_executed = Empty,
    )
}

/// Records in the span of a call that it succeeded after this many attempts.
pub(super) fn record_success(span: &Span, attempts: u32, response: &ReportedResponse) {
    if span.is_disabled() {
        return;
    }
    let ReportedResponse { head, outcome } = response;
    record_response(span, Some(head.status.as_u16()), head.request_id().as_ref());
    span.record("attempts", attempts)
        .record("outcome", outcome.map(|outcome| format!("{outcome:?}")));
}

/// Records in the span of a call that it failed.
pub(super) fn record_error(span: &Span, error: &Error) {
    if span.is_disabled() {
        return;
    }
    record_response(span, error.status(), error.request_id());
    span.record("attempts", error.attempts())
        .record("error.type", format_args!("{:?}", error.kind()))
        .record("may_have_executed", error.may_have_executed());
}

fn record_response(span: &Span, status: Option<u16>, request_id: Option<&RequestId>) {
    span.record("http.response.status_code", status)
        .record("request_id", request_id.map(RequestId::as_str));
}
