//! A successful answer: its value, and what the answer's head says.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, DATE},
};
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    Error, ErrorKind, StopReason, call::Call, course::Answer, error::Texts, failure::Trace,
};
use crate::model::{
    CreatedOrder, Health, IdempotencyKey, Operation, RequestId, TrackingRecord, Unreadable, header,
};

/// A successful answer. It dereferences to its value.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = parcelo_server::mock::MockServer::start().await;
/// # let client = server.client(&server.key().issue());
/// # let order: parcelo::OrderRequest = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
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

/// Whether a write was made by this call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// This call made it. (Also every read.)
    Created,
    /// An earlier call with the same idempotency key made it; this is that call's answer.
    Replayed,
}

/// About an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplyMeta {
    /// The id to quote to support.
    pub request_id: Option<RequestId>,
    /// How many times the request was sent; 1 unless it was retried.
    pub attempts: u32,
    /// Where the key stands in its rate limit.
    pub rate_limit: Option<RateLimitStatus>,
    /// The key under which a write was sent.
    pub idempotency_key: Option<IdempotencyKey>,
    /// When the service answered, by its own clock.
    pub date: Option<DateTime<Utc>>,
    /// All headers of the answer. `Debug` shows the values of harmless ones only, such as
    /// `content-type` and the service's own; a cookie that a proxy sets is `Sensitive`.
    pub headers: HeaderMap,
}

/// Where an API key stands in its rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimitStatus {
    /// The most requests in a window.
    pub limit: u32,
    /// Requests left in this window.
    pub remaining: u32,
    /// The Unix second in which this window ends.
    pub reset: u64,
}

impl<T> Reply<T> {
    /// The value alone, without what the answer's head says.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Whether this call made it, or an earlier one with the same idempotency key.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let client = server.client(&server.key().issue());
    /// # let order: parcelo::OrderRequest = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
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

    /// Request id, attempts, rate limit, idempotency key.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let client = server.client(&server.key().issue());
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
}

impl<T> Reply<T> {
    /// A value and what its answer's head says.
    pub(super) fn with(value: T, call: &Call<'_>, answer: Answer<Bytes>, trace: &Trace) -> Self {
        Self {
            value,
            status: answer.status,
            outcome: outcome(call.operation, answer.status, &answer.headers),
            meta: ReplyMeta {
                request_id: request_id(&answer.headers),
                attempts: trace.attempts,
                rate_limit: answer.rate_limit,
                idempotency_key: trace.idempotency_key.clone(),
                date: answer.date,
                headers: guarded(answer.headers),
            },
        }
    }

    /// What cannot be read of it: an error that keeps what is known about the answer.
    pub(super) fn unreadable(&self, row: Unreadable) -> Error {
        Error::from(row).with(|inner| {
            inner.status = Some(self.status.as_u16());
            inner.request_id.clone_from(&self.meta.request_id);
            inner.attempts = self.meta.attempts;
            inner.stop_reason = Some(StopReason::Permanent);
        })
    }

    /// The value, and what the answer's head says.
    pub(super) fn split(self) -> (T, Reply<()>) {
        let Self { value, status, outcome, meta } = self;
        (value, Reply { value: (), status, outcome, meta })
    }

    pub(super) fn map<U>(self, part: impl FnOnce(T) -> U) -> Reply<U> {
        let Self { value, status, outcome, meta } = self;
        Reply { value: part(value), status, outcome, meta }
    }
}

/// An answer that may contradict the status that it came with.
pub(super) trait Verdict {
    /// What its `success` says; true where there is none.
    fn is_success(&self) -> bool {
        true
    }
}

/// An answer in an envelope; what it says about itself stands in its head too, and need not be readable here.
#[derive(Debug, Deserialize)]
pub(super) struct Data<T> {
    success: bool,
    pub(super) data: T,
}

impl<T> Verdict for Data<T> {
    fn is_success(&self) -> bool {
        self.success
    }
}

/// An answer that says nothing about itself that is known here.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Plain<T>(pub(super) T);

impl<T> Verdict for Plain<T> {}

impl Verdict for CreatedOrder {
    fn is_success(&self) -> bool {
        self.success
    }
}

impl Verdict for Health {
    fn is_success(&self) -> bool {
        self.success
    }
}

impl Verdict for TrackingRecord {}

/// Reads the answer to a call.
pub(super) fn read<T: DeserializeOwned + Verdict>(
    call: &Call<'_>,
    answer: Answer<Bytes>,
    trace: &Trace,
) -> Result<Reply<T>, Error> {
    let value: T = serde_json::from_slice(&answer.body).map_err(|fault| {
        let cause = cause(&answer.headers, &fault);
        let json = serde_json::from_slice(&answer.body).ok();
        let error = match &json {
            Some(json) if trace.writes && says_success(json) => executed(&answer, trace),
            _ => unread(&answer, trace, UNREADABLE),
        };
        error.because(cause).with(|inner| inner.unreadable = json.map(Unreadable::new))
    })?;
    if value.is_success() {
        Ok(Reply::with(value, call, answer, trace))
    } else {
        Err(unread(&answer, trace, CONTRADICTORY))
    }
}

impl<T> std::ops::Deref for Reply<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// Headers whose values are of use in a log, and tell nothing about anybody.
const HARMLESS: [HeaderName; 7] = [
    CONTENT_LENGTH,
    CONTENT_TYPE,
    DATE,
    HeaderName::from_static(header::IDEMPOTENT_REPLAYED),
    HeaderName::from_static(header::RATE_LIMIT),
    HeaderName::from_static(header::RATE_REMAINING),
    HeaderName::from_static(header::REQUEST_ID),
];

/// The same headers, of which `Debug` shows the harmless ones: nobody knows what a proxy adds.
fn guarded(mut headers: HeaderMap) -> HeaderMap {
    for (name, value) in &mut headers {
        value.set_sensitive(!HARMLESS.contains(name));
    }
    headers
}

/// The header tells; a service that knows only the two statuses of the spec tells by them.
fn outcome(operation: Option<Operation>, status: StatusCode, headers: &HeaderMap) -> Outcome {
    let told = headers.get(header::IDEMPOTENT_REPLAYED).is_some_and(|value| value == "true");
    let creates = matches!(operation, Some(Operation::CreateOrder | Operation::SubmitManifest));
    if told || (creates && status == StatusCode::OK) { Outcome::Replayed } else { Outcome::Created }
}

pub(super) fn request_id(headers: &HeaderMap) -> Option<RequestId> {
    headers.get(header::REQUEST_ID).and_then(read_id)
}

pub(super) fn read_id(value: &HeaderValue) -> Option<RequestId> {
    value.to_str().ok().map(RequestId::unchecked)
}

pub(super) fn rate_limit(headers: &HeaderMap) -> Option<RateLimitStatus> {
    let number = |name| headers.get(name)?.to_str().ok()?.parse::<u64>().ok();
    Some(RateLimitStatus {
        limit: number(header::RATE_LIMIT)?.try_into().ok()?,
        remaining: number(header::RATE_REMAINING)?.try_into().ok()?,
        reset: number(header::RATE_RESET)?,
    })
}

/// Where the JSON stopped making sense. Not what stood there: that may be personal. A body in another form,
/// which the client did not ask for, is named by its header.
fn cause(headers: &HeaderMap, fault: &serde_json::Error) -> String {
    let place = format!("unreadable JSON at line {}, column {}", fault.line(), fault.column());
    match headers.get(CONTENT_ENCODING) {
        Some(form) if form != "identity" => {
            let form = form.to_str().unwrap_or("unreadable");
            format!("{place}; the answer has content-encoding: {form}, which was not requested")
        }
        Some(_) | None => place,
    }
}

const UNREADABLE: Texts = ("The answer could not be read.", "No se pudo interpretar la respuesta.");
const EXECUTED: Texts = (
    "The request was executed, but its answer could not be read: do not send it again.",
    "La solicitud se ejecutó, pero no se pudo interpretar su respuesta: no la envíe otra vez.",
);
const CONTRADICTORY: Texts = (
    "The answer contradicts itself: its status is a success, and its body says that it is none.",
    "La respuesta se contradice: su estado es de éxito y su cuerpo dice que no lo es.",
);

/// True when the service says that it did what was asked, whatever else it says.
fn says_success(json: &serde_json::Value) -> bool {
    json.get("success") == Some(&true.into())
}

/// What was asked is done, and of the answer not even the part can be read without which it is none.
fn executed(answer: &Answer<Bytes>, trace: &Trace) -> Error {
    unread(answer, trace, EXECUTED).with(|inner| inner.kind = ErrorKind::Executed)
}

fn unread(answer: &Answer<Bytes>, trace: &Trace, why: Texts) -> Error {
    Error::new(ErrorKind::Decode, why).with(|inner| {
        inner.status = Some(answer.status.as_u16());
        inner.request_id = request_id(&answer.headers);
        inner.attempts = trace.attempts;
        inner.idempotency_key.clone_from(&trace.idempotency_key);
        inner.may_have_executed = trace.writes;
        inner.stop_reason = Some(StopReason::Permanent);
    })
}
