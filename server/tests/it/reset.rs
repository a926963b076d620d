//! POST /api/v1/sandbox/reset, and the 30 days that the sandbox keeps data.

use std::time::Duration;

use parcelo::Operation;
use parcelo_server::mock::MockServer;
use serde_json::{Value, json};

use crate::{
    api::{Api, HttpResponse, order, order_with_number, send},
    running::TestSetup,
};

const RESET: &str = Operation::ResetSandbox.path();
const DAY: Duration = Duration::from_secs(24 * 3600);

async fn start() -> (MockServer, Api, Api) {
    let (server, api) = crate::embedded::start_with_key().await;
    let other = Api::with_key(server.url(), &server.key().account("other").issue());
    (server, api, other)
}

async fn reset(api: &Api) -> HttpResponse {
    send(api.request("POST", RESET)).await
}

async fn total(api: &Api) -> Value {
    api.get("/api/v1/parcels").await.json()["meta"]["total"].clone()
}

#[tokio::test]
async fn a_reset_counts_what_it_deleted_and_can_be_repeated() {
    let (server, api, _) = start().await;
    for index in 0..3 {
        api.create_parcel(&order(&format!("order-{index:04}"))).await;
    }
    api.create_parcel(&order_with_number("order-0004", "SB-SUCCESS-0001")).await;
    server.clock().advance(Duration::from_secs(600)).await;
    let response = reset(&api).await;
    let body = response.json();
    assert_eq!((response.status, &body["success"]), (200, &json!(true)), "{body}");
    assert_eq!(body["meta"]["requestId"], response.header("x-request-id"));
    let counts = |parcels, events| {
        json!({ "parcels": parcels, "labels": parcels, "manifests": 0, "trackingEvents": events,
            "idempotencyKeys": parcels, "webhookDeliveries": 0 })
    };
    let data = json!({ "deleted": counts(4, 10), "resetAt": "2026-01-05T08:10:00.000Z" });
    assert_eq!(body["data"], data);
    assert_eq!(reset(&api).await.json()["data"]["deleted"], counts(0, 0));
    assert_eq!(api.track("SB-SUCCESS-0001").await.refusal().0, 404);
    assert_eq!(total(&api).await, 0);
}

#[tokio::test]
async fn a_reset_frees_numbers_and_idempotency_keys() {
    let (server, api, other) = start().await;
    let first = api.create(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    reset(&api).await;
    let theirs = other.create(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    assert_eq!(theirs.status, 201, "{}", theirs.text());
    let again = api.create(&order_with_number("order-0001", "SB-SUCCESS-0002")).await;
    assert_eq!(again.status, 201, "{}", again.text());
    assert_ne!(first.json()["parcel"]["id"], again.json()["parcel"]["id"]);
    assert_eq!(api.track("SB-SUCCESS-0001").await.refusal().0, 404);
    server.clock().advance(Duration::from_secs(3600)).await;
    assert_eq!(api.record("SB-SUCCESS-0002").await["history"].as_array().unwrap().len(), 6);
}

#[tokio::test]
async fn other_tenants_keep_their_data() {
    let (_server, api, other) = start().await;
    api.create_parcel(&order("order-0001")).await;
    let theirs = other.create_parcel(&order("order-0001")).await;
    reset(&api).await;
    assert_eq!((total(&api).await, total(&other).await), (json!(0), json!(1)));
    assert_eq!(other.track(&theirs).await.status, 200);
    assert_eq!(other.create(&order("order-0001")).await.status, 200, "their key is remembered");
}

#[tokio::test]
async fn body_and_content_type_are_ignored() {
    let (_server, api, _) = start().await;
    for (kind, body) in [
        ("text/plain", "no JSON"),
        ("application/json", "{"),
        ("", ""),
        ("x", &"x".repeat(300_000)),
    ] {
        let request = api.request("POST", RESET).header("content-type", kind);
        assert_eq!(send(request.body(body.to_owned())).await.status, 200, "{kind}");
    }
}

#[tokio::test]
async fn production_is_never_reset() {
    let setup = TestSetup::new();
    let (_, live) = setup.new_key("production");
    let (_, test) = setup.new_key("sandbox");
    let server = setup.start(&[]);
    let live = Api::with_key(server.url("production"), &live);
    live.create_parcel(&order("order-0001")).await;
    let sandbox = server.api(&test);
    sandbox.create_parcel(&order("order-0001")).await;
    assert_eq!(reset(&live).await.refusal(), (403, "SANDBOX_ONLY"));
    let deleted = reset(&sandbox).await.json()["data"]["deleted"]["parcels"].clone();
    assert_eq!(deleted, 1);
    assert_eq!((total(&live).await, total(&sandbox).await), (json!(1), json!(0)));
}

#[tokio::test]
async fn the_sandbox_keeps_data_for_30_days() {
    let (server, api, other) = start().await;
    api.create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    other.create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0002")).await;
    server.clock().advance(DAY).await;
    api.create_parcel(&order_with_number("order-0003", "SB-SUCCESS-0003")).await;
    server.clock().advance((29 * DAY).saturating_sub(Duration::from_millis(1))).await;
    assert_eq!((total(&api).await, total(&other).await), (json!(2), json!(1)));
    server.clock().advance(Duration::from_millis(1)).await;
    assert_eq!((total(&api).await, total(&other).await), (json!(1), json!(0)));
    assert_eq!(api.track("SB-SUCCESS-0001").await.refusal().0, 404);
    assert_eq!(api.track("SB-SUCCESS-0003").await.status, 200);
    let again = api.create(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    assert_eq!(again.status, 201, "the number is free: {}", again.text());
}

#[tokio::test]
async fn a_reset_deletes_carrier_events() {
    let (server, api, _) = start().await;
    let carrier = server.carrier_key();
    let push = async |status: &str| {
        let event = json!({ "eventId": format!("scan-{status}"), "trackingNumber": "SB-PARCEL-0001",
            "status": status, "occurredAt": "2026-01-05T08:00:00Z", "location": "Hub" });
        api.push_events(carrier.secret(), json!([event])).await[0]["outcome"].clone()
    };
    for _ in 0..2 {
        api.create_parcel(&order_with_number("order-0001", "SB-PARCEL-0001")).await;
        assert_eq!(push("PICKED_UP").await, "APPLIED");
        assert_eq!(push("PICKED_UP").await, "DUPLICATE");
        assert_eq!(push("DELIVERED").await, "REJECTED");
        let deleted = reset(&api).await.json()["data"]["deleted"].clone();
        assert_eq!(deleted["trackingEvents"], 3);
    }
}
