//! Capturing requests for the log while they are handled.

use std::{
    borrow::Cow,
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    RequestExt,
    body::{Body as HttpBody, Bytes},
    extract::{MatchedPath, RawPathParams, Request},
    http::{HeaderName, HeaderValue},
};
use http_body_util::BodyExt;
use parcelo_domain::Millis;
use parcelo_types::{ApiKey, Operation, internal::header as names};
use parcelo_wire::CarrierKey;

use super::{
    key_mask::mask_keys,
    log::RequestLog,
    order_names::OrderNames,
    recorded_request::{Body, Headers, MAX_BODY_BYTES, RecordedRequest},
};

/// The headers whose values are secrets.
const SECRET_HEADERS: [&str; 5] =
    ["authorization", "cookie", "proxy-authorization", names::API_KEY, names::CARRIER_KEY];

/// Begins the record of a request with the contents of its head.
pub(super) async fn record_head(request: &mut Request, now: Millis) -> RecordedRequest {
    let matched = request.extensions().get::<MatchedPath>();
    let path = matched.map(|path| path.as_str().to_owned()).unwrap_or_default();
    let is_called = |operation: &&Operation| {
        operation.path() == path && operation.method().as_str() == request.method().as_str()
    };
    let operation = Operation::ALL.iter().find(is_called).copied();
    let parameter = parameter(request).await;
    let headers = request.headers();
    let key = headers.get(names::API_KEY).and_then(parse_api_key);
    let idempotency_key = crate::http::idempotency_key(headers);
    let mut orders = OrderNames::EMPTY;
    orders.add_parameter(parameter.as_deref());
    orders.add_query(request.uri().query());
    orders.add_key(idempotency_key.as_deref());
    RecordedRequest {
        at: now.to_utc(),
        operation,
        method: request.method().to_string(),
        path,
        parameter: parameter.map(|text| mask_keys(&text).into_owned()),
        api_key: [names::API_KEY, names::CARRIER_KEY]
            .into_iter()
            .find_map(|name| redact_key(headers.get(name)?)),
        idempotency_key: idempotency_key.map(|key| mask_keys(&key).into_owned()),
        headers: Headers::default(),
        request: Body::default(),
        status: None,
        answer: Body::default(),
        faults: Vec::new(),
        key,
        orders,
    }
}

async fn parameter(request: &mut Request) -> Option<String> {
    let parameters = request.extract_parts::<RawPathParams>().await.ok()?;
    parameters.iter().next().map(|(_, value)| value.to_owned())
}

fn parse_api_key(value: &HeaderValue) -> Option<ApiKey> {
    ApiKey::parse(value.to_str().ok()?).ok()
}

/// The record of a request in flight. It is added to the log on drop, which also happens if the client disconnects
/// early.
#[derive(Debug)]
pub(super) struct RequestCapture<'a> {
    log: &'a RequestLog,
    record: Option<RecordedRequest>,
    body: Arc<Mutex<BodyCopy>>,
}

/// The part of a body that has been read so far.
#[derive(Debug, Default)]
struct BodyCopy {
    bytes: Vec<u8>,
    len: usize,
}

impl<'a> RequestCapture<'a> {
    /// Continues the record of a request: copies its headers, and the body as it is read.
    pub(super) fn start(
        log: &'a RequestLog,
        mut record: RecordedRequest,
        request: Request,
    ) -> (Self, Request) {
        let body = Arc::default();
        if log.is_off() {
            return (Self { log, record: None, body }, request);
        }
        record.headers = Headers::new(request.headers(), redact_header);
        let request = request.map(|whole| copy_while_reading(whole, Arc::clone(&body)));
        (Self { log, record: Some(record), body }, request)
    }

    /// Records the service's response.
    pub(super) fn set_response(&mut self, status: u16, body: &Bytes) {
        if let Some(record) = &mut self.record {
            (record.status, record.answer) = (Some(status), Body::from_bytes(body));
        }
    }
}

impl Drop for RequestCapture<'_> {
    fn drop(&mut self) {
        let Some(mut record) = self.record.take() else { return };
        let copied = mem::take(&mut *self.body.lock().unwrap_or_else(PoisonError::into_inner));
        record.request = copied.into_body();
        let in_body = record.orders.add_body(record.request.kept());
        record.idempotency_key = record.idempotency_key.or(in_body);
        if record.operation == Some(Operation::CreateOrder) {
            record.orders.add_body(record.answer.kept()); // the tracking number that the service assigned
        }
        self.log.add(record);
    }
}

/// Returns the value to show of a header that holds a secret.
fn redact_header(name: &HeaderName, value: &HeaderValue) -> Option<String> {
    if SECRET_HEADERS.contains(&name.as_str()) {
        return Some(redact_key(value).unwrap_or_else(|| "…".to_owned()));
    }
    match mask_keys(&String::from_utf8_lossy(value.as_bytes())) {
        Cow::Owned(masked) => Some(masked),
        Cow::Borrowed(_) => None,
    }
}

/// Returns the prefix and last four characters of an API key or carrier key: enough to tell keys apart, too little to
/// use one.
fn redact_key(value: &HeaderValue) -> Option<String> {
    let text = value.to_str().ok()?;
    let is_key = ApiKey::parse(text).is_ok() || CarrierKey::parse(text).is_ok();
    let (prefix, random) = text.rsplit_once('_').filter(|_| is_key)?;
    let last = random.get(random.len().saturating_sub(4)..).unwrap_or_default();
    Some(format!("{prefix}_…{last}"))
}

fn copy_while_reading(body: HttpBody, copy: Arc<Mutex<BodyCopy>>) -> HttpBody {
    HttpBody::new(body.map_frame(move |frame| {
        if let Some(bytes) = frame.data_ref() {
            copy.lock().unwrap_or_else(PoisonError::into_inner).add(bytes);
        }
        frame
    }))
}

impl BodyCopy {
    fn add(&mut self, bytes: &Bytes) {
        self.len += bytes.len();
        if self.len <= MAX_BODY_BYTES {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn into_body(self) -> Body {
        if self.len == self.bytes.len() {
            Body::from_bytes(&self.bytes.into())
        } else {
            Body::too_long(self.len)
        }
    }
}
