//! The head of a response: the parts that a success passes on, and those that an error keeps.

use chrono::{DateTime, Utc};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use parcelo_types::{internal::header, model::RequestId};

// A name that is looked up as text is parsed each time, which costs more than the rest of the lookup.
static REQUEST_ID: HeaderName = HeaderName::from_static(header::REQUEST_ID);
static RATE_LIMIT: HeaderName = HeaderName::from_static(header::RATE_LIMIT);
static RATE_REMAINING: HeaderName = HeaderName::from_static(header::RATE_REMAINING);
static RATE_RESET: HeaderName = HeaderName::from_static(header::RATE_RESET);

/// A successful response, with its body as far as it was read.
#[derive(Debug)]
pub(super) struct ServiceResponse<T> {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) rate_limit: Option<RateLimitStatus>,
    /// The response's `Date`.
    pub(super) date: Option<DateTime<Utc>>,
    pub(super) body: T,
}

impl<T> ServiceResponse<T> {
    pub(super) fn summary(&self) -> ResponseSummary {
        ResponseSummary::new(self.status, &self.headers)
    }
}

/// The parts of a response's head that an error keeps.
#[derive(Debug, Clone)]
pub(super) struct ResponseSummary {
    pub(super) status: StatusCode,
    /// The header as received: it becomes a [`RequestId`] only when an error needs it, since that allocates.
    request_id: Option<HeaderValue>,
}

impl ResponseSummary {
    pub(super) fn new(status: StatusCode, headers: &HeaderMap) -> Self {
        Self { status, request_id: headers.get(&REQUEST_ID).cloned() }
    }

    pub(super) fn request_id(&self) -> Option<RequestId> {
        self.request_id.as_ref().and_then(parse_request_id)
    }
}

/// The position of an API key in its rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimitStatus {
    /// Maximum number of requests in a window of one second.
    pub limit: u32,
    /// Requests left in this window.
    pub remaining: u32,
    /// The Unix second at the end of this window.
    pub reset: u64,
}

impl RateLimitStatus {
    /// Parses the three `X-RateLimit-…` headers; `None` unless all of them can be read, or if they are a proxy's.
    pub(super) fn from_headers(headers: &HeaderMap) -> Option<Self> {
        if !is_from_service(headers) {
            return None;
        }
        let number = |name: &HeaderName| headers.get(name)?.to_str().ok()?.parse::<u64>().ok();
        Some(Self {
            limit: number(&RATE_LIMIT)?.try_into().ok()?,
            remaining: number(&RATE_REMAINING)?.try_into().ok()?,
            reset: number(&RATE_RESET)?,
        })
    }
}

/// Returns `true` for a response with an id of the service. A proxy in front of it has a different clock and rate limit,
/// and gives ids to requests too, but of another form.
pub(super) fn is_from_service(headers: &HeaderMap) -> bool {
    headers.get(&REQUEST_ID).is_some_and(|id| id.as_bytes().starts_with(b"req_"))
}

pub(super) fn request_id(headers: &HeaderMap) -> Option<RequestId> {
    headers.get(&REQUEST_ID).and_then(parse_request_id)
}

fn parse_request_id(value: &HeaderValue) -> Option<RequestId> {
    value.to_str().ok().map(RequestId::unchecked)
}
