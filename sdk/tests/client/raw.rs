//! Raw calls by method and path: sent with the key to the client's address, and retried only where that is safe.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use parcelo::{ErrorKind, Operation, Outcome, transport::Phase};

use crate::scripted_transport::{ScriptedTransport, Step, client_with, key, response};

const BODY: Bytes = Bytes::from_static(br#"{"idempotencyKey":"order-0001"}"#);

#[tokio::test(start_paused = true)]
async fn a_raw_call_and_its_response_are_passed_on_unchanged() {
    let step = response(200, "no json").with_header("content-type", "text/plain");
    let step = step
        .with_header("date", "Mon, 05 Jan 2026 08:00:00 GMT")
        .with_header("x-request-id", "req_1");
    let (client, script) = ScriptedTransport::client([step]);
    let reply = client.raw("POST", "/api/v1/orders/create?a=b", Some(BODY)).await.unwrap();
    assert_eq!((reply.status, &reply.body[..]), (200, &b"no json"[..]));
    assert_eq!(reply.content_type.as_deref(), Some("text/plain"));
    assert_eq!(reply.outcome(), Outcome::Replayed, "as the operation's own call would say");
    assert_eq!(reply.meta().idempotency_key.as_ref().unwrap().as_str(), "order-0001");
    assert_eq!(reply.meta().date.unwrap().to_rfc3339(), "2026-01-05T08:00:00+00:00");
    assert_eq!(reply.meta().request_id.as_ref().unwrap().as_str(), "req_1");
    let sent = &script.sent_requests()[0];
    assert_eq!(sent.uri(), "http://localhost/api/v1/orders/create?a=b");
    assert_eq!((sent.method().as_str(), sent.body()), ("POST", &BODY));
    assert_eq!(sent.headers()["content-type"], "application/json");
    assert_eq!(sent.headers()["x-api-key"], key().secret());
}

#[tokio::test(start_paused = true)]
async fn a_raw_call_is_retried_only_where_that_is_safe() {
    let table = [
        ("GET", "/api/v1/health", 4, false),
        ("GET", "/unknown/path", 4, false),
        ("HEAD", "/unknown/path", 4, false),
        ("POST", "/api/v1/orders/create", 4, true),
        ("POST", "/api/v1/tracking/batch", 4, false),
        ("POST", "/api/v1/manifests/submit", 4, true),
        ("POST", "/api/v1/sandbox/reset", 1, true),
        ("POST", "/api/orders", 1, true),
        ("POST", "/api/orders/EC7K2M9QX4T8WD0/cancel", 4, true),
        ("POST", "/unknown/path", 1, true),
        ("DELETE", "/api/v1/orders/create", 1, true),
    ];
    for (method, path, attempts, may_have_executed) in table {
        let (client, script) = ScriptedTransport::client([Step::Fail(Phase::MaybeSent)]);
        let error = client.raw(method, path, None).await.unwrap_err();
        assert_eq!(script.sent_requests().len(), attempts, "{method} {path}");
        assert_eq!(error.may_have_executed(), may_have_executed, "{method} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_raw_call_to_another_host_is_not_sent() {
    // The unit tests have the rules for a path.
    let (client, script) = ScriptedTransport::client([response(200, "")]);
    for (method, path) in [("", "/"), ("G ET", "/"), ("GET", "@evil.example/")] {
        let error = client.raw(method, path, None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{method} {path}");
    }
    let error = client.get::<serde_json::Value>("@evil.example/").await.unwrap_err();
    assert_eq!((error.kind(), script.sent_requests().len()), (ErrorKind::Config, 0));
}

#[tokio::test(start_paused = true)]
async fn an_observer_sees_no_path_of_a_raw_call() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let (client, _) = client_with([response(200, "{}")], |builder| {
        builder.on_attempt(move |attempt| log.lock().unwrap().push(attempt.operation))
    });
    client.raw("GET", "/api/v1/parcels?limit=1", None).await.unwrap();
    client.raw("GET", "/unknown/path", None).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [Operation::ListParcels]);
}
