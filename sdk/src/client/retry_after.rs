//! The wait that a refusal of the service requests. A value that cannot be read is ignored and never causes a panic.

use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};
use http::{HeaderMap, HeaderName, StatusCode, header as standard};
use parcelo_types::{internal::header, model::ErrorBody};

use super::response::is_from_service;

/// Maximum time for which a response's `Retry-After` stops a client or is handed on as the time to the next try. After
/// that the next request is sent: it costs little, and a mistaken `Retry-After` does not stop a client for good.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(60 * 60);

/// A year: later than every deadline, and sums with it do not overflow.
const MAX_SECONDS: f64 = 365.0 * 24.0 * 60.0 * 60.0;

/// Returns the first of these that can be read: `Retry-After` in seconds, `Retry-After` as a date, the body's
/// `retryAfter`, and for a 429 of the service's the end of the rate limit's window. Dates are compared with the
/// response's own `Date`, so the two clocks need not agree.
pub(super) fn retry_after(
    status: StatusCode,
    headers: &HeaderMap,
    body: Option<&ErrorBody>,
) -> Option<Duration> {
    let header = text(headers, &standard::RETRY_AFTER).unwrap_or_default();
    let date = text(headers, &standard::DATE).and_then(|date| httpdate::parse_http_date(date).ok());
    parse_seconds(header)
        .or_else(|| between(date?, httpdate::parse_http_date(header).ok()?))
        .or_else(|| bounded(body?.retry_after.as_ref()?.as_f64()?))
        .or_else(|| window_end(status, headers, date?))
}

/// Returns the seconds from the response's own date to the end of the rate limit's window.
pub(super) fn seconds_until(reset: u64, date: DateTime<Utc>) -> Option<u64> {
    reset.checked_sub(date.timestamp().try_into().ok()?)
}

/// Returns the time to the end of the rate limit's window. Other refusals have nothing to do with it.
fn window_end(status: StatusCode, headers: &HeaderMap, date: SystemTime) -> Option<Duration> {
    let is_throttled = status == StatusCode::TOO_MANY_REQUESTS && is_from_service(headers);
    let reset = headers.get(header::RATE_RESET).filter(|_| is_throttled);
    let second = reset?.to_str().ok()?.trim().parse().ok()?;
    between(date, SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(second))?)
}

/// Parses seconds, which may have only digits and a point: Rust's own parser would accept `inf`, `1e9` and `+1` too.
fn parse_seconds(text: &str) -> Option<Duration> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    bounded(text.parse().ok().filter(|_| is_plain)?)
}

fn bounded(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds.clamp(-1.0, MAX_SECONDS)).ok()
}

fn between(date: SystemTime, later: SystemTime) -> Option<Duration> {
    later.duration_since(date).ok().and_then(|wait| bounded(wait.as_secs_f64()))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;
    use crate::client::{RateLimitStatus, clock::parse};

    const DATE: &str = "Sat, 10 Jan 2026 15:05:00 GMT";
    const LATER: &str = "Sat, 10 Jan 2026 15:05:07 GMT";
    const RESET: &str = "1768057503";

    type Row<'a> = (u16, &'a [(&'a str, &'a [u8])], Option<f64>, Option<f64>);

    fn retry_after_of(status: u16, headers: &[(&str, &[u8])], body: Option<f64>) -> Option<f64> {
        let headers = headers
            .iter()
            .map(|(name, value)| {
                (name.parse::<HeaderName>().unwrap(), HeaderValue::from_bytes(value).unwrap())
            })
            .collect();
        let body = body.map(|retry_after| {
            let mut body = ErrorBody::new("RATE_LIMIT_EXCEEDED", ("", ""));
            body.retry_after = serde_json::Number::from_f64(retry_after);
            body
        });
        let status = StatusCode::from_u16(status).unwrap();
        super::retry_after(status, &headers, body.as_ref()).map(|wait| wait.as_secs_f64())
    }

    #[test]
    fn the_first_readable_wait_counts() {
        let after = |value: &'static str| ("retry-after", value.as_bytes());
        let (date, reset) = (("date", DATE.as_bytes()), ("x-ratelimit-reset", RESET.as_bytes()));
        let (ours, other) = (("x-request-id", &b"req_1"[..]), ("x-request-id", &b"9f1c2b1e"[..]));
        let table: [Row<'_>; 14] = [
            (429, &[after("3"), date, reset, ours], Some(9.0), Some(3.0)),
            (429, &[after(" 1.5 ")], None, Some(1.5)),
            (429, &[after("0")], Some(9.0), Some(0.0)),
            (429, &[after(LATER), date, reset, ours], Some(9.0), Some(7.0)),
            (429, &[after(LATER)], Some(9.0), Some(9.0)),
            (429, &[after("soon"), date, reset, ours], Some(9.0), Some(9.0)),
            (429, &[date, reset, ours], None, Some(3.0)),
            (429, &[date, reset, other], None, None),
            (429, &[date, reset], None, None),
            (429, &[reset, ours], None, None),
            (429, &[], None, None),
            // The window of the rate limit has nothing to do with another status.
            (503, &[date, reset, ours], None, None),
            // An absurd wait is capped.
            (503, &[after("99999999999999999999999999")], None, Some(MAX_SECONDS)),
            (503, &[], Some(1e300), Some(MAX_SECONDS)),
        ];
        for (status, headers, body, expected) in table {
            assert_eq!(retry_after_of(status, headers, body), expected, "{headers:?} {body:?}");
        }
    }

    #[test]
    fn unreadable_waits_are_ignored() {
        let garbage = ["-1", "+1", "NaN", "inf", "1e9", "", "..", "1.2.3", "\t", "1;2", "0x10"];
        for value in garbage {
            let headers = [("retry-after", value.as_bytes())];
            assert_eq!(retry_after_of(503, &headers, None), None, "{value}");
        }
        let headers: [(&str, &[u8]); 4] = [
            ("retry-after", b"\xff\xfe"),
            ("date", b"\xff"),
            ("x-ratelimit-reset", b"9999999999999999999999"),
            ("x-request-id", b"req_\xff"),
        ];
        for body in [None, Some(-1.0), Some(-1e300)] {
            assert_eq!(retry_after_of(429, &headers, body), None, "{body:?}");
        }
    }

    proptest! {
        #[test]
        fn no_header_value_causes_a_panic(
            after in header_value(), date in header_value(), reset in header_value(),
            body in any::<Option<f64>>(), status in 100_u16..1000,
        ) {
            let names =
                ["retry-after", "date", "x-ratelimit-reset", "x-ratelimit-limit", "x-request-id"];
            let id = b"req_1".to_vec();
            let values = [&after, &date, &reset, &reset, &id].map(Vec::as_slice);
            let headers: Vec<_> = names.into_iter().zip(values).collect();
            let wait = retry_after_of(status, &headers, body);
            prop_assert!(wait.is_none_or(|seconds| (0.0..=MAX_SECONDS).contains(&seconds)), "{:?}", wait);
            let headers = headers.iter().map(|(name, value)| {
                (name.parse::<HeaderName>().unwrap(), HeaderValue::from_bytes(value).unwrap())
            });
            let headers: HeaderMap = headers.collect();
            headers.get(standard::DATE).and_then(parse).map(|date| seconds_until(u64::MAX, date));
            RateLimitStatus::from_headers(&headers);
        }
    }

    /// Numbers, dates, nearly numbers and nearly dates, and anything else that a header can hold.
    fn header_value() -> impl Strategy<Value = Vec<u8>> {
        let date =
            "[MTWFS][a-z]{2}, [0-9]{1,3} [A-Z][a-z]{2} [0-9]{1,5} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT";
        let text = prop_oneof!["-?[0-9]{0,30}(\\.[0-9]{0,30})?(e[0-9]{1,4})?", date, "[ -~]{0,40}"];
        let bytes = prop::collection::vec(prop_oneof![0x20_u8..0x7f, 0x80_u8..=0xff], 0..40);
        prop_oneof![text.prop_map(String::into_bytes), bytes]
    }
}
