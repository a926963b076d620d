//! The scripted transport of `parcelo::testing`, and what the tests here send through it.

pub(crate) use parcelo::testing::{Piece, ScriptedTransport, Step};
use parcelo::{ApiKey, Client, ClientBuilder, IdempotencyKey, OrderRequest, TrackingNumber};

/// Returns a step that responds with JSON.
pub(crate) fn response(status: u16, body: impl Into<String>) -> Step {
    Step::response(status, body.into())
}

/// Returns a client with these settings whose requests end in `steps`, and its transport.
pub(crate) fn client_with(
    steps: impl IntoIterator<Item = Step>,
    set: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> (Client, ScriptedTransport) {
    let script = ScriptedTransport::new(steps);
    let client = set(Client::builder(key()).transport(script.clone())).build().unwrap();
    (client, script)
}

pub(crate) fn key() -> ApiKey {
    parcelo::testing::api_key()
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
