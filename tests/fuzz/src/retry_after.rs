//! `Retry-After`, `Date` and the rate limit headers of a response, in virtual time: a retry waits for the requested
//! time, and no header makes a call wait beyond its limits.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use chrono::DateTime;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use parcelo::{
    ApiKey, Client, Environment, Retry,
    transport::{BodyStream, ResponseFuture, Transport},
};
use tokio::{runtime::Builder, time::Instant};

use crate::Target;

pub(crate) const TARGET: Target = Target { name: "retry_after", check, cases: 2_000 };

/// Maximum wait that the client accepts, before it adds jitter.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);
const MAX_JITTER: Duration = Duration::from_millis(250);
/// Maximum backoff after a 429 without `Retry-After`, after three doublings.
const MAX_BACKOFF: Duration = Duration::from_secs(2);
const MAX_CALL_DURATION: Duration = Duration::from_secs(60);

/// Checks an input: the status on the first line, then headers up to an empty line, then the body.
fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
    let (status, headers) = head.split_once('\n').unwrap_or((head, ""));
    let status = status.trim().parse().ok().filter(|status| (400..600).contains(status));
    let refusal = RefusingTransport {
        status: status.unwrap_or(503),
        headers: headers.lines().filter_map(parse_header).collect(),
        body: Bytes::from(body.to_owned()),
        sent: Arc::default(),
    };
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(assert_waits(refusal));
}

fn parse_header(line: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_once(':')?;
    Some((name.trim().parse().ok()?, HeaderValue::from_str(value.trim()).ok()?))
}

async fn assert_waits(refusal: RefusingTransport) {
    let client = Client::builder(ApiKey::from_random(Environment::Sandbox, &[7; 32]))
        .retry(Retry::standard().max_retry_after(MAX_RETRY_AFTER).unbudgeted())
        .transport(refusal.clone())
        .build()
        .unwrap();
    let started = now();
    let error = client.health().await.unwrap_err();
    assert!(now() - started <= MAX_CALL_DURATION, "{:?}", now() - started);
    let sent = refusal.sent.lock().unwrap().clone();
    let requested = requested_wait(&refusal.headers);
    if requested.is_some_and(|requested| requested > MAX_RETRY_AFTER) {
        assert_eq!(sent.len(), 1, "the client retries although the requested time is too long");
    }
    for pair in sent.windows(2) {
        let waited = pair[1] - pair[0];
        assert!(
            requested.is_none_or(|requested| waited >= requested),
            "{waited:?} of {requested:?}"
        );
        // The call may also have to wait for the end of a rate limit window.
        let is_limited = refusal.headers.contains_key("x-ratelimit-limit") || refusal.status == 429;
        let bound = requested.unwrap_or(MAX_RETRY_AFTER).max(MAX_BACKOFF) + MAX_JITTER;
        assert!(is_limited || waited <= bound, "{waited:?} of {requested:?}");
    }
    // The error contains the time that the service requested.
    if let (Some(requested), Some(reported)) = (requested, error.retry_after()) {
        assert!(
            reported.abs_diff(requested) < Duration::from_millis(1),
            "{reported:?} for {requested:?}"
        );
    }
}

/// A longer requested time is read as this.
const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// Reads the first `Retry-After` independently of the SDK: seconds, or a date later than the response's date.
fn requested_wait(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let given = text("retry-after")?;
    let (whole, decimals) = given.split_once('.').unwrap_or((given, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !whole.is_empty() && is_digits(whole) && is_digits(decimals) {
        let seconds =
            whole.parse().unwrap_or(f64::MAX) + format!("0.{decimals}0").parse::<f64>().unwrap();
        return Some(Duration::from_secs_f64(seconds.min(YEAR.as_secs_f64())));
    }
    let date = |text: &str| {
        let parsed =
            DateTime::parse_from_str(&text.replace("GMT", "+0000"), "%a, %d %b %Y %H:%M:%S %z");
        // Only HTTP's preferred date format is read here.
        parsed.ok().filter(|date| date.format("%a, %d %b %Y %H:%M:%S GMT").to_string() == text)
    };
    Some((date(given)? - date(text("date")?)?).to_std().ok()?.min(YEAR))
}

#[expect(clippy::disallowed_methods, reason = "time is virtual here")]
fn now() -> Instant {
    Instant::now()
}

/// A transport that gives every request the same refusal, and records when each was sent.
#[derive(Debug, Clone)]
struct RefusingTransport {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
    sent: Arc<Mutex<Vec<Instant>>>,
}

impl Transport for RefusingTransport {
    fn send(&self, _: Request<Bytes>) -> ResponseFuture<'_> {
        self.sent.lock().unwrap().push(now());
        let body = BodyStream::from(self.body.clone());
        let mut response = Response::new(body);
        *response.status_mut() = self.status.try_into().unwrap();
        *response.headers_mut() = self.headers.clone();
        Box::pin(async { Ok(response) })
    }
}
