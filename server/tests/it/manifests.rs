//! POST /api/v1/manifests/submit, GET /api/v1/manifests/{manifestId}.

use std::time::Duration;

use parcelo::Operation;
use serde_json::{Value, json};

use crate::{
    api::{Api, HttpResponse, order, order_with_number, send, with},
    embedded::start_with_key,
    running::{RunningServer, TestSetup},
};

const SUBMIT: &str = Operation::SubmitManifest.path();
const AWB: &str = "176-12345675";
const OTHER_AWB: &str = "020-81140743";

/// Starts a server on a file, where requests are decided while earlier ones are being committed.
fn start_on_file() -> (TestSetup, RunningServer, Api) {
    let setup = TestSetup::new();
    let running = setup.start(&["--sandbox-rate-limit", "1000000"]);
    let api = running.api(&setup.new_key("sandbox").1);
    (setup, running, api)
}

async fn submit<N: AsRef<str>>(api: &Api, awb: &str, numbers: &[N]) -> HttpResponse {
    let numbers: Vec<_> = numbers.iter().map(AsRef::as_ref).collect();
    api.post(SUBMIT, &json!({ "awbNumber": awb, "trackingNumbers": numbers })).await
}

/// Returns a different valid air waybill for each number below a million.
fn air_waybill(number: usize) -> String {
    let serial = 1_000_000 + number;
    format!("176-{serial}{}", serial % 7)
}

/// Creates parcels and returns their numbers.
async fn parcels(api: &Api, keys: std::ops::Range<usize>) -> Vec<String> {
    let mut tasks = tokio::task::JoinSet::new();
    for index in keys {
        let (api, order) = (api.clone(), order(&format!("order-{index:04}")));
        tasks.spawn(async move { api.create_parcel(&order).await });
    }
    tasks.join_all().await
}

async fn statuses(api: &Api, number: &str) -> Vec<String> {
    let body = api.record(number).await;
    let events = body["history"].as_array().unwrap();
    assert_eq!(events.last().unwrap()["status"], body["status"]);
    events.iter().map(|event| event["status"].as_str().unwrap().to_owned()).collect()
}

/// Returns the rejected parcels, each as `field trackingNumber status code`.
fn rejections(response: &HttpResponse) -> Vec<String> {
    assert_eq!(response.refusal(), (409, "MANIFEST_PARCELS_REJECTED"));
    let body = response.json();
    let items = body["error"]["details"]["errors"].as_array().unwrap();
    let text = |item: &Value, name: &str| item[name].as_str().unwrap_or("-").to_owned();
    for item in items {
        assert_ne!(item["message"], item["message_es"], "{item}");
        assert!(!text(item, "message").contains('{'), "{item}");
    }
    let names = ["field", "trackingNumber", "status", "code"];
    items.iter().map(|item| names.map(|name| text(item, name)).join(" ")).collect()
}

#[tokio::test]
async fn a_manifest_lists_the_parcels_of_its_air_waybill() {
    let (_server, api) = start_with_key().await;
    let pounds = json!({ "weightLbs": 3, "declaredValue": 19.99, "currency": "EUR" });
    api.create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    api.create_parcel(&with(
        order_with_number("order-0002", "SB-SECOND-0002"),
        "/parcelDetails",
        pounds,
    ))
    .await;
    api.create_parcel(&order_with_number("order-0003", "SB-THIRD-0003")).await;
    let body = json!({
        "idempotencyKey": "manifest-0001", "awbNumber": "17612345675",
        "trackingNumbers": ["sb-third-0003", "SB-SUCCESS-0001", "SB-SECOND-0002"],
        "flightNumber": "EK213", "departureDate": "2026-01-11", "originAirport": "MIA",
        "destinationAirport": "UIO", "reference": "PO-77", "unknown": true
    });
    let response = api.post(SUBMIT, &body).await;
    assert_eq!(response.status, 201, "{}", response.text());
    let data = response.json()["data"].clone();
    let id = data["manifestId"].as_str().unwrap();
    assert!(id.starts_with("man_"), "{id}");
    let expected = json!({
        "manifestId": id, "awbNumber": AWB, "status": "SUBMITTED", "parcelCount": 3,
        "totalWeightKg": 3.861,
        "declaredValues": [{ "currency": "EUR", "amount": 19.99 }, { "currency": "USD", "amount": 91 }],
        "destinationCountries": ["EC"],
        "trackingNumbers": ["SB-THIRD-0003", "SB-SUCCESS-0001", "SB-SECOND-0002"],
        "flightNumber": "EK213", "departureDate": "2026-01-11", "originAirport": "MIA",
        "destinationAirport": "UIO", "reference": "PO-77", "submittedAt": "2026-01-05T08:00:00.000Z",
        "warnings": []
    });
    assert_eq!(data, expected);
    assert_eq!(response.json()["meta"]["requestId"], response.header("x-request-id"));
    let read = api.get(&Operation::GetManifest.path_of(id)).await;
    assert_eq!((read.status, &read.json()["data"]), (200, &expected));
    assert_eq!(read.json()["meta"]["requestId"], read.header("x-request-id"));
    let listed = api.get("/api/v1/parcels?status=MANIFEST_SUBMITTED").await.json();
    assert_eq!(listed["meta"]["total"], 3);
    assert_eq!(listed["data"][0]["manifestId"], id);
    assert_eq!(listed["data"][0]["awbNumber"], AWB);
    let event = api.record("SB-THIRD-0003").await;
    assert_eq!(event["history"][2]["location"], "Miami, US");
}

#[tokio::test]
async fn all_faults_of_a_request_are_reported_at_once() {
    let (_server, api) = start_with_key().await;
    let body = json!({
        "idempotencyKey": "short", "awbNumber": "176-12345676", "trackingNumbers": ["a", "A"],
        "flightNumber": "x", "departureDate": "tomorrow", "originAirport": "M1A",
        "destinationAirport": "", "reference": "x".repeat(101)
    });
    let expected = [
        "idempotencyKey TOO_SHORT",
        "awbNumber INVALID_FORMAT",
        "trackingNumbers[1] DUPLICATE",
        "flightNumber INVALID_FORMAT",
        "departureDate INVALID_FORMAT",
        "originAirport INVALID_FORMAT",
        "reference TOO_LONG",
    ];
    assert_eq!(api.post(SUBMIT, &body).await.faults(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_has_at_most_five_hundred_parcels() {
    let (_server, api) = start_with_key().await;
    let mut numbers = parcels(&api, 0..501).await;
    let last = numbers.pop().unwrap();
    let mut too_many = numbers.clone();
    too_many.push(last.clone());
    assert_eq!(submit(&api, AWB, &too_many).await.faults(), ["trackingNumbers TOO_LONG"]);
    let mut one_bad = numbers.clone();
    one_bad[333] = "SB-ABSENT-0001".to_owned();
    let response = submit(&api, AWB, &one_bad).await;
    assert_eq!(rejections(&response), ["trackingNumbers[333] SB-ABSENT-0001 - PARCEL_NOT_FOUND"]);
    let moved = api.get("/api/v1/parcels?status=MANIFEST_SUBMITTED").await.json();
    assert_eq!(moved["meta"]["total"], 0, "nothing was changed");
    let response = submit(&api, AWB, &numbers).await;
    assert_eq!(response.status, 201);
    assert_eq!(response.json()["data"]["parcelCount"], 500);
    let moved = api.get("/api/v1/parcels?status=MANIFEST_SUBMITTED").await.json();
    assert_eq!(moved["meta"]["total"], 500);
    assert_eq!(statuses(&api, &last).await.len(), 2);
}

#[tokio::test]
async fn every_rejected_parcel_is_named_with_its_reason() {
    let (server, api) = start_with_key().await;
    let stranger = Api::with_key(server.url(), &server.key().account("other").issue());
    stranger.create_parcel(&order_with_number("order-0001", "SB-STRANGER-1")).await;
    for (key, number) in [
        ("order-0001", "SB-FINE-00001"),
        ("order-0002", "SB-VOIDED-0001"),
        ("order-0003", "SB-TAKEN-00001"),
        ("order-0004", "SB-SUCCESS-0001"),
    ] {
        api.create_parcel(&order_with_number(key, number)).await;
    }
    api.void("SB-VOIDED-0001").await;
    let first = submit(&api, OTHER_AWB, &["SB-TAKEN-00001"]).await.json();
    server.clock().advance(Duration::from_secs(300)).await;
    let numbers = [
        "SB-FINE-00001",
        "SB-VOIDED-0001",
        "SB-STRANGER-1",
        "no number",
        "sb-taken-00001",
        "SB-SUCCESS-0001",
    ];
    let response = submit(&api, AWB, &numbers).await;
    let expected = [
        "trackingNumbers[1] SB-VOIDED-0001 VOIDED PARCEL_NOT_MANIFESTABLE",
        "trackingNumbers[2] SB-STRANGER-1 - PARCEL_NOT_FOUND",
        "trackingNumbers[3] no number - PARCEL_NOT_FOUND",
        "trackingNumbers[4] sb-taken-00001 MANIFEST_SUBMITTED PARCEL_ALREADY_MANIFESTED",
        "trackingNumbers[5] SB-SUCCESS-0001 CUSTOMS_CLEARANCE PARCEL_NOT_MANIFESTABLE",
    ];
    assert_eq!(rejections(&response), expected);
    let message = response.json()["error"]["details"]["errors"][3]["message"].clone();
    assert!(message.as_str().unwrap().contains(first["data"]["manifestId"].as_str().unwrap()));
    assert_eq!(statuses(&api, "SB-FINE-00001").await, ["ORDERED", "LABEL_GENERATED"]);
}

#[tokio::test]
async fn the_same_parcels_again_return_the_same_manifest() {
    let (server, api) = start_with_key().await;
    let numbers = parcels(&api, 0..3).await;
    let keyed =
        json!({ "idempotencyKey": "manifest-0001", "awbNumber": AWB, "trackingNumbers": numbers });
    let first = api.post(SUBMIT, &keyed).await;
    assert_eq!(first.status, 201, "{}", first.text());
    let again = api.post(SUBMIT, &keyed).await;
    assert_eq!((again.status, &again.bytes), (200, &first.bytes));
    assert_eq!(again.header("idempotent-replayed"), "true");
    let other_order: Vec<_> = numbers.iter().rev().map(|number| number.to_lowercase()).collect();
    for hours in [0, 25, 200] {
        server.clock().advance(Duration::from_secs(hours * 3600)).await;
        let same = submit(&api, "17612345675", &other_order).await;
        assert_eq!((same.status, &same.json()["data"]), (200, &first.json()["data"]), "{hours}");
        assert_eq!(same.header("idempotent-replayed"), "");
        assert_eq!(same.json()["meta"]["requestId"], same.header("x-request-id"));
        assert_eq!(api.post(SUBMIT, &keyed).await.json()["data"], first.json()["data"], "{hours}");
    }
    assert_eq!(statuses(&api, &numbers[0]).await.len(), 3, "it is submitted once");
}

#[tokio::test]
async fn other_parcels_under_the_same_air_waybill_are_refused() {
    let (server, api) = start_with_key().await;
    let numbers = parcels(&api, 0..3).await;
    let first = submit(&api, AWB, &numbers[..2]).await.json();
    let free = [numbers[2].as_str()];
    for set in [&numbers[..1], &numbers[..], &numbers[2..], &["SB-ABSENT-0001".to_owned()]] {
        let response = submit(&api, AWB, set).await;
        assert_eq!(response.refusal(), (409, "MANIFEST_ALREADY_SUBMITTED"), "{set:?}");
        let details = &response.json()["error"]["details"];
        assert_eq!(details["manifestId"], first["data"]["manifestId"]);
    }
    assert_eq!(statuses(&api, free[0]).await.len(), 2);
    let stranger = Api::with_key(server.url(), &server.key().account("other").issue());
    let theirs = [stranger.create_parcel(&order("order-0001")).await];
    let own = submit(&stranger, AWB, &theirs).await;
    assert_eq!(own.status, 201, "each tenant has its own air waybills");
}

#[tokio::test]
async fn a_manifest_key_replays_the_same_and_refuses_other_requests() {
    let (_server, api) = start_with_key().await;
    let numbers = parcels(&api, 0..2).await;
    let body = |key: &str, set: &[String]| json!({ "idempotencyKey": key, "awbNumber": AWB, "trackingNumbers": set });
    assert_eq!(api.post(SUBMIT, &body("manifest-0001", &numbers[1..])).await.status, 201);
    let changed = api.post(SUBMIT, &body("manifest-0001", &numbers)).await;
    assert_eq!(changed.refusal(), (409, "IDEMPOTENCY_CONFLICT"));
    let resubmitted = api.post(SUBMIT, &body("manifest-0002", &numbers[1..])).await;
    assert_eq!((resubmitted.status, resubmitted.header("idempotent-replayed")), (200, ""));
    let again = api.post(SUBMIT, &body("manifest-0002", &numbers[1..])).await;
    assert_eq!((again.status, &again.bytes), (200, &resubmitted.bytes));
    let changed = api.post(SUBMIT, &body("manifest-0002", &numbers)).await;
    assert_eq!(changed.refusal(), (409, "IDEMPOTENCY_CONFLICT"));
    let refused = api.post(SUBMIT, &body("manifest-0003", &numbers)).await;
    assert_eq!(refused.refusal().1, "MANIFEST_ALREADY_SUBMITTED");
    let free = json!({ "idempotencyKey": "manifest-0003", "awbNumber": OTHER_AWB, "trackingNumbers": numbers[..1] });
    assert_eq!(api.post(SUBMIT, &free).await.status, 201, "a refusal leaves its key free");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_manifests_sharing_a_parcel_succeeds() {
    let (_setup, _running, api) = start_on_file();
    for round in 0..10 {
        let numbers = parcels(&api, round * 19..round * 19 + 19).await;
        let (one, other) = (&numbers[..10], &numbers[9..]);
        let (first, second) = (air_waybill(2 * round), air_waybill(2 * round + 1));
        let responses = tokio::join!(submit(&api, &first, one), submit(&api, &second, other));
        // The parcel in both is the last of one and the first of the other.
        let (winner, loser, index) = match (responses.0.status, responses.1.status) {
            (201, 409) => (one, &responses.1, 0),
            (409, 201) => (other, &responses.0, 9),
            both => panic!("round {round}: {both:?}"),
        };
        let shared = &numbers[9];
        let named = format!(
            "trackingNumbers[{index}] {shared} MANIFEST_SUBMITTED PARCEL_ALREADY_MANIFESTED"
        );
        assert_eq!(rejections(loser), [named]);
        for number in &numbers {
            let steps = if winner.contains(number) { 3 } else { 2 };
            assert_eq!(statuses(&api, number).await.len(), steps, "{number}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn identical_submissions_get_one_manifest() {
    let (_setup, _running, api) = start_on_file();
    let numbers = parcels(&api, 0..5).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..32 {
        let (api, numbers) = (api.clone(), numbers.clone());
        tasks.spawn(async move { submit(&api, AWB, &numbers).await });
    }
    let responses: Vec<HttpResponse> = tasks.join_all().await;
    assert_eq!(responses.iter().filter(|response| response.status == 201).count(), 1);
    let first = responses[0].json()["data"].clone();
    assert!(responses.iter().all(|response| response.json()["data"] == first));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_manifests_for_an_air_waybill_succeeds() {
    let (_setup, _running, api) = start_on_file();
    for round in 0..10 {
        let numbers = parcels(&api, round * 4..round * 4 + 4).await;
        let awb = air_waybill(round);
        let responses =
            tokio::join!(submit(&api, &awb, &numbers[..2]), submit(&api, &awb, &numbers[2..]));
        let loser = match (responses.0.status, responses.1.status) {
            (201, 409) => &responses.1,
            (409, 201) => &responses.0,
            both => panic!("round {round}: {both:?}"),
        };
        assert_eq!(loser.refusal().1, "MANIFEST_ALREADY_SUBMITTED");
    }
}

#[tokio::test]
async fn several_destinations_are_a_warning() {
    let (_server, api) = start_with_key().await;
    let japan = json!({ "line1": "1-1", "city": "Tokyo", "zipCode": "100-0001", "country": "JP" });
    let to_japan = with(order("order-0002"), "/receiver/address", japan);
    let numbers =
        [api.create_parcel(&to_japan).await, api.create_parcel(&order("order-0001")).await];
    let data = submit(&api, AWB, &numbers).await.json()["data"].clone();
    assert_eq!(data["destinationCountries"], json!(["EC", "JP"]));
    let warning = &data["warnings"][0];
    assert_eq!(warning["code"], "MIXED_DESTINATIONS");
    assert_eq!(warning["field"], "trackingNumbers");
    assert_ne!(warning["message"], warning["message_es"]);
}

#[tokio::test]
async fn a_simulated_journey_continues_after_the_manifest() {
    let (server, api) = start_with_key().await;
    api.create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    api.create_parcel(&order_with_number("order-0002", "SB-FAIL-00001")).await;
    server.clock().advance(Duration::from_secs(60)).await;
    submit(&api, AWB, &["SB-SUCCESS-0001", "SB-FAIL-00001"]).await;
    assert_eq!(api.track("SB-SUCCESS-0001").await.json()["status"], "MANIFEST_SUBMITTED");
    server.clock().advance(Duration::from_secs(3600)).await;
    let start = ["ORDERED", "LABEL_GENERATED", "MANIFEST_SUBMITTED"];
    let success = ["CUSTOMS_CLEARANCE", "IN_TRANSIT", "OUT_FOR_DELIVERY", "DELIVERED"];
    let fail = ["IN_TRANSIT", "DELIVERY_ATTEMPTED", "DELIVERY_FAILED"];
    assert_eq!(statuses(&api, "SB-SUCCESS-0001").await, [&start[..], &success].concat());
    assert_eq!(statuses(&api, "SB-FAIL-00001").await, [&start[..], &fail].concat());
}

#[tokio::test]
async fn a_manifest_is_visible_to_its_tenant_only() {
    let (server, api) = start_with_key().await;
    let numbers = parcels(&api, 0..1).await;
    let id = submit(&api, AWB, &numbers).await.json()["data"]["manifestId"].clone();
    let path = Operation::GetManifest.path_of(id.as_str().unwrap());
    let stranger = Api::with_key(server.url(), &server.key().account("other").issue());
    assert_eq!(stranger.get(&path).await.refusal(), (404, "MANIFEST_NOT_FOUND"));
    for id in ["man_01JH8Z0000000000000000000A", "01JH8Z0000000000000000000A", "man_", "x", "%00"] {
        let response = api.get(&format!("/api/v1/manifests/{id}")).await;
        assert_eq!(response.refusal(), (404, "MANIFEST_NOT_FOUND"), "{id}");
    }
    let sibling = Api::with_key(server.url(), &server.key().issue());
    assert_eq!(sibling.get(&path).await.status, 200);
}

#[tokio::test]
async fn a_reset_and_the_30_day_purge_delete_manifests() {
    let (server, api) = start_with_key().await;
    let numbers = parcels(&api, 0..2).await;
    let id = submit(&api, AWB, &numbers).await.json()["data"]["manifestId"].clone();
    let path = Operation::GetManifest.path_of(id.as_str().unwrap());
    let reset = send(api.request("POST", Operation::ResetSandbox.path())).await.json();
    let deleted = &reset["data"]["deleted"];
    assert_eq!((&deleted["manifests"], &deleted["trackingEvents"]), (&json!(1), &json!(6)));
    assert_eq!(api.get(&path).await.refusal().0, 404);
    let numbers = parcels(&api, 0..2).await;
    let again = submit(&api, AWB, &numbers).await;
    assert_eq!(again.status, 201, "the AWB is free: {}", again.text());
    let path = Operation::GetManifest.path_of(again.json()["data"]["manifestId"].as_str().unwrap());
    server.clock().advance(Duration::from_secs(30 * 24 * 3600 - 1)).await;
    assert_eq!(api.get(&path).await.status, 200);
    server.clock().advance(Duration::from_secs(1)).await;
    assert_eq!(api.get(&path).await.refusal().0, 404);
}
