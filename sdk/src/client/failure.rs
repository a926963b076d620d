//! One failed attempt: its class, what it says about the next one, and the error it becomes.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use super::{
    Error, ErrorKind, Phase, StopReason, TransportError, call::Call, error::Texts, hint::hint,
    reply::request_id, retry::FailureClass,
};
use crate::{ErrorBody, ErrorCode, ErrorEnvelope, IdempotencyKey};

/// Why an attempt failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// No whole answer.
    Transport(TransportError),
    /// An answer larger than any honest one.
    TooLarge,
    /// An answer that is no success.
    Refused(Box<Refusal>),
}

impl From<TransportError> for Failure {
    fn from(fault: TransportError) -> Self {
        Self::Transport(fault)
    }
}

/// An answer that is no success.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    request_id: Option<String>,
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
        match self.status {
            StatusCode::BAD_REQUEST
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
            | StatusCode::UNPROCESSABLE_ENTITY => ErrorKind::Validation,
            StatusCode::UNAUTHORIZED => ErrorKind::Authentication,
            StatusCode::FORBIDDEN => ErrorKind::Forbidden,
            StatusCode::NOT_FOUND => ErrorKind::NotFound,
            StatusCode::CONFLICT => ErrorKind::Conflict,
            StatusCode::TOO_MANY_REQUESTS => ErrorKind::RateLimited,
            StatusCode::REQUEST_TIMEOUT => ErrorKind::Server,
            status if status.is_server_error() => ErrorKind::Server,
            _ => ErrorKind::Unexpected,
        }
    }
}

/// What is known about a call besides its last failure.
#[derive(Debug, Clone)]
pub(super) struct Trace {
    pub(super) attempts: u32,
    pub(super) idempotency_key: Option<IdempotencyKey>,
    /// Whether the call changes something.
    pub(super) writes: bool,
    /// Whether an attempt ended without anybody knowing what the service did.
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
}

const TOO_LARGE: Texts =
    ("The answer is larger than allowed.", "La respuesta supera el tamaño permitido.");
const FOREIGN: Texts =
    ("The answer is none of this API's.", "La respuesta no corresponde a esta API.");

impl Failure {
    pub(super) fn class(&self) -> FailureClass {
        match self {
            Self::Transport(fault) => FailureClass::of_phase(fault.phase()),
            Self::TooLarge => FailureClass::Permanent,
            Self::Refused(refusal) => FailureClass::of_status(refusal.status, refusal.code()),
        }
    }

    /// The HTTP status; none when no answer came, or none that counts.
    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(refusal) => Some(refusal.status.as_u16()),
            Self::Transport(_) | Self::TooLarge => None,
        }
    }

    /// One word for logs, of few that there are.
    pub(super) fn error_type(&self) -> String {
        match self {
            Self::Transport(fault) => format!("{:?}", fault.phase()),
            Self::TooLarge => "TooLarge".to_owned(),
            Self::Refused(refusal) => refusal.status.as_str().to_owned(),
        }
    }

    pub(super) fn hint(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => refusal.hint,
            Self::Transport(_) | Self::TooLarge => None,
        }
    }

    /// True when the service may have done what was asked.
    pub(super) fn is_in_the_dark(&self) -> bool {
        match (self, self.class()) {
            (Self::TooLarge, _)
            | (
                _,
                FailureClass::Stale
                | FailureClass::MaybeSent
                | FailureClass::Server
                | FailureClass::Busy,
            ) => true,
            (Self::Refused(refusal), _) => {
                refusal.status.is_server_error() && refusal.status != StatusCode::NOT_IMPLEMENTED
            }
            (Self::Transport(_), _) => false,
        }
    }

    pub(super) fn into_error(self, trace: Trace, reason: StopReason) -> Error {
        let hint = self.hint();
        match self {
            Self::Transport(fault) => unanswered(fault),
            Self::TooLarge => Error::new(ErrorKind::Decode, TOO_LARGE),
            Self::Refused(refusal) => refused(*refusal),
        }
        .with(|inner| {
            inner.retry_after = hint;
            inner.attempts = trace.attempts;
            inner.idempotency_key = trace.idempotency_key;
            inner.may_have_executed = trace.writes && trace.in_the_dark;
            inner.stop_reason = Some(reason);
        })
    }
}

fn unanswered(fault: TransportError) -> Error {
    let kind =
        if fault.phase() == Phase::Timeout { ErrorKind::Timeout } else { ErrorKind::Network };
    Error::new(kind, fault.phase().texts()).because(fault)
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
                assert_eq!(refusal(*status, "").kind(), kind, "{status}");
            }
        }
        let country =
            r#"{"success":false,"error":{"code":"AUTH_COUNTRY_NOT_ALLOWED","message":"no"}}"#;
        assert_eq!(refusal(403, country).kind(), ErrorKind::CountryNotAllowed);
    }

    #[test]
    fn only_an_answer_that_settles_it_leaves_no_doubt() {
        let refused = |status| Failure::Refused(Box::new(refusal(status, "")));
        let lost = |phase| Failure::Transport(TransportError::new(phase, "lost"));
        let table = [
            (refused(400), false),
            (refused(409), false),
            (refused(429), false),
            (refused(307), false),
            (refused(501), false),
            (refused(408), true),
            (refused(500), true),
            (refused(503), true),
            (refused(520), true),
            (lost(Phase::NotSent), false),
            (lost(Phase::Untrusted), false),
            (lost(Phase::Stale), true),
            (lost(Phase::MaybeSent), true),
            (lost(Phase::Timeout), true),
            (Failure::TooLarge, true),
        ];
        for (failure, expected) in table {
            assert_eq!(failure.is_in_the_dark(), expected, "{failure:?}");
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
