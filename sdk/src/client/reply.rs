//! A successful response: its value, and what the response's head says.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::{
    HeaderMap, HeaderName, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, DATE},
};
use parcelo_types::{
    IdempotencyKey, Operation,
    internal::header,
    model::{CreatedOrder, Health, RequestId, TrackingRecord, Unreadable},
};
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    Error, ErrorKind, Outcome, RateLimitStatus, StopReason,
    call_state::CallState,
    error::Texts,
    outcome::outcome,
    response::{self, ServiceResponse, is_from_service},
};

/// A successful response. It dereferences to its value.
///
/// ```
#[doc = include_str!("example.txt")]
/// use parcelo::Outcome;
///
/// let created = client.orders().create(&order).await?;
/// println!("{} {}", created.parcel.tracking_number, created.parcel.status);
/// assert_eq!((created.outcome(), created.meta().attempts), (Outcome::Created, 1));
/// println!("quote {:?} to support", created.meta().request_id);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply<T> {
    value: T,
    status: StatusCode,
    outcome: Outcome,
    meta: ReplyMeta,
}

/// Metadata of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplyMeta {
    /// The id to quote to support.
    pub request_id: Option<RequestId>,
    /// The number of attempts that the call took; 1 unless it was retried.
    pub attempts: u32,
    /// The key's position in its rate limit.
    pub rate_limit: Option<RateLimitStatus>,
    /// The idempotency key with which a write was sent.
    pub idempotency_key: Option<IdempotencyKey>,
    /// The time of the response, by the service's clock (`Date`).
    pub date: Option<DateTime<Utc>>,
    /// All headers of the response. `Debug` shows the values of known ones only, such as `content-type` and the
    /// service's own; all others, such as a proxy's cookie, show as `Sensitive`.
    pub headers: HeaderMap,
}

impl<T> Reply<T> {
    /// Returns the value, without the metadata.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Returns which call executed the write: this one, or an earlier one with the same idempotency key.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// use parcelo::Outcome;
    ///
    /// assert_eq!(client.orders().create(&order).await?.outcome(), Outcome::Created);
    /// assert_eq!(client.orders().create(&order).await?.outcome(), Outcome::Replayed);
    /// # Ok(())
    /// # }
    /// ```
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Returns the metadata: request id, attempts, rate limit, idempotency key, headers.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let health = client.health().await?;
    /// let limit = health.meta().rate_limit.unwrap();
    /// println!("{} of {} left in this second", limit.remaining, limit.limit);
    /// # assert_eq!(limit.limit, 100);
    /// # Ok(())
    /// # }
    /// ```
    pub fn meta(&self) -> &ReplyMeta {
        &self.meta
    }

    pub(super) fn new(
        value: T,
        operation: Option<Operation>,
        response: ServiceResponse<Bytes>,
        state: &CallState,
    ) -> Self {
        Self {
            value,
            status: response.status,
            outcome: outcome(operation, response.status, &response.headers),
            meta: ReplyMeta {
                request_id: response::request_id(&response.headers),
                attempts: state.attempts,
                rate_limit: response.rate_limit,
                idempotency_key: state.idempotency_key.clone(),
                date: response.date,
                headers: mark_sensitive(response.headers),
            },
        }
    }

    /// Returns a response without headers.
    #[cfg(feature = "test-util")]
    pub(crate) fn for_tests(value: T, outcome: Outcome) -> Self {
        let meta = ReplyMeta {
            request_id: None,
            attempts: 1,
            rate_limit: None,
            idempotency_key: None,
            date: None,
            headers: HeaderMap::new(),
        };
        Self { value, status: StatusCode::OK, outcome, meta }
    }

    /// Returns the error for a row that cannot be read, with the response's metadata.
    pub(super) fn unreadable_row(&self, row: Unreadable) -> Error {
        Error::from(row).with(|inner| {
            inner.status = Some(self.status.as_u16());
            inner.request_id.clone_from(&self.meta.request_id);
            inner.attempts = self.meta.attempts;
            inner.stop_reason = Some(StopReason::Permanent);
        })
    }

    pub(super) fn map<U>(self, part: impl FnOnce(T) -> U) -> Reply<U> {
        let Self { value, status, outcome, meta } = self;
        Reply { value: part(value), status, outcome, meta }
    }
}

/// A response whose body may contain a `success` that contradicts its status.
pub(super) trait HasSuccess {
    /// Returns the body's `success`; `true` if it has none.
    fn is_success(&self) -> bool {
        true
    }
}

/// A response in an envelope. The `meta` in the envelope repeats headers, and need not be readable.
#[derive(Debug, Deserialize)]
pub(super) struct Enveloped<T> {
    success: bool,
    pub(super) data: T,
}

impl<T> HasSuccess for Enveloped<T> {
    fn is_success(&self) -> bool {
        self.success
    }
}

/// A response whose body has no `success`, or whose type is not known here.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct WithoutSuccess<T>(pub(super) T);

impl<T> HasSuccess for WithoutSuccess<T> {}

impl HasSuccess for CreatedOrder {
    fn is_success(&self) -> bool {
        self.success
    }
}

impl HasSuccess for Health {
    fn is_success(&self) -> bool {
        self.success
    }
}

impl HasSuccess for TrackingRecord {}

/// Parses the JSON of a response.
pub(super) fn parse_reply<T: DeserializeOwned + HasSuccess>(
    operation: Option<Operation>,
    response: ServiceResponse<Bytes>,
    state: &CallState,
) -> Result<Reply<T>, Error> {
    let value: T = serde_json::from_slice(&response.body).map_err(|error| {
        let cause = cause(&response.headers, &error);
        let json = serde_json::from_slice(&response.body).ok();
        // Even if the body does not match the type, its `success` says that the write was executed. The `success` of a
        // gateway may be about the gateway itself.
        let is_settled = state.is_write && is_from_service(&response.headers);
        let error = match &json {
            Some(json) if is_settled && says_success(json) => {
                decode_error(&response, state, EXECUTED).with(|it| it.kind = ErrorKind::Executed)
            }
            _ => decode_error(&response, state, UNREADABLE),
        };
        error.with_source(cause).with(|inner| inner.unreadable = json.map(Unreadable::new))
    })?;
    if value.is_success() {
        Ok(Reply::new(value, operation, response, state))
    } else {
        Err(decode_error(&response, state, CONTRADICTORY))
    }
}

impl<T> std::ops::Deref for Reply<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// Headers whose values are useful in a log and not personal.
const LOGGABLE_HEADERS: [HeaderName; 7] = [
    CONTENT_LENGTH,
    CONTENT_TYPE,
    DATE,
    HeaderName::from_static(header::IDEMPOTENT_REPLAYED),
    HeaderName::from_static(header::RATE_LIMIT),
    HeaderName::from_static(header::RATE_REMAINING),
    HeaderName::from_static(header::REQUEST_ID),
];

/// Marks all other headers as sensitive, since a proxy may add any.
fn mark_sensitive(mut headers: HeaderMap) -> HeaderMap {
    for (name, value) in &mut headers {
        value.set_sensitive(!LOGGABLE_HEADERS.contains(name));
    }
    headers
}

/// Returns the position of the error in the JSON, without the text there, which may be personal. A compressed body that
/// was not requested is named by its header.
fn cause(headers: &HeaderMap, error: &serde_json::Error) -> String {
    let position = format!("invalid JSON at line {}, column {}", error.line(), error.column());
    match headers.get(CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => {
            let encoding = encoding.to_str().unwrap_or("(not ASCII)");
            format!(
                "{position}; the response has content-encoding: {encoding}, which was not requested"
            )
        }
        Some(_) | None => position,
    }
}

const UNREADABLE: Texts =
    ("The response could not be read.", "No se pudo interpretar la respuesta.");
const EXECUTED: Texts = (
    "The request was executed, but its response could not be read: do not send it again.",
    "La solicitud se ejecutó, pero no se pudo interpretar su respuesta: no la envíe otra vez.",
);
const CONTRADICTORY: Texts = (
    "The response contradicts itself: its status says success, its body says failure.",
    "La respuesta se contradice: su estado indica éxito y su cuerpo indica un error.",
);

/// Returns `true` if the body says that the request was executed, whatever else it says.
fn says_success(json: &serde_json::Value) -> bool {
    json.get("success") == Some(&true.into())
}

fn decode_error(response: &ServiceResponse<Bytes>, state: &CallState, texts: Texts) -> Error {
    // Its status is a success.
    let error = state.decode_error(&response.summary(), texts);
    error.with(|inner| inner.may_have_executed = state.is_write)
}
