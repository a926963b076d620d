//! Tests that the same seed, clock and requests get the same responses, byte for byte.

use std::fmt::Write;

use axum::{Router, body::Body};
use http::Request;
use http_body_util::BodyExt;
use parcelo_domain::sample;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{Clock, MockServer};

const START: &str = "2026-01-05T08:00:00Z";

/// A client that records a transcript of its requests and responses.
struct RecordingClient {
    routes: Router,
    key: String,
    /// Requests, statuses, headers and bodies.
    transcript: Vec<u8>,
    /// The last body.
    last_body: Vec<u8>,
}

impl RecordingClient {
    async fn send(&mut self, method: &str, path: &str, body: &Value) {
        let mut request = Request::builder().method(method).uri(path);
        let body = if body.is_null() {
            Body::empty()
        } else {
            request = request.header("content-type", "application/json");
            Body::from(body.to_string())
        };
        let request = request.header("x-api-key", &self.key).body(body).unwrap();
        let response = self.routes.clone().oneshot(request).await.unwrap();
        let mut head = format!("\n{method} {path}: {}\n", response.status());
        for (name, value) in response.headers() {
            writeln!(head, "{name}: {}", value.to_str().unwrap()).unwrap();
        }
        self.last_body = response.into_body().collect().await.unwrap().to_bytes().into();
        self.transcript.extend(head.bytes().chain(self.last_body.iter().copied()));
    }

    async fn get(&mut self, path: &str) {
        self.send("GET", path, &Value::Null).await;
    }

    async fn post(&mut self, path: &str, body: &Value) {
        self.send("POST", path, body).await;
    }

    /// Returns a text of the last response.
    fn text_at(&self, pointer: &str) -> String {
        let body: Value = serde_json::from_slice(&self.last_body).unwrap();
        body.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    async fn create(&mut self, key: &str, number: Option<&str>) -> String {
        let mut order = sample::order();
        order["idempotencyKey"] = json!(key);
        order["trackingNumber"] = json!(number);
        self.post("/api/v1/orders/create", &order).await;
        self.text_at("/parcel/trackingNumber")
    }
}

/// Records a shipper's day: orders, repeats, labels, a manifest, voids, errors, and time that passes.
async fn transcript(seed: u64, start: &str) -> Vec<u8> {
    let builder = MockServer::builder().seed(seed).clock(Clock::frozen(start));
    let server = builder.base_url("https://sandbox.parcelo.test/").start().await;
    let key = server.key().issue().secret().to_owned();
    let (routes, transcript, last_body) = (server.routes(), key.clone().into_bytes(), Vec::new());
    let mut shipper = RecordingClient { routes, key, transcript, last_body };
    let first = shipper.create("order-0001", None).await;
    let link = shipper.text_at("/parcel/labelUrl");
    shipper.get(link.trim_start_matches("https://sandbox.parcelo.test")).await;
    let voided = shipper.create("order-0002", None).await;
    shipper.create("order-0003", Some("SB-SUCCESS-0001")).await;
    shipper.create("order-0003", Some("SB-SUCCESS-0001")).await;
    shipper.create("order-0003", Some("SB-SUCCESS-0002")).await;
    shipper.create("short", Some("no number")).await;
    for format in ["pdf", "png", "zpl"] {
        shipper.get(&format!("/api/v1/labels/{first}/download?format={format}")).await;
    }
    shipper.get(&format!("/api/v1/labels/{first}")).await;
    let again = json!({ "idempotencyKey": "reprint-0001", "reason": "torn" });
    shipper.post(&format!("/api/v1/labels/{first}/reprint"), &again).await;
    let void =
        json!({ "idempotencyKey": "void-0001", "trackingNumbers": [voided, "NOBODYS-0001"] });
    shipper.post("/api/v1/orders/void", &void).await;
    let void = json!({ "idempotencyKey": "void-0002", "trackingNumbers": [voided] });
    shipper.post("/api/v1/orders/void", &void).await;
    let manifest = json!({ "idempotencyKey": "manifest-0001", "awbNumber": "176-12345675",
        "trackingNumbers": [first] });
    shipper.post("/api/v1/manifests/submit", &manifest).await;
    let manifest = shipper.text_at("/data/manifestId");
    shipper.get(&format!("/api/v1/manifests/{manifest}")).await;
    let fired = server.clock().advance(std::time::Duration::from_secs(3600)).await;
    assert_eq!(fired.len(), 4);
    for path in [
        "/api/v1/tracking/SB-SUCCESS-0001?includeHistory=true",
        "/api/v1/tracking/NOBODYS-0001",
        "/api/v1/parcels?limit=2",
        "/api/v1/health",
        "/no/such/page",
    ] {
        shipper.get(path).await;
    }
    let batch = json!({ "trackingNumbers": [first, voided, "NOBODYS-0001"] });
    shipper.post("/api/v1/tracking/batch", &batch).await;
    shipper.post("/api/v1/sandbox/reset", &Value::Null).await;
    shipper.key = "pk_test_unknown".to_owned();
    shipper.get("/api/v1/health").await;
    shipper.transcript
}

#[tokio::test]
async fn ten_runs_have_the_same_responses_byte_for_byte() {
    let first = transcript(42, START).await;
    let text = String::from_utf8_lossy(&first);
    for status in ["200 OK", "201 Created", "400 Bad", "401 Un", "404 Not", "409 Con"] {
        assert!(text.contains(&format!(": {status}")), "{status} is in the script: {text}");
    }
    assert!(!text.contains("127.0.0.1"), "no response has the server's port");
    for run in 1..10 {
        assert!(transcript(42, START).await == first, "run {run} differs");
    }
    assert!(transcript(43, START).await != first);
    assert!(transcript(42, "2026-01-05T08:00:01Z").await != first);
}
