//! The failure of one attempt: its class, whether its write was executed, and the error that it becomes.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use parcelo_types::{
    ErrorCode,
    internal::{AttemptOutcome, ErrorEnvelope},
    model::{ErrorBody, RequestId},
};

use super::{
    Error, ErrorKind, FailureClass, Phase, StopReason, TransportError,
    call_state::CallState,
    error::Texts,
    response::{self, ResponseSummary},
    retry_after::retry_after,
};

/// The reason why an attempt failed.
#[derive(Debug)]
pub(super) enum AttemptError {
    /// No whole response arrived.
    Transport(TransportError),
    /// The response is larger than any that the service sends.
    TooLarge(ResponseSummary),
    /// The response's status is not a success.
    Response(Box<ErrorResponse>),
}

impl From<TransportError> for AttemptError {
    fn from(error: TransportError) -> Self {
        Self::Transport(error)
    }
}

/// A response whose status is not a success.
#[derive(Debug)]
pub(super) struct ErrorResponse {
    pub(super) status: StatusCode,
    request_id: Option<RequestId>,
    body: Option<ErrorBody>,
    pub(super) retry_after: Option<Duration>,
}

impl ErrorResponse {
    /// Parses a response whose status is not a success, as far as it can be read.
    pub(super) fn parse(status: StatusCode, headers: &HeaderMap, body: &Bytes) -> Self {
        let body =
            serde_json::from_slice::<ErrorEnvelope>(body).ok().map(|envelope| envelope.error);
        let id_in_body = || body.as_ref().and_then(|body| body.request_id.clone());
        Self {
            status,
            request_id: response::request_id(headers).or_else(id_in_body),
            retry_after: retry_after(status, headers, body.as_ref()),
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
        // Validation, NotFound and Conflict are about the request and its parcels, which a proxy or a web server at a
        // wrong address does not know. For the other kinds the caller's options are always the same.
        let is_from_service = self.body.is_some();
        match self.status {
            StatusCode::BAD_REQUEST
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
            | StatusCode::UNPROCESSABLE_ENTITY
                if is_from_service =>
            {
                ErrorKind::Validation
            }
            StatusCode::NOT_FOUND if is_from_service => ErrorKind::NotFound,
            StatusCode::CONFLICT if self.code() == Some(ErrorCode::IdempotencyConflict) => {
                ErrorKind::KeyReused
            }
            StatusCode::CONFLICT if is_from_service => ErrorKind::Conflict,
            StatusCode::UNAUTHORIZED => ErrorKind::Authentication,
            StatusCode::FORBIDDEN => ErrorKind::Forbidden,
            StatusCode::TOO_MANY_REQUESTS => ErrorKind::RateLimited,
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY => ErrorKind::Server,
            status if status.is_server_error() => ErrorKind::Server,
            _ => ErrorKind::Unexpected,
        }
    }

    /// Returns what the response says about the execution of the write. The service looks an idempotency key up after it
    /// has checked the API key, the rate limit and the form of the body, and before everything else (docs/api.md, Order
    /// of checks). So the codes listed here say that no earlier request with the key was executed. Those with 403 and
    /// 404 are left out, because proxies in front of the service return these too.
    fn write_outcome(&self) -> AttemptOutcome {
        let code = self.code().filter(|code| code.status() == self.status.as_u16());
        match code {
            Some(ErrorCode::IdempotencyConflict) => AttemptOutcome::KeyConflict,
            Some(ErrorCode::IdempotencyInProgress) => AttemptOutcome::Unknown,
            Some(ErrorCode::ValidationFailed) if self.is_about_fields() => {
                AttemptOutcome::RejectedAfterLookup
            }
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
            ) => AttemptOutcome::RejectedAfterLookup,
            // The lost code may have said that an earlier request with the key is still in progress.
            None if self.status == StatusCode::CONFLICT => AttemptOutcome::Unknown,
            _ if is_rejection(self.status) => AttemptOutcome::Rejected,
            _ => AttemptOutcome::Unknown,
        }
    }

    /// Returns `false` when the service could not read the body or the key, and so did not look the key up.
    fn is_about_fields(&self) -> bool {
        let faults = self.body.as_ref().map(ErrorBody::field_faults).unwrap_or_default();
        !faults.is_empty()
            && faults.iter().all(|fault| !matches!(&*fault.field, "body" | "idempotencyKey"))
    }
}

/// Returns `true` for a status that says that nothing was executed, and that the request must be sent elsewhere or
/// changed. 303 may point to the result of a write, and an unregistered status proves nothing.
fn is_rejection(status: StatusCode) -> bool {
    match status {
        StatusCode::MOVED_PERMANENTLY
        | StatusCode::FOUND
        | StatusCode::TEMPORARY_REDIRECT
        | StatusCode::PERMANENT_REDIRECT => true,
        StatusCode::REQUEST_TIMEOUT => false,
        status => status.is_client_error() && status.canonical_reason().is_some(),
    }
}

const TOO_LARGE: Texts =
    ("The response is larger than allowed.", "La respuesta supera el tamaño permitido.");
const NOT_FROM_SERVICE: Texts =
    ("The response does not come from this API.", "La respuesta no proviene de esta API.");

impl AttemptError {
    pub(super) fn class(&self) -> FailureClass {
        match self {
            Self::Transport(error) => FailureClass::from_phase(error.phase()),
            Self::TooLarge(_) => FailureClass::Permanent,
            Self::Response(response) => FailureClass::from_status(response.status, response.code()),
        }
    }

    /// Returns the id in the response; `None` when no response came.
    pub(super) fn request_id(&self) -> Option<RequestId> {
        match self {
            Self::Transport(_) => None,
            Self::TooLarge(head) => head.request_id(),
            Self::Response(response) => response.request_id.clone(),
        }
    }

    /// Returns the HTTP status; `None` when no response came.
    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Self::Transport(_) => None,
            Self::TooLarge(head) => Some(head.status.as_u16()),
            Self::Response(response) => Some(response.status.as_u16()),
        }
    }

    /// Returns the span attribute `error.type`: one of a few words.
    pub(super) fn error_type(&self) -> String {
        match self {
            Self::Transport(error) => format!("{:?}", error.phase()),
            Self::TooLarge(_) => "TooLarge".to_owned(),
            Self::Response(response) => response.status.as_str().to_owned(),
        }
    }

    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Response(response) => response.retry_after,
            Self::Transport(_) | Self::TooLarge(_) => None,
        }
    }

    pub(super) fn write_outcome(&self) -> AttemptOutcome {
        match self {
            Self::TooLarge(_) => AttemptOutcome::Unknown,
            Self::Transport(error) => match error.phase() {
                Phase::NotSent | Phase::Refused | Phase::Untrusted => AttemptOutcome::NotSent,
                Phase::Stale
                | Phase::MaybeSent
                | Phase::Timeout
                | Phase::NotHttp
                | Phase::Redirected => AttemptOutcome::Unknown,
            },
            Self::Response(response) => response.write_outcome(),
        }
    }

    pub(super) fn into_error(self, state: &CallState, reason: StopReason) -> Error {
        let retry_after = self.retry_after();
        let error = match self {
            Self::Transport(error) => transport_error(error, state),
            Self::TooLarge(head) => state.decode_error(&head, TOO_LARGE),
            Self::Response(response) => response_error(*response, state),
        };
        error.with(|inner| {
            inner.retry_after = retry_after;
            inner.stop_reason = Some(reason);
        })
    }
}

fn kind_of(phase: Phase) -> ErrorKind {
    match phase {
        Phase::Timeout => ErrorKind::Timeout,
        Phase::NotHttp => ErrorKind::Decode,
        Phase::Refused => ErrorKind::Config,
        Phase::Redirected => ErrorKind::Unexpected,
        Phase::NotSent | Phase::Untrusted | Phase::Stale | Phase::MaybeSent => ErrorKind::Network,
    }
}

fn transport_error(error: TransportError, state: &CallState) -> Error {
    let phase = error.phase();
    state.error(kind_of(phase), phase.texts()).with_source(error).with(|inner| {
        inner.nothing_sent = !state.was_sent;
    })
}

fn response_error(response: ErrorResponse, state: &CallState) -> Error {
    state.error(response.kind(), NOT_FROM_SERVICE).with(|inner| {
        inner.status = Some(response.status.as_u16());
        inner.request_id = response.request_id;
        inner.faults = response.body.as_ref().map(ErrorBody::field_faults).unwrap_or_default();
        inner.body = response.body;
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, body: &'static str) -> ErrorResponse {
        let status = StatusCode::from_u16(status).unwrap();
        ErrorResponse::parse(status, &HeaderMap::new(), &Bytes::from_static(body.as_bytes()))
    }

    fn refusal(status: u16, code: &str, field: &str) -> ErrorResponse {
        let body = format!(
            r#"{{"success":false,"error":{{"code":"{code}","message":"no","details":{{"errors":[{field}]}}}}}}"#
        );
        response(status, body.leak())
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
            (Server, &[408, 425, 500, 501, 502, 503, 504, 599]),
            (Unexpected, &[301, 304, 308, 405, 410, 418]),
        ];
        for (kind, statuses) in table {
            for status in statuses {
                assert_eq!(refusal(*status, "SOME_CODE", "").kind(), kind, "{status}");
            }
        }
        let country = refusal(403, "AUTH_COUNTRY_NOT_ALLOWED", "");
        assert_eq!(country.kind(), ErrorKind::CountryNotAllowed);
        let reused = |status| refusal(status, "IDEMPOTENCY_CONFLICT", "").kind();
        assert_eq!([reused(409), reused(500)], [ErrorKind::KeyReused, ErrorKind::Server]);
    }

    #[test]
    fn each_attempt_error_has_its_write_outcome() {
        let failed = |status| AttemptError::Response(Box::new(response(status, "")));
        let lost = |phase| AttemptError::Transport(TransportError::new(phase, "lost"));
        let table: [(AttemptOutcome, &[u16]); 2] = [
            (
                AttemptOutcome::Rejected,
                &[301, 302, 307, 308, 400, 401, 403, 404, 405, 410, 413, 415, 418, 422, 429, 451],
            ),
            (
                AttemptOutcome::Unknown,
                &[
                    101, 300, 303, 304, 399, 408, 409, 419, 460, 499, 500, 501, 503, 520, 599, 600,
                    999,
                ],
            ),
        ];
        for (outcome, statuses) in table {
            for status in statuses {
                assert_eq!(failed(*status).write_outcome(), outcome, "{status}");
            }
        }
        for (phase, outcome) in [
            (Phase::NotSent, AttemptOutcome::NotSent),
            (Phase::Refused, AttemptOutcome::NotSent),
            (Phase::Untrusted, AttemptOutcome::NotSent),
            (Phase::Stale, AttemptOutcome::Unknown),
            (Phase::MaybeSent, AttemptOutcome::Unknown),
            (Phase::Timeout, AttemptOutcome::Unknown),
            (Phase::NotHttp, AttemptOutcome::Unknown),
            (Phase::Redirected, AttemptOutcome::Unknown),
        ] {
            assert_eq!(lost(phase).write_outcome(), outcome, "{phase:?}");
        }
        let head = ResponseSummary::new(StatusCode::OK, &HeaderMap::new());
        assert_eq!(AttemptError::TooLarge(head).write_outcome(), AttemptOutcome::Unknown);
    }

    #[test]
    fn only_refusals_after_the_key_lookup_settle_an_outcome() {
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
        let outcome_of =
            |status, code: &str, field: &str| refusal(status, code, field).write_outcome();
        for code in ErrorCode::ALL {
            let outcome = match code {
                IdempotencyConflict => AttemptOutcome::KeyConflict,
                IdempotencyInProgress => AttemptOutcome::Unknown,
                code if settling.contains(code) => AttemptOutcome::RejectedAfterLookup,
                code if code.status() >= 500 || code.status() == 408 => AttemptOutcome::Unknown,
                _ => AttemptOutcome::Rejected,
            };
            assert_eq!(outcome_of(code.status(), code.code(), ""), outcome, "{code}");
            assert_ne!(
                outcome_of(403, code.code(), ""),
                AttemptOutcome::RejectedAfterLookup,
                "{code} with another status"
            );
        }
        for (field, outcome) in [
            ("receiver.phone", AttemptOutcome::RejectedAfterLookup),
            ("body", AttemptOutcome::Rejected),
            ("idempotencyKey", AttemptOutcome::Rejected),
        ] {
            let field = format!(r#"{{"field":"{field}","message":"no"}}"#);
            assert_eq!(outcome_of(400, "VALIDATION_FAILED", &field), outcome, "{field}");
        }
    }

    #[test]
    fn an_unreadable_error_response_has_no_code() {
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
            let response = response(500, body);
            assert!(response.body.is_none() && response.code().is_none(), "{body}");
        }
    }
}
