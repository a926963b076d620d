//! The mock server's controls, which are the calls under `/__mock/`: the requests that they refuse, and the messages.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    process::Command,
    time::Duration,
};

use parcelo::Operation;
use parcelo_server::mock::{Clock, Fault};
use parcelo_types::internal::EventKind;
use serde_json::{Value, json};

use crate::{
    api::{Api, HttpResponse, order, order_with_number, send, try_send},
    deliveries::Receiver,
    running::BINARY,
    waiting::until,
};

/// Starts a mock server with controls; it ends with the test's process.
async fn start(clock: Clock) -> Api {
    let server = crate::embedded::builder().clock(clock);
    let server = server.start_controlled("127.0.0.1:0".parse().unwrap()).await.unwrap();
    Api::new(server.url())
}

async fn start_frozen() -> Api {
    start(Clock::frozen("2026-01-05T08:00:00Z")).await
}

async fn post(api: &Api, control: &str, body: &Value) -> HttpResponse {
    send(api.request("POST", &format!("/__mock/{control}")).body(body.to_string())).await
}

/// Creates a key with this JSON and sends `count` requests with it. Returns the number of refused ones.
async fn count_refused(api: &Api, count: usize, key: Value) -> usize {
    let key = post(api, "keys", &key).await.json()["key"].as_str().unwrap().to_owned();
    let caller = api.clone().key(&key);
    let mut refused = 0;
    for _ in 0..count {
        refused += usize::from(caller.get("/api/v1/health").await.status == 429);
    }
    refused
}

#[tokio::test]
async fn on_a_frozen_clock_only_the_rate_limit_of_a_key_applies() {
    let api = start_frozen().await;
    assert_eq!(count_refused(&api, 130, json!({})).await, 0);
    assert_eq!(count_refused(&api, 13, json!({ "rateLimit": 10 })).await, 3);
    // The limits are those that the server was started with.
    post(&api, "clock", &json!({ "mode": "ticking" })).await;
    assert_eq!(count_refused(&api, 130, json!({})).await, 0);
    let help = Command::new(BINARY).args(["mock", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.contains("frozen clock lifts them too") && help.contains("own limit"), "{help}");
}

#[tokio::test]
async fn a_contradictory_or_ineffective_fault_is_refused() {
    let api = start_frozen().await;
    let table = [
        (json!({ "fault": "close", "nth": 2, "first": 3 }), "first", "leave out first"),
        (json!({ "fault": "close", "nth": 2, "probability": 0.5 }), "probability", "two faults"),
        (json!({ "fault": "close", "first": 2, "probability": 0.5 }), "probability", "first"),
        (json!({ "fault": "close", "nth": 1, "first": 1, "probability": 1 }), "first", "nth"),
        (json!({ "fault": "close", "code": "INTERNAL_ERROR" }), "code", "\"error\""),
        (json!({ "fault": "latency", "seconds": 1, "code": "NOT_FOUND" }), "code", "\"error\""),
        (json!({ "fault": "error", "code": "NOT_FOUND", "seconds": 1 }), "seconds", "latency"),
        (json!({ "fault": "reset", "seconds": 0 }), "seconds", "leave it out"),
        (json!({ "fault": "truncatedBody", "seconds": 1 }), "seconds", "slowBody"),
        (json!({ "fault": "latency" }), "seconds", "above 0"),
        (json!({ "fault": "latency", "seconds": 0 }), "seconds", "above 0"),
        (json!({ "fault": "latency", "seconds": 1e-12 }), "seconds", "above 0"),
        (json!({ "fault": "slowBody", "seconds": 0 }), "seconds", "above 0"),
        (json!({ "fault": "close", "probability": 0 }), "probability", "above 0"),
        (json!({ "fault": "close", "nth": 0 }), "nth", "from 1"),
        (json!({ "fault": "close", "first": 0 }), "first", "from 1"),
        (json!({ "fault": "close", "nth": 3, "expect": 2 }), "expect", "at most 1"),
        (json!({ "fault": "close", "first": 2, "expect": 3 }), "expect", "at most 2"),
        (json!({ "fault": "error" }), "code", "SERVICE_UNAVAILABLE"),
        (json!({ "fault": "close", "key": "pk_test_no" }), "key", "API key"),
        (json!({ "fault": "close", "operation": "Fly" }), "operation", "CreateOrder"),
        (json!({ "fault": "hang", "headers": {} }), "headers", "\"reply\""),
    ];
    for (plan, field, hint) in table {
        let response = post(&api, "faults", &plan).await;
        assert_eq!(response.refusal(), (400, "VALIDATION_FAILED"), "{plan}");
        let fault = &response.json()["error"]["details"]["errors"][0];
        assert_eq!(fault["field"], field, "{plan}");
        let (english, spanish) = (fault["message"].as_str().unwrap(), &fault["message_es"]);
        assert!(english.contains(hint) && spanish != english, "{plan}: {fault}");
    }
    for plan in [
        json!({ "fault": "rateLimited" }),
        json!({ "fault": "rateLimited", "seconds": 3, "nth": 1 }),
        json!({ "fault": "slowBody", "seconds": 0.01, "first": 2, "afterCommit": true }),
        json!({ "fault": "latency", "seconds": 0.01, "probability": 1 }),
        json!({ "fault": "error", "code": "NOT_FOUND", "nth": null, "seconds": null }),
    ] {
        let response = post(&api, "faults", &plan).await;
        assert_eq!(response.status, 200, "{plan}: {}", response.text());
    }
    let planned = send(api.request("GET", "/__mock/faults")).await.json();
    assert_eq!(planned["unused"].as_array().unwrap().len(), 5, "{planned}");
}

#[tokio::test]
async fn rust_and_http_refuse_a_fault_in_the_same_words() {
    let server = crate::embedded::builder().start_controlled("127.0.0.1:0".parse().unwrap()).await;
    let server = server.unwrap();
    let api = Api::new(server.url());
    let table: [(fn(Fault<'_>), Value); 7] = [
        (|fault| fault.nth(2).first(3).close(), json!({ "fault": "close", "nth": 2, "first": 3 })),
        (
            |fault| fault.first(1).probability(0.5).close(),
            json!({ "fault": "close", "first": 1, "probability": 0.5 }),
        ),
        (|fault| fault.nth(0).close(), json!({ "fault": "close", "nth": 0 })),
        (|fault| fault.first(0).close(), json!({ "fault": "close", "first": 0 })),
        (|fault| fault.probability(1.5).close(), json!({ "fault": "close", "probability": 1.5 })),
        (|fault| fault.latency(Duration::ZERO), json!({ "fault": "latency", "seconds": 0 })),
        (|fault| fault.slow_body(Duration::ZERO), json!({ "fault": "slowBody", "seconds": 0 })),
    ];
    for (plan, body) in table {
        let plan = AssertUnwindSafe(|| plan(server.faults().on_any()));
        let panic = catch_unwind(plan).unwrap_err();
        let response = post(&api, "faults", &body).await.json();
        let message = response["error"]["details"]["errors"][0]["message"].as_str();
        assert_eq!(message, panic.downcast_ref::<String>().map(String::as_str), "{body}");
    }
}

#[tokio::test]
async fn a_fault_is_expected_to_hit_a_number_of_requests() {
    let api = start_frozen().await;
    let offences = async || api.get("/__mock/verify").await.json()["offences"].to_string();
    let plan = json!({ "operation": "Health", "fault": "reply", "status": 503, "expect": 2 });
    assert_eq!(post(&api, "faults", &plan).await.status, 200);
    api.get("/api/v1/health").await;
    let met = offences().await;
    assert!(met.contains("expected to hit 2 requests, hit 1: Health: answer 503"), "{met}");
    api.get("/api/v1/health").await;
    assert_eq!(offences().await, "[]");
}

#[tokio::test]
async fn requests_are_listed_with_headers_and_chosen_by_header_body_and_key() {
    let api = start_frozen().await;
    let key = post(&api, "keys", &json!({})).await.json()["key"].as_str().unwrap().to_owned();
    let shop = api.clone().key(&key);
    for (version, name) in [("1", "order-0001"), ("2", "order-0002")] {
        let request = shop.request("POST", "/api/v1/orders/create").header("x-version", version);
        let request = request.header("content-type", "application/json");
        send(request.header("cookie", "s=CANARY").body(order(name).to_string())).await;
    }
    api.get("/api/v1/health").await;
    let list = async |query: &str| api.get(&format!("/__mock/requests?{query}")).await.json();
    let all = list("").await;
    let headers = &all["requests"][0]["headers"];
    assert_eq!((&headers["x-version"], &headers["cookie"]), (&json!("1"), &json!("…")));
    assert!(!all.to_string().contains("CANARY") && !all.to_string().contains(&key), "{all}");
    for (query, count) in [
        ("", 3),
        (&*format!("key={key}"), 2),
        ("header=X-Version:%202", 1),
        ("header=x-version:3", 0),
        ("body=/idempotencyKey=order-0001", 1),
        ("body=/parcelDetails/weightKg=1.25", 2),
        ("body=/parcelDetails/absent=1.25", 0),
        ("header=x-version:1&body=/idempotencyKey=order-0002", 0),
    ] {
        assert_eq!(list(query).await["count"], count, "{query}");
    }
    for (query, field) in
        [("header=x-version", "header"), ("body=order-0001", "body"), ("key=pk_test_no", "key")]
    {
        let refused = api.get(&format!("/__mock/requests?{query}")).await;
        assert_eq!(refused.faults(), [format!("{field} INVALID_FORMAT")], "{query}");
    }
}

#[tokio::test]
async fn a_new_inbox_replaces_the_previous_one() {
    let api = start_frozen().await;
    let first = post(&api, "webhooks", &json!({})).await.json()["url"].as_str().unwrap().to_owned();
    let address = first.trim_start_matches("http://").trim_end_matches('/').to_owned();
    assert!(tokio::net::TcpStream::connect(&address).await.is_ok());
    post(&api, "webhooks", &json!({ "reply": [200] })).await;
    // The socket is closed by another task, which runs only while this one waits.
    until("the first inbox listens no more", async || {
        tokio::net::TcpStream::connect(&address).await.is_err()
    })
    .await;
    let shown = send(api.request("GET", "/__mock/webhooks")).await.json();
    assert_eq!(shown, json!({ "listening": true, "deliveries": [], "hints": [] }));
}

#[tokio::test]
async fn signed_webhooks_go_to_the_handler_of_the_suite() {
    let api = start(Clock::system()).await;
    let key = post(&api, "keys", &json!({})).await.json()["key"].as_str().unwrap().to_owned();
    let handler = Receiver::start().await;
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let asked = json!({ "url": handler.url, "events": ["parcel.created"], "secret": secret });
    let response = post(&api, "webhooks", &asked).await.json();
    assert_eq!(response, json!({ "url": handler.url, "secret": secret }));
    let parent = format!("00-{}-00f067aa0ba902b7-01", "7".repeat(32));
    let request = api.clone().key(&key).request("POST", Operation::CreateOrder.path());
    let request = request.header("traceparent", parent).header("content-type", "application/json");
    assert_eq!(send(request.body(order("handler-0001").to_string())).await.status, 201);
    handler.wait_for(|came| came.len() == 2).await;
    let kinds: Vec<_> = handler.events(secret).iter().map(|event| event.data.kind()).collect();
    assert_eq!(kinds, [EventKind::ParcelCreated, EventKind::ParcelStatusChanged]);
    let list = async || api.get("/__mock/webhooks").await.json()["deliveries"].clone();
    until("the responses arrive", async || list().await[1].is_object()).await;
    let listed = list().await;
    let delivery = &listed[0];
    assert_eq!((&delivery["status"], &delivery["answer"]), (&json!(204), &json!("")));
    assert_eq!(delivery["headers"]["webhook-id"], delivery["id"]);
    let parent = delivery["headers"]["traceparent"].as_str().unwrap();
    assert!(parent.starts_with(&format!("00-{}-", "7".repeat(32))), "{parent}");
    assert_eq!(delivery["body"]["event"], "parcel.created");
    assert_eq!(delivery.get("verified"), None, "only the inbox verifies: {delivery}");
    // The inbox can replace it again, and shows no secret.
    let inbox = post(&api, "webhooks", &json!({})).await.json();
    assert_eq!(inbox.get("secret"), None, "{inbox}");
}

#[tokio::test]
async fn the_inbox_lists_the_trace_of_a_delivery_that_has_one() {
    let api = start_frozen().await;
    let key = post(&api, "keys", &json!({})).await.json()["key"].as_str().unwrap().to_owned();
    post(&api, "webhooks", &json!({})).await;
    let shop = api.clone().key(&key);
    let trace = format!("00-{}-", "7".repeat(32));
    let request = shop.request("POST", Operation::CreateOrder.path());
    let request = request.header("traceparent", format!("{trace}00f067aa0ba902b7-01"));
    let request = request.header("content-type", "application/json");
    let traced = order_with_number("traced-0001", "SB-NORMAL-0001");
    assert_eq!(send(request.body(traced.to_string())).await.status, 201);
    shop.create_parcel(&order_with_number("untraced-0001", "SB-NORMAL-0002")).await;
    post(&api, "clock", &json!({ "advance": 1 })).await;
    let listed = api.get("/__mock/webhooks").await.json();
    let listed = listed["deliveries"].as_array().unwrap();
    let traced = listed.iter().filter(|one| {
        let parent = one.get("traceparent");
        parent.is_some_and(|parent| parent.as_str().unwrap().starts_with(&trace))
    });
    let untraced = listed.iter().filter(|one| one.get("traceparent").is_none());
    assert_eq!((traced.count(), untraced.count()), (1, 1), "{listed:?}");
}

#[tokio::test]
async fn a_disabled_webhook_is_reported_with_its_reason() {
    let api = start_frozen().await;
    let key = post(&api, "keys", &json!({})).await.json()["key"].as_str().unwrap().to_owned();
    post(&api, "webhooks", &json!({ "reply": [410] })).await;
    api.clone().key(&key).create_parcel(&order_with_number("gone-0001", "SB-SUCCESS-0001")).await;
    post(&api, "clock", &json!({ "advance": 1 })).await;
    let shown = api.get("/__mock/webhooks").await.json();
    let hints = shown["hints"].to_string();
    assert_eq!(
        (&shown["listening"], &shown["deliveries"][0]["status"]),
        (&json!(false), &json!(410))
    );
    assert!(hints.contains("disabled, because it responded with 410"), "{hints}");
    assert!(!hints.contains("advance it"), "moving the clock would not help: {hints}");
    post(&api, "webhooks", &json!({})).await;
    let shown = api.get("/__mock/webhooks").await.json();
    assert_eq!(shown["listening"], true);
    assert!(shown["hints"].to_string().contains("advance it"), "{shown}");
}

#[tokio::test]
async fn a_handler_that_webhooks_cannot_reach_is_refused() {
    let api = start_frozen().await;
    for (wrong, field, word) in [
        (json!({ "url": "ftp://127.0.0.1/" }), "url", "http"),
        (json!({ "url": "nowhere" }), "url", "a full URL"),
        (json!({ "url": "http://127.0.0.1:1/", "secret": "whsec_c2hvcnQ=" }), "secret", "24-64"),
        (json!({ "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" }), "secret", "url"),
        (json!({ "url": "http://127.0.0.1:1/", "reply": [503] }), "body", "reply"),
        (json!({ "events": ["parcel.lost"] }), "events", "parcel.created"),
        (json!({ "url": null }), "body", "null, expected a string"),
        (json!({ "urls": [] }), "body", "urls"),
    ] {
        let response = post(&api, "webhooks", &wrong).await;
        assert_eq!(response.status, 400, "{wrong}");
        let text = response.text();
        assert!(text.contains(word) && text.contains(&format!("\"{field}\"")), "{wrong}: {text}");
    }
}

#[tokio::test]
async fn webhooks_go_to_peers_with_private_addresses() {
    let api = start_frozen().await;
    for url in ["http://10.0.0.1/hooks", "http://[fd00::1]/hooks", "http://shop:3000/hooks"] {
        let response = post(&api, "webhooks", &json!({ "url": url })).await;
        assert_eq!((response.status, &response.json()["url"]), (200, &json!(url)));
    }
}

#[tokio::test]
async fn an_ineffective_fault_of_webhooks_is_refused() {
    let api = start_frozen().await;
    for (wrong, field, word) in [
        (json!({ "fault": "reorder" }), "seconds", "above 0"),
        (json!({ "fault": "delay", "seconds": 0 }), "seconds", "above 0"),
        (json!({ "fault": "duplicate", "seconds": 5 }), "seconds", "leave them out"),
        (json!({ "fault": "lost" }), "body", "wrongSignature"),
        (json!({ "fault": "duplicate", "nth": 1 }), "body", "nth"),
    ] {
        let response = post(&api, "webhooks/faults", &wrong).await;
        assert_eq!(response.refusal(), (400, "VALIDATION_FAILED"), "{wrong}");
        let text = response.text();
        assert!(text.contains(word) && text.contains(&format!("\"{field}\"")), "{wrong}: {text}");
    }
    assert_eq!(post(&api, "webhooks/rotate", &json!({})).await.status, 404, "no endpoint");
}

#[tokio::test]
async fn a_planned_fault_of_webhooks_hits_the_first_attempt_of_every_event_until_it_is_deleted() {
    let api = start_frozen().await;
    let key = post(&api, "keys", &json!({})).await.json()["key"].as_str().unwrap().to_owned();
    post(&api, "webhooks", &json!({ "reply": [400] })).await;
    post(&api, "webhooks/faults", &json!({ "fault": "wrongSignature" })).await;
    let verified = async |order: &str| {
        api.clone().key(&key).create_parcel(&order_with_number(order, order)).await;
        post(&api, "clock", &json!({ "advance": 10 })).await;
        let shown = api.get("/__mock/webhooks").await.json();
        let all = shown["deliveries"].as_array().unwrap();
        all.iter().map(|delivery| delivery["verified"].as_bool().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(verified("SB-NORMAL-0001").await, [false, true]);
    assert_eq!(send(api.request("DELETE", "/__mock/webhooks/faults")).await.status, 200);
    assert_eq!(verified("SB-NORMAL-0002").await, [false, true, true]);
}

#[tokio::test]
async fn a_fault_of_webhooks_is_listed_and_an_offence_until_it_hits_an_event() {
    let api = start_frozen().await;
    let key = post(&api, "keys", &json!({})).await.json()["key"].as_str().unwrap().to_owned();
    post(&api, "webhooks", &json!({})).await;
    let planned = json!({ "fault": "delay", "seconds": 7.5 });
    let shown = post(&api, "webhooks/faults", &planned).await.json();
    assert_eq!(shown["fault"], planned);
    let unused =
        json!({ "offences": ["a planned fault of webhooks hit no event: delay of 7.5 s"] });
    assert_eq!(api.get("/__mock/verify").await.json(), unused);
    api.clone().key(&key).create_parcel(&order("delayed-0001")).await;
    post(&api, "clock", &json!({ "advance": 1 })).await;
    assert_eq!(api.get("/__mock/verify").await.json(), json!({ "offences": [] }));
}

/// Starts a further server, and returns its response and an API with its key.
async fn start_further(api: &Api, wanted: Value) -> (Value, Api) {
    let started = post(api, "servers", &wanted).await.json();
    let further = Api::new(started["url"].as_str().unwrap()).key(started["key"].as_str().unwrap());
    (started, further)
}

#[tokio::test]
async fn each_worker_of_a_suite_has_a_server_of_its_own() {
    let api = start_frozen().await;
    let clock = json!({ "clock": "frozen=2027-01-01T00:00:00Z", "seed": 7 });
    let (first, one) = start_further(&api, json!({})).await;
    let (started, other) = start_further(&api, clock).await;
    let (third, _) = start_further(&api, json!({})).await;
    assert_ne!(first["key"], third["key"], "a key is refused by another worker's server");
    one.create_parcel(&order("order-0001")).await;
    for (server, parcels) in [(&one, 1), (&other, 0)] {
        assert_eq!(server.get("/api/v1/parcels").await.json()["meta"]["total"], parcels);
    }
    let now = async |server: &Api| server.get("/__mock/clock").await.json()["now"].clone();
    post(&one, "clock", &json!({ "advance": 60 })).await;
    assert_eq!(now(&api).await, "2026-01-05T08:00:00.000Z");
    assert_eq!(now(&one).await, "2026-01-05T08:01:00.000Z");
    assert_eq!(now(&other).await, "2027-01-01T00:00:00.000Z");
    post(&other, "faults", &json!({ "fault": "close", "operation": "CreateOrder" })).await;
    let stop = format!("/__mock/servers/{}", started["port"]);
    let offences = send(api.request("DELETE", &stop)).await.json()["offences"].clone();
    assert!(offences.to_string().contains("hit no request"), "{offences}");
    until("it listens no more", async || try_send(other.request("GET", "/healthz")).await.is_err())
        .await;
    assert_eq!(send(api.request("DELETE", &stop)).await.status, 404);
    assert_eq!(one.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn a_further_server_with_unknown_settings_is_refused() {
    let api = start_frozen().await;
    for (wrong, field, word) in [
        (json!({ "clock": "frozen" }), "clock", "frozen=TIME"),
        (json!({ "clock": "ticking=noon" }), "clock", "2026-01-05T08:00:00Z"),
        (json!({ "seed": -1 }), "body", "-1"),
        (json!({ "port": 80 }), "body", "port"),
    ] {
        let response = post(&api, "servers", &wrong).await;
        assert_eq!(response.status, 400, "{wrong}");
        let text = response.text();
        assert!(text.contains(word) && text.contains(&format!("\"{field}\"")), "{wrong}: {text}");
    }
    for port in ["1", "x"] {
        let refused = send(api.request("DELETE", &format!("/__mock/servers/{port}"))).await;
        assert_eq!(refused.refusal(), (404, "NOT_FOUND"));
        let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with("No further server has this port"), "{message}");
    }
}

#[tokio::test]
async fn a_sample_order_goes_to_the_country_of_the_query() {
    let api = start_frozen().await;
    let key = post(&api, "keys", &json!({})).await.json()["key"].as_str().unwrap().to_owned();
    for (query, country) in [("", "EC"), ("?country=CO", "CO"), ("?country=JP", "JP")] {
        let path = format!("/__mock/orders/SB-NORMAL-{country}{query}");
        let order = api.get(&path).await.json()["order"].clone();
        assert_eq!(order["receiver"]["address"]["country"], country, "{order}");
        let number = api.clone().key(&key).create_parcel(&order).await;
        assert_eq!(number, format!("SB-NORMAL-{country}"));
    }
    for query in ["?country=Peru", "?country=", "?to=CO"] {
        let refused = api.get(&format!("/__mock/orders/SB-NORMAL-0001{query}")).await;
        assert_eq!(refused.refusal(), (400, "VALIDATION_FAILED"), "{query}");
        assert!(refused.text().contains("such as CO"), "{query}: {}", refused.text());
    }
}

#[tokio::test]
async fn a_control_parses_json_under_any_media_type() {
    let api = start_frozen().await;
    for kind in [None, Some("application/x-www-form-urlencoded"), Some("text/plain"), Some("")] {
        let mut request = api.request("POST", "/__mock/clock").body(r#"{"advance": 1}"#);
        if let Some(kind) = kind {
            request = request.header("content-type", kind);
        }
        let response = send(request).await;
        assert_eq!(response.status, 200, "{kind:?}: {}", response.text());
    }
    let form = send(api.request("POST", "/__mock/clock").body("advance=1")).await;
    assert_eq!(form.faults(), ["body MALFORMED_JSON"]);
}

#[tokio::test]
async fn every_refusal_is_an_error_envelope_with_a_request_id() {
    let api = start_frozen().await;
    let mut ids = std::collections::BTreeSet::new();
    for (method, path, expected) in [
        ("POST", "/__mock/parcels/%FF/status", (404, "PARCEL_NOT_FOUND")),
        ("POST", "/__mock/parcels/odd/status", (404, "PARCEL_NOT_FOUND")),
        ("POST", "/__mock/parcels/%FF", (404, "NOT_FOUND")),
        ("POST", "/__mock/%FF", (404, "NOT_FOUND")),
        ("PUT", "/__mock/clock", (405, "METHOD_NOT_ALLOWED")),
        ("POST", "/__mock/clock", (400, "VALIDATION_FAILED")),
        ("GET", "/docs/%FF", (404, "NOT_FOUND")),
        ("GET", "/%FF", (404, "NOT_FOUND")),
    ] {
        let body = if path.ends_with("status") { r#"{"status": "DELIVERED"}"# } else { "" };
        let response = send(api.request(method, path).body(body)).await;
        assert_eq!(response.refusal(), expected, "{method} {path}");
        let id = response.header("x-request-id").to_owned();
        assert!(id.starts_with("req_") && id.len() == 30, "{id}");
        assert!(ids.insert(id), "two refusals with one id");
    }
}

#[tokio::test]
async fn refused_controls_do_not_use_up_seeded_ids() {
    let mut numbers = Vec::new();
    for refusals in [0, 3] {
        let api = start_frozen().await;
        let key = post(&api, "keys", &json!({})).await.json()["key"].as_str().unwrap().to_owned();
        for _ in 0..refusals {
            assert_eq!(post(&api, "faults", &json!({})).await.status, 400);
        }
        numbers.push(api.key(&key).create_parcel(&order("order-0001")).await);
    }
    assert_eq!(numbers[0], numbers[1]);
}

#[tokio::test]
async fn a_refused_duration_explains_the_valid_form() {
    let api = start_frozen().await;
    let moved = async |by: Value| post(&api, "clock", &json!({ "advance": by })).await;
    let now = moved(json!("PT1.5S")).await.json()["now"].clone();
    assert_eq!(now, "2026-01-05T08:00:01.500Z");
    assert_eq!(moved(json!("P1W")).await.json()["now"], "2026-01-12T08:00:01.500Z");
    for wrong in [json!("P1M"), json!("P1Y"), json!("PT1.5H5M"), json!("5 minutes"), json!([])] {
        let response = moved(wrong.clone()).await;
        let text = response.text();
        for word in ["weeks", "days", "PT5M", "PT1.5S", "months"] {
            assert!(response.status == 400 && text.contains(word), "{wrong}: {text}");
        }
    }
}

#[tokio::test]
async fn a_key_needs_a_valid_name_and_account() {
    let api = start_frozen().await;
    let table = [
        (json!({ "account": "" }), "account REQUIRED"),
        (json!({ "account": "  " }), "account REQUIRED"),
        (json!({ "account": "a".repeat(101) }), "account TOO_LONG"),
        (json!({ "account": "a\u{0}b" }), "account INVALID_FORMAT"),
        (json!({ "name": "" }), "name REQUIRED"),
        (json!({ "name": "n".repeat(101) }), "name TOO_LONG"),
        (json!({ "name": "a\u{0}b" }), "name INVALID_FORMAT"),
    ];
    for (key, fault) in table {
        assert_eq!(post(&api, "keys", &key).await.faults(), [fault], "{key}");
    }
    let both = post(&api, "keys", &json!({ "account": "", "name": "" })).await;
    assert_eq!(both.faults(), ["name REQUIRED", "account REQUIRED"]);
    for key in [json!({ "account": "a".repeat(100) }), json!({ "account": null, "name": " Ana " })]
    {
        assert_eq!(post(&api, "keys", &key).await.status, 200, "{key}");
    }
}

#[tokio::test]
async fn controls_without_required_fields_need_no_body() {
    let api = start_frozen().await;
    for (control, member) in [("keys", "key"), ("webhooks", "url")] {
        let response = send(api.request("POST", &format!("/__mock/{control}"))).await;
        assert_eq!(response.status, 200, "{}", response.text());
        assert!(response.json()[member].is_string(), "{}", response.text());
    }
    for control in ["clock", "faults"] {
        let response = send(api.request("POST", &format!("/__mock/{control}"))).await;
        assert_eq!(response.status, 400, "{control}");
    }
}

#[tokio::test]
async fn a_misspelt_query_parameter_is_refused() {
    let api = start_frozen().await;
    for (query, status) in [
        ("", 200),
        ("?operation=Health", 200),
        ("?op=Health", 400),
        ("?Operation=Health", 400),
        ("?operation=Health&operation=GetLabel", 400),
        ("?operation=Health&status=200", 400),
    ] {
        assert_eq!(api.get(&format!("/__mock/requests{query}")).await.status, status, "{query}");
    }
}

#[test]
fn a_suite_that_is_not_a_command_is_refused() {
    for nothing in ["", "  ", "\n"] {
        let output = Command::new(BINARY).args(["mock", "--exec", nothing]).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{nothing:?}: {errors}");
        assert!(errors.contains("such as 'pytest'"), "{errors}");
    }
}
