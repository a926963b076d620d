//! Writing a request into the log while it passes.

use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    RequestExt,
    body::{Body as HttpBody, Bytes},
    extract::{MatchedPath, RawPathParams, Request},
    http::HeaderMap,
};
use http_body_util::BodyExt;
use parcelo::{ApiKey, Operation, admin::CarrierKey, model::header as names};

use super::{
    log::{Body, LONGEST_BODY, Log, Recorded},
    order_names::OrderNames,
};
use crate::clock::Millis;

/// What a request's head says.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) operation: Option<Operation>,
    pub(super) key: Option<ApiKey>,
    /// The orders that it is about.
    pub(super) orders: OrderNames,
    path: String,
    parameter: Option<String>,
    idempotency_key: Option<String>,
}

impl Seen {
    pub(super) async fn of(request: &mut Request) -> Self {
        let matched = request.extensions().get::<MatchedPath>();
        let path = matched.map(|path| path.as_str().to_owned()).unwrap_or_default();
        let is_asked = |operation: &&Operation| {
            operation.path() == path && operation.method().as_str() == request.method().as_str()
        };
        let operation = Operation::ALL.iter().find(is_asked).copied();
        let key = header(request.headers(), names::API_KEY);
        let key = key.and_then(|text| ApiKey::parse(text).ok());
        let parameter = parameter(request).await;
        let idempotency_key = crate::http::idempotency_key(request.headers());
        let mut orders = OrderNames::NONE;
        orders.add_parameter(parameter.as_deref());
        orders.add_query(request.uri().query());
        orders.add_key(idempotency_key.as_deref());
        Self { operation, key, orders, path, parameter, idempotency_key }
    }
}

async fn parameter(request: &mut Request) -> Option<String> {
    let parameters = request.extract_parts::<RawPathParams>().await.ok()?;
    parameters.iter().next().map(|(_, value)| value.to_owned())
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The record of a request in flight. It reaches the log when it is dropped, so also when the
/// client leaves early.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    log: &'a Log,
    record: Option<Recorded>,
    body: Arc<Mutex<Copied>>,
}

/// As much of a body as has been read.
#[derive(Debug, Default)]
struct Copied {
    bytes: Vec<u8>,
    len: usize,
}

impl<'a> Entry<'a> {
    /// Begins a record, and copies the request's body as it is read.
    pub(super) fn begin(
        log: &'a Log,
        seen: Seen,
        now: Millis,
        request: Request,
    ) -> (Self, Request) {
        let body = Arc::default();
        if log.is_off() {
            return (Self { log, record: None, body }, request);
        }
        let record = Some(begun(seen, now, &request));
        let request = request.map(|whole| copied(whole, Arc::clone(&body)));
        (Self { log, record, body }, request)
    }

    /// Notes the service's answer.
    pub(super) fn answered(&mut self, status: u16, body: &Bytes) {
        if let Some(record) = &mut self.record {
            (record.status, record.answer) = (Some(status), Body::of(body));
        }
    }

    /// Notes the faults.
    pub(super) fn met(&mut self, faults: &[String]) {
        if let Some(record) = &mut self.record {
            record.faults = faults.to_vec();
        }
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let Some(mut record) = self.record.take() else { return };
        let copied = mem::take(&mut *self.body.lock().unwrap_or_else(PoisonError::into_inner));
        record.request = copied.into_body();
        let in_body = record.orders.add_body(record.request.kept());
        record.idempotency_key = record.idempotency_key.or(in_body);
        if record.operation == Some(Operation::CreateOrder) {
            record.orders.add_body(record.answer.kept()); // the number that the service gave
        }
        self.log.add(record);
    }
}

fn begun(seen: Seen, now: Millis, request: &Request) -> Recorded {
    let headers = request.headers();
    Recorded {
        at: now.to_utc(),
        operation: seen.operation,
        method: request.method().to_string(),
        path: seen.path,
        parameter: seen.parameter,
        api_key: seen.key.as_ref().map(|key| redacted(key.secret())).or_else(|| carrier(headers)),
        idempotency_key: seen.idempotency_key,
        request: Body::default(),
        status: None,
        answer: Body::default(),
        faults: Vec::new(),
        key: seen.key,
        orders: seen.orders,
    }
}

fn carrier(headers: &HeaderMap) -> Option<String> {
    let key = CarrierKey::parse(header(headers, names::CARRIER_KEY)?).ok()?;
    Some(redacted(key.secret()))
}

/// A key's prefix and last four characters: the rest of a sound key is random.
fn redacted(key: &str) -> String {
    let (prefix, random) = key.rsplit_once('_').unwrap_or_default();
    let last = random.get(random.len().saturating_sub(4)..).unwrap_or_default();
    format!("{prefix}_…{last}")
}

fn copied(body: HttpBody, copy: Arc<Mutex<Copied>>) -> HttpBody {
    HttpBody::new(body.map_frame(move |frame| {
        if let Some(bytes) = frame.data_ref() {
            copy.lock().unwrap_or_else(PoisonError::into_inner).add(bytes);
        }
        frame
    }))
}

impl Copied {
    fn add(&mut self, bytes: &Bytes) {
        self.len += bytes.len();
        if self.len <= LONGEST_BODY {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn into_body(self) -> Body {
        if self.len == self.bytes.len() {
            Body::of(&self.bytes.into())
        } else {
            Body::long(self.len)
        }
    }
}
