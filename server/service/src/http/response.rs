//! Converts results and refusals to HTTP responses.

use std::{
    cell::RefCell,
    future::ready,
    time::{Duration, UNIX_EPOCH},
};

use askama::Template;
use axum::{
    body::Body,
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use parcelo_domain::{Millis, Refusal, limit::Quota, to_body};
use parcelo_types::{
    ErrorCode,
    internal::{Envelope, Meta, header as names},
};
use serde::Serialize;

use super::request_ids::RequestIds;
use crate::service::WriteResponse;

/// Maximum number of headers for which a response has room from the start: more than most have. A map that grows moves
/// them all.
const MAX_USUAL_HEADERS: usize = 12;

/// The request's id, for handlers whose response includes it.
#[derive(Debug, Clone)]
pub struct RequestId(pub(super) String);

impl<S> FromRequestParts<S> for RequestId {
    type Rejection = HttpRefusal;

    fn from_request_parts(
        _: &mut Parts,
        _: &S,
    ) -> impl Future<Output = Result<Self, HttpRefusal>> + Send {
        let id = RequestIds::read_current(|ids| Self(ids.request.clone()));
        ready(id.ok_or_else(|| HttpRefusal::from(ErrorCode::InternalError)))
    }
}

/// A refusal as a response; the middleware adds the request's id and writes the body.
#[derive(Debug, Clone)]
pub struct HttpRefusal(pub Refusal);

impl<T: Into<Refusal>> From<T> for HttpRefusal {
    fn from(refusal: T) -> Self {
        Self(refusal.into())
    }
}

impl IntoResponse for HttpRefusal {
    fn into_response(self) -> Response {
        let mut response = http_status(self.0.code).into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Returns the HTTP status of an error code.
pub fn http_status(code: ErrorCode) -> StatusCode {
    StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Writes the body of a refusal, which needs the request's id. Other responses are returned unchanged.
pub(super) fn render_refusal(response: Response, request_id: &str) -> Response {
    let Some(HttpRefusal(refusal)) = response.extensions().get::<HttpRefusal>().cloned() else {
        return response;
    };
    let body = to_body(&refusal.to_envelope(request_id));
    refusal_response(&response, &refusal, body)
}

/// Returns the response for a refusal with this body.
pub(super) fn refusal_response(response: &Response, refusal: &Refusal, body: Vec<u8>) -> Response {
    let mut rendered = json(http_status(refusal.code), body);
    // Headers that the router has set, such as the allowed methods, are kept.
    for (name, value) in response.headers() {
        if name != header::CONTENT_LENGTH {
            rendered.headers_mut().entry(name).or_insert_with(|| value.clone());
        }
    }
    if let Some(seconds) = refusal.retry_after {
        rendered.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    rendered
}

/// Writes the body of a refusal, like `render_refusal`, and the header with the request's id, for routes without
/// the middleware.
pub fn with_request_id(response: Response, request_id: &str) -> Response {
    let mut response = render_refusal(response, request_id);
    set_request_id(response.headers_mut(), request_id);
    response
}

/// Sets the header with the request's id, and the one that forbids browsers to guess a type from the body.
fn set_request_id(headers: &mut HeaderMap, request_id: &str) {
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let id = HeaderValue::from_str(request_id).unwrap_or(HeaderValue::from_static(""));
    headers.insert(const { HeaderName::from_static(names::REQUEST_ID) }, id);
}

/// The last Unix second that a date in a header can express, because its year has four digits.
const LAST_HTTP_SECOND: i64 = 253_402_300_799;

/// Formats a time for HTTP headers.
pub(super) fn http_date(at: Millis) -> String {
    let second = at.second().clamp(0, LAST_HTTP_SECOND).unsigned_abs();
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(second))
}

/// Sets the headers of every response.
pub(super) fn set_common_headers(
    headers: &mut HeaderMap,
    request_id: &str,
    now: Millis,
    quota: Quota,
) {
    set_request_id(headers, request_id);
    let [date, limit, reset] = values_of_second(now, quota);
    headers.insert(header::DATE, date);
    headers.insert(const { HeaderName::from_static(names::RATE_LIMIT) }, limit);
    let remaining = header_value(quota.remaining.to_string());
    headers.insert(const { HeaderName::from_static(names::RATE_REMAINING) }, remaining);
    headers.insert(const { HeaderName::from_static(names::RATE_RESET) }, reset);
}

/// Returns the values of the date, the limit and its reset, which most responses of a second share.
fn values_of_second(now: Millis, quota: Quota) -> [HeaderValue; 3] {
    /// The second, the limit and the reset of a thread's last response, with the three values.
    type LastValues = ((i64, u32, i64), [HeaderValue; 3]);
    thread_local! {
        static LAST: RefCell<LastValues> = const {
            RefCell::new(((i64::MIN, 0, 0), [const { HeaderValue::from_static("") }; 3]))
        };
    }
    let key = (now.second(), quota.limit, quota.reset);
    LAST.with_borrow_mut(|(last, values)| {
        if *last != key {
            *last = key;
            *values = [
                header_value(http_date(now)),
                header_value(quota.limit.to_string()),
                header_value(quota.reset.to_string()),
            ];
        }
        values.clone()
    })
}

fn header_value(text: String) -> HeaderValue {
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
}

impl IntoResponse for WriteResponse {
    fn into_response(self) -> Response {
        match self {
            Self::Created(body) => json(StatusCode::CREATED, body),
            Self::Done(body) => json(StatusCode::OK, body),
            Self::Replayed(body) => {
                let mut response = json(StatusCode::OK, body);
                let name = const { HeaderName::from_static(names::IDEMPOTENT_REPLAYED) };
                response.headers_mut().insert(name, HeaderValue::from_static("true"));
                response
            }
        }
    }
}

/// Returns a JSON response in the envelope.
pub(super) fn enveloped(data: impl Serialize, request_id: RequestId) -> Response {
    enveloped_with_status(StatusCode::OK, data, request_id)
}

/// Returns a JSON response in the envelope, with this status.
pub fn enveloped_with_status(status: StatusCode, data: impl Serialize, id: RequestId) -> Response {
    json(
        status,
        to_body(&Envelope::new(data, Meta::new(parcelo_types::model::RequestId::unchecked(id.0)))),
    )
}

/// Returns status 200 with this value as the whole body, without the envelope.
pub fn json_ok(body: &impl Serialize) -> Response {
    json(StatusCode::OK, to_body(body))
}

/// Returns a file; the disposition names it.
pub fn file(content_type: &str, disposition: String, bytes: Vec<u8>) -> Response {
    let kind = (header::CONTENT_TYPE, content_type.to_owned());
    ([kind, (header::CONTENT_DISPOSITION, disposition)], bytes).into_response()
}

/// Renders a page as HTML.
pub fn render(page: &impl Template) -> Result<String, HttpRefusal> {
    page.render().map_err(|error| {
        tracing::error!(%error, "a page could not be written");
        ErrorCode::InternalError.into()
    })
}

fn json(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.reserve(MAX_USUAL_HEADERS);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_responses_share_follow_the_second_the_limit_and_its_reset() {
        let table =
            [(0, 50, 1), (999, 50, 1), (1_000, 50, 1), (1_000, 50, 2), (1_000, 60, 2), (0, 50, 1)];
        for (now, limit, reset) in table {
            let values = values_of_second(Millis(now), Quota { limit, remaining: 7, reset });
            let expected = [http_date(Millis(now)), limit.to_string(), reset.to_string()];
            assert_eq!(values.map(|value| value.to_str().unwrap().to_owned()), expected);
        }
    }

    #[test]
    fn http_dates_stay_within_four_digit_years() {
        let first = "Thu, 01 Jan 1970 00:00:00 GMT";
        let last = "Fri, 31 Dec 9999 23:59:59 GMT";
        let table = [
            (i64::MIN, first),
            (-1, first),
            (999, first),
            (1_768_057_500_999, "Sat, 10 Jan 2026 15:05:00 GMT"),
            (LAST_HTTP_SECOND * 1_000, last),
            (i64::MAX, last),
        ];
        for (at, date) in table {
            assert_eq!(http_date(Millis(at)), date);
        }
    }
}
