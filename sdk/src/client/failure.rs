//! One failed attempt: its class, what it says about the next one, and the error it becomes.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};

use super::{
    Error, ErrorKind, Phase, StopReason, TransportError, call::Call, error::Texts, hint::hint,
    reply, reply::request_id, retry::FailureClass,
};
use crate::model::{ErrorBody, ErrorCode, ErrorEnvelope, IdempotencyKey, RequestId, header};

/// Why an attempt failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// No whole answer.
    Transport(TransportError),
    /// An answer larger than any honest one.
    TooLarge(Head),
    /// An answer that is no success.
    Refused(Box<Refusal>),
}

impl From<TransportError> for Failure {
    fn from(fault: TransportError) -> Self {
        Self::Transport(fault)
    }
}

/// Of an answer's head, what an error keeps.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    pub(super) request_id: Option<HeaderValue>,
}

impl Head {
    pub(super) fn new(status: StatusCode, headers: &HeaderMap) -> Self {
        Self { status, request_id: headers.get(header::REQUEST_ID).cloned() }
    }
}

/// An answer that is no success.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    request_id: Option<RequestId>,
    body: Option<ErrorBody>,
    pub(super) hint: Option<Duration>,
}

impl Refusal {
    /// Reads the answer as far as it can be read.
    pub(super) fn read(status: StatusCode, headers: &HeaderMap, body: &Bytes) -> Self {
        let body =
            serde_json::from_slice::<ErrorEnvelope>(body).ok().map(|envelope| envelope.error);
        let said = || body.as_ref().and_then(|body| body.request_id.clone());
        Self {
            status,
            request_id: request_id(headers).or_else(said),
            hint: hint(status, headers, body.as_ref()),
            body,
        }
    }

    fn code(&self) -> Option<ErrorCode> {
        self.body.as_ref().and_then(ErrorBody::known)
    }

    fn kind(&self) -> ErrorKind {
        if self.code() == Some(ErrorCode::AuthCountryNotAllowed) {
            return ErrorKind::CountryNotAllowed;
        }
        // These speak of the request and of parcels, which a proxy or a web server at a wrong address knows
        // nothing about. The others ask the caller for the same, whoever they come from.
        let is_own = self.body.is_some();
        match self.status {
            StatusCode::BAD_REQUEST
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
            | StatusCode::UNPROCESSABLE_ENTITY
                if is_own =>
            {
                ErrorKind::Validation
            }
            StatusCode::NOT_FOUND if is_own => ErrorKind::NotFound,
            StatusCode::CONFLICT if is_own => ErrorKind::Conflict,
            StatusCode::UNAUTHORIZED => ErrorKind::Authentication,
            StatusCode::FORBIDDEN => ErrorKind::Forbidden,
            StatusCode::TOO_MANY_REQUESTS => ErrorKind::RateLimited,
            StatusCode::REQUEST_TIMEOUT => ErrorKind::Server,
            status if status.is_server_error() => ErrorKind::Server,
            _ => ErrorKind::Unexpected,
        }
    }

    /// The service looks a key up after the API key, the rate limit and the form of the body, and
    /// before everything else (docs/api.md, Order of checks). Of its refusals after that, those with
    /// 403 and 404 are left out: others between answer with these.
    fn trace_left(&self) -> Left {
        let code = self.code().filter(|code| code.status() == self.status.as_u16());
        match code {
            Some(ErrorCode::IdempotencyConflict) => Left::Conflict,
            Some(ErrorCode::IdempotencyInProgress) => Left::Doubt,
            Some(ErrorCode::ValidationFailed) if self.is_about_the_content() => Left::Settled,
            Some(
                ErrorCode::ParcelDuplicateTracking
                | ErrorCode::ParcelNotVoidable
                | ErrorCode::VoidFailed
                | ErrorCode::ParcelNotManifestable
                | ErrorCode::ParcelAlreadyManifested
                | ErrorCode::ManifestParcelsRejected
                | ErrorCode::ManifestAlreadySubmitted
                | ErrorCode::LabelVoided
                | ErrorCode::LabelNotReprintable,
            ) => Left::Settled,
            _ if is_refusal(self.status) => Left::Refused,
            _ => Left::Doubt,
        }
    }

    /// False when the service could not read the body, or not the key, and so looked nothing up.
    fn is_about_the_content(&self) -> bool {
        let faults = self.body.as_ref().map(ErrorBody::field_faults).unwrap_or_default();
        !faults.is_empty()
            && faults.iter().all(|fault| !matches!(&*fault.field, "body" | "idempotencyKey"))
    }
}

/// True for the statuses that say that nothing was executed: it is to be sent elsewhere, or changed.
/// 303 may be the way to what was done, and nobody knows what a status means that is not registered.
fn is_refusal(status: StatusCode) -> bool {
    match status {
        StatusCode::MOVED_PERMANENTLY
        | StatusCode::FOUND
        | StatusCode::TEMPORARY_REDIRECT
        | StatusCode::PERMANENT_REDIRECT => true,
        StatusCode::REQUEST_TIMEOUT => false,
        status => status.is_client_error() && status.canonical_reason().is_some(),
    }
}

/// What is known about a call besides its last failure.
#[derive(Debug, Clone)]
pub(super) struct Trace {
    pub(super) attempts: u32,
    pub(super) idempotency_key: Option<IdempotencyKey>,
    /// Whether the call changes something.
    pub(super) writes: bool,
    /// Whether an attempt without a key ended without anybody knowing what the service did.
    pub(super) in_the_dark: bool,
}

impl Trace {
    pub(super) fn new(call: &Call<'_>) -> Self {
        Self {
            attempts: 0,
            idempotency_key: call.idempotency_key.cloned(),
            writes: call.writes(),
            in_the_dark: false,
        }
    }

    /// Whether the service may have done what was asked: by this call, or by an earlier one with the
    /// same key.
    pub(super) fn may_have_executed(&self) -> bool {
        let by_key =
            || self.idempotency_key.as_ref().is_some_and(IdempotencyKey::may_have_executed);
        self.writes && (self.in_the_dark || by_key())
    }
}

/// What an attempt left behind: whether its request was executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// Nothing was sent.
    Nothing,
    /// It was refused before the service knew of earlier ones, or nobody knows whether it did.
    Refused,
    /// It was refused after the service had looked the key up: there is no earlier one.
    Settled,
    /// Another request has the key.
    Conflict,
    /// It may have been executed.
    Doubt,
}

const TOO_LARGE: Texts =
    ("The answer is larger than allowed.", "La respuesta supera el tamaño permitido.");
const FOREIGN: Texts =
    ("The answer is none of this API's.", "La respuesta no corresponde a esta API.");

impl Failure {
    pub(super) fn class(&self) -> FailureClass {
        match self {
            Self::Transport(fault) => FailureClass::of_phase(fault.phase()),
            Self::TooLarge(_) => FailureClass::Permanent,
            Self::Refused(refusal) => FailureClass::of_status(refusal.status, refusal.code()),
        }
    }

    /// The HTTP status; none when no answer came.
    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(refusal) => Some(refusal.status.as_u16()),
            Self::TooLarge(head) => Some(head.status.as_u16()),
            Self::Transport(_) => None,
        }
    }

    /// One word for logs, of few that there are.
    pub(super) fn error_type(&self) -> String {
        match self {
            Self::Transport(fault) => format!("{:?}", fault.phase()),
            Self::TooLarge(_) => "TooLarge".to_owned(),
            Self::Refused(refusal) => refusal.status.as_str().to_owned(),
        }
    }

    pub(super) fn hint(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => refusal.hint,
            Self::Transport(_) | Self::TooLarge(_) => None,
        }
    }

    /// What the attempt that failed says about whether its request was executed.
    pub(super) fn trace_left(&self) -> Left {
        match self {
            Self::TooLarge(_) => Left::Doubt,
            Self::Transport(fault) => match fault.phase() {
                Phase::NotSent | Phase::Refused | Phase::Untrusted => Left::Nothing,
                Phase::Stale | Phase::MaybeSent | Phase::Timeout | Phase::NotHttp => Left::Doubt,
            },
            Self::Refused(refusal) => refusal.trace_left(),
        }
    }

    pub(super) fn into_error(self, trace: Trace, reason: StopReason) -> Error {
        let hint = self.hint();
        // Whatever else has the key: this request was not executed.
        let is_conflict = self.trace_left() == Left::Conflict;
        let may_have_executed = !is_conflict && trace.may_have_executed();
        match self {
            Self::Transport(fault) => unanswered(fault),
            Self::TooLarge(head) => Error::new(ErrorKind::Decode, TOO_LARGE).with(|inner| {
                inner.status = Some(head.status.as_u16());
                inner.request_id = head.request_id.as_ref().and_then(reply::read_id);
            }),
            Self::Refused(refusal) => refused(*refusal),
        }
        .with(|inner| {
            inner.retry_after = hint;
            inner.attempts = trace.attempts;
            inner.idempotency_key = trace.idempotency_key;
            inner.may_have_executed = may_have_executed;
            inner.stop_reason = Some(reason);
        })
    }
}

fn unanswered(fault: TransportError) -> Error {
    let phase = fault.phase();
    let kind = match phase {
        Phase::Timeout => ErrorKind::Timeout,
        Phase::NotHttp => ErrorKind::Decode,
        Phase::Refused => ErrorKind::Config,
        Phase::NotSent | Phase::Untrusted | Phase::Stale | Phase::MaybeSent => ErrorKind::Network,
    };
    let error = Error::new(kind, phase.texts()).because(fault);
    error.with(|inner| {
        inner.nothing_sent = matches!(phase, Phase::NotSent | Phase::Refused | Phase::Untrusted);
    })
}

fn refused(refusal: Refusal) -> Error {
    Error::new(refusal.kind(), FOREIGN).with(|inner| {
        inner.status = Some(refusal.status.as_u16());
        inner.request_id = refusal.request_id;
        inner.faults = refusal.body.as_ref().map(ErrorBody::field_faults).unwrap_or_default();
        inner.body = refusal.body;
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, body: &'static str) -> Refusal {
        let status = StatusCode::from_u16(status).unwrap();
        Refusal::read(status, &HeaderMap::new(), &Bytes::from_static(body.as_bytes()))
    }

    #[test]
    fn every_status_has_its_kind() {
        use ErrorKind::{
            Authentication, Conflict, Forbidden, NotFound, RateLimited, Server, Unexpected,
            Validation,
        };
        let table: [(ErrorKind, &[u16]); 8] = [
            (Validation, &[400, 413, 415, 422]),
            (Authentication, &[401]),
            (Forbidden, &[403]),
            (NotFound, &[404]),
            (Conflict, &[409]),
            (RateLimited, &[429]),
            (Server, &[408, 500, 501, 502, 503, 504, 599]),
            (Unexpected, &[301, 304, 308, 405, 410, 418]),
        ];
        for (kind, statuses) in table {
            for status in statuses {
                let own = r#"{"success":false,"error":{"code":"SOME_CODE","message":"no"}}"#;
                assert_eq!(refusal(*status, own).kind(), kind, "{status}");
            }
        }
        let country =
            r#"{"success":false,"error":{"code":"AUTH_COUNTRY_NOT_ALLOWED","message":"no"}}"#;
        assert_eq!(refusal(403, country).kind(), ErrorKind::CountryNotAllowed);
    }

    #[test]
    fn each_end_of_an_attempt_says_whether_its_request_was_executed() {
        let refused = |status| Failure::Refused(Box::new(refusal(status, "")));
        let lost = |phase| Failure::Transport(TransportError::new(phase, "lost"));
        let table: [(Left, &[u16]); 2] = [
            (
                Left::Refused,
                &[
                    301, 302, 307, 308, 400, 401, 403, 404, 405, 409, 410, 413, 415, 418, 422, 429,
                    451,
                ],
            ),
            (
                Left::Doubt,
                &[101, 300, 303, 304, 399, 408, 419, 460, 499, 500, 501, 503, 520, 599, 600, 999],
            ),
        ];
        for (left, statuses) in table {
            for status in statuses {
                assert_eq!(refused(*status).trace_left(), left, "{status}");
            }
        }
        for (phase, left) in [
            (Phase::NotSent, Left::Nothing),
            (Phase::Refused, Left::Nothing),
            (Phase::Untrusted, Left::Nothing),
            (Phase::Stale, Left::Doubt),
            (Phase::MaybeSent, Left::Doubt),
            (Phase::Timeout, Left::Doubt),
            (Phase::NotHttp, Left::Doubt),
        ] {
            assert_eq!(lost(phase).trace_left(), left, "{phase:?}");
        }
        let head = Head::new(StatusCode::OK, &HeaderMap::new());
        assert_eq!(Failure::TooLarge(head).trace_left(), Left::Doubt);
    }

    #[test]
    fn only_refusals_after_the_look_up_settle_what_was_in_doubt() {
        use ErrorCode::{
            IdempotencyConflict, IdempotencyInProgress, LabelNotReprintable, LabelVoided,
            ManifestAlreadySubmitted, ManifestParcelsRejected, ParcelAlreadyManifested,
            ParcelDuplicateTracking, ParcelNotManifestable, ParcelNotVoidable, VoidFailed,
        };
        let settling = [
            ParcelDuplicateTracking,
            ParcelNotVoidable,
            VoidFailed,
            ParcelNotManifestable,
            ParcelAlreadyManifested,
            ManifestParcelsRejected,
            ManifestAlreadySubmitted,
            LabelVoided,
            LabelNotReprintable,
        ];
        let of = |status, code: &str, field: &str| {
            let body = format!(
                r#"{{"success":false,"error":{{"code":"{code}","message":"no","details":{{"errors":[{field}]}}}}}}"#
            );
            refusal(status, body.leak()).trace_left()
        };
        for code in ErrorCode::ALL {
            let left = match code {
                IdempotencyConflict => Left::Conflict,
                IdempotencyInProgress => Left::Doubt,
                code if settling.contains(code) => Left::Settled,
                code if code.status() >= 500 || code.status() == 408 => Left::Doubt,
                _ => Left::Refused,
            };
            assert_eq!(of(code.status(), code.code(), ""), left, "{code}");
            assert_ne!(of(403, code.code(), ""), Left::Settled, "{code} with another status");
        }
        for (field, left) in [
            ("receiver.phone", Left::Settled),
            ("body", Left::Refused),
            ("idempotencyKey", Left::Refused),
        ] {
            let field = format!(r#"{{"field":"{field}","message":"no"}}"#);
            assert_eq!(of(400, "VALIDATION_FAILED", &field), left, "{field}");
        }
    }

    #[test]
    fn any_garbage_is_an_answer_without_a_code() {
        for body in [
            "",
            "null",
            "[]",
            "{",
            "<html>",
            r#"{"error":7}"#,
            "\u{0}",
            r#"{"success":false,"error":{"code":1}}"#,
        ] {
            let refusal = refusal(500, body);
            assert!(refusal.body.is_none() && refusal.code().is_none(), "{body}");
        }
    }
}
