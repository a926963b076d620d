//! A transport that responds from a script and records its requests.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use parcelo::{
    ApiKey, Client, ClientBuilder, Environment, IdempotencyKey, OrderRequest, TrackingNumber,
    transport::{BodyStream, Phase, ResponseFuture, Transport, TransportError},
};

/// The result of a request.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Response(u16, Vec<(&'static str, String)>, Vec<Piece>),
    Fail(Phase),
    Hang,
}

#[derive(Debug, Clone)]
pub(crate) enum Piece {
    Bytes(Bytes),
    After(Duration, Bytes),
    Break,
    Silence,
}

/// Returns a step that responds with JSON.
pub(crate) fn response(status: u16, body: impl Into<String>) -> Step {
    Step::Response(status, Vec::new(), vec![Piece::Bytes(body.into().into())])
}

impl Step {
    pub(crate) fn with(self, name: &'static str, value: impl Into<String>) -> Self {
        match self {
            Self::Response(status, mut headers, body) => {
                headers.push((name, value.into()));
                Self::Response(status, headers, body)
            }
            other => other,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ScriptedTransport {
    steps: Arc<Mutex<VecDeque<Step>>>,
    sent: Arc<Mutex<Vec<http::Request<Bytes>>>>,
}

impl ScriptedTransport {
    /// Returns a client whose requests get the results of `steps`, one after the other; the last one is repeated.
    pub(crate) fn client(steps: impl IntoIterator<Item = Step>) -> (Client, Self) {
        Self::client_with(steps, |builder| builder)
    }

    /// Returns a client like that of [`client`](Self::client), with these settings.
    pub(crate) fn client_with(
        steps: impl IntoIterator<Item = Step>,
        set: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> (Client, Self) {
        let script = Self::default();
        script.steps.lock().unwrap().extend(steps);
        let client = set(Client::builder(key()).transport(script.clone())).build().unwrap();
        (client, script)
    }

    pub(crate) fn sent_requests(&self) -> Vec<http::Request<Bytes>> {
        self.sent.lock().unwrap().clone()
    }
}

impl Transport for ScriptedTransport {
    fn send(&self, request: http::Request<Bytes>) -> ResponseFuture<'_> {
        self.sent.lock().unwrap().push(request);
        let mut steps = self.steps.lock().unwrap();
        let step = if steps.len() > 1 { steps.pop_front() } else { steps.front().cloned() };
        perform(step.unwrap())
    }
}

/// Returns the result of a step for a transport.
pub(crate) fn perform(step: Step) -> ResponseFuture<'static> {
    match step {
        Step::Hang => Box::pin(std::future::pending()),
        Step::Fail(phase) => Box::pin(async move { Err(TransportError::new(phase, "scripted")) }),
        Step::Response(status, headers, pieces) => {
            let mut response = http::Response::builder().status(status);
            for (name, value) in headers {
                let value = http::HeaderValue::from_bytes(value.as_bytes()).unwrap();
                response = response.header(name, value);
            }
            let body = BodyStream::new(stream::iter(pieces).then(deliver));
            Box::pin(async move { Ok(response.body(body).unwrap()) })
        }
    }
}

async fn deliver(piece: Piece) -> Result<Bytes, TransportError> {
    match piece {
        Piece::Bytes(bytes) => Ok(bytes),
        Piece::After(wait, bytes) => {
            tokio::time::sleep(wait).await;
            Ok(bytes)
        }
        Piece::Break => Err(TransportError::new(Phase::MaybeSent, "scripted")),
        Piece::Silence => std::future::pending().await,
    }
}

pub(crate) fn key() -> ApiKey {
    ApiKey::from_random(Environment::Sandbox, &[7; 32])
}

pub(crate) fn number() -> TrackingNumber {
    TrackingNumber::parse("SB-SUCCESS-0001").unwrap()
}

pub(crate) fn order() -> OrderRequest {
    serde_json::from_value(serde_json::json!({
        "idempotencyKey": "order-0001",
        "sender": {"fullName": "CANARY", "phone": "+13055550100",
            "address": {"line1": "CANARY", "city": "Miami", "country": "US"}},
        "receiver": {"fullName": "CANARY", "phone": "+593991234567", "nationalId": "CANARY",
            "address": {"line1": "CANARY", "city": "Quito", "province": "Pichincha", "country": "EC"}},
        "parcelDetails": {"weightKg": 1.5, "declaredValue": 19.99}
    }))
    .unwrap()
}

/// Returns orders, each with its own key. The same namespace always gives the same keys.
pub(crate) fn orders(
    namespace: &'static str,
    count: usize,
) -> impl Iterator<Item = OrderRequest> + Send + Unpin {
    let key = |number: usize| IdempotencyKey::derive(namespace, &number.to_string());
    (0..count).map(move |number| order().with_idempotency_key(key(number)))
}

pub(crate) const CREATED: &str = r#"{"success":true,"parcel":{"id":"par_1","trackingNumber":"SB-SUCCESS-0001",
    "status":"LABEL_GENERATED","labelUrl":"http://localhost/l","createdAt":"2026-01-10T15:05:00.000Z"}}"#;

pub(crate) const RECORD: &str = r#"{"trackingNumber":"SB-SUCCESS-0001","status":"LOST_AT_SEA","statusName":"?",
    "estimatedDelivery":"2026-01-20T23:59:59-05:00","newField":[1]}"#;

pub(crate) fn refusal(code: &str) -> String {
    format!(
        r#"{{"success":false,"error":{{"code":"{code}","message":"No.","message_es":"No va.","requestId":"req_body"}}}}"#
    )
}
