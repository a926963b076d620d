//! POST /api/v1/orders/void.

use std::time::Duration;

use parcelo::Operation;
use parcelo_server::mock::MockServer;
use serde_json::{Value, json};

use crate::api::{Api, HttpResponse, order_with_number};

const VOID: &str = Operation::VoidOrders.path();

async fn start() -> (MockServer, Api) {
    let (server, api) = crate::embedded::start_with_key().await;
    for number in ["SB-NORMAL-0001", "SB-NORMAL-0002", "SB-SUCCESS-0001"] {
        api.create_parcel(&order_with_number(&format!("order-{number}"), number)).await;
    }
    (server, api)
}

async fn void(api: &Api, key: &str, numbers: &[&str]) -> HttpResponse {
    api.post(VOID, &json!({ "idempotencyKey": key, "trackingNumbers": numbers })).await
}

/// Returns `Void` or the error code of each result, after checking that the sums agree.
fn results(data: &Value) -> Vec<String> {
    let results = data["results"].as_array().unwrap();
    let word = |result: &Value| match result["error"]["code"].as_str() {
        Some(code) => {
            assert_ne!(result["error"]["message"], result["error"]["message_es"]);
            code.to_owned()
        }
        None => result["voided"].as_bool().map(|voided| format!("voided {voided}")).unwrap(),
    };
    results.iter().map(word).collect()
}

#[tokio::test]
async fn voided_orders_lose_their_labels() {
    let (_server, api) = start().await;
    let body = json!({ "idempotencyKey": "void-0001", "trackingNumbers": ["sb-normal-0001", "SB-NORMAL-0002"],
        "reason": "Customer cancelled" });
    let response = api.post(VOID, &body).await;
    let data = response.json()["data"].clone();
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.json()["meta"]["requestId"], response.header("x-request-id"));
    assert_eq!(data["summary"], json!({ "requested": 2, "voided": 2, "failed": 0 }));
    let first = json!({ "trackingNumber": "sb-normal-0001", "voided": true, "alreadyVoided": false,
        "previousStatus": "LABEL_GENERATED", "status": "VOIDED", "voidedAt": "2026-01-05T08:00:00.000Z" });
    assert_eq!(data["results"][0], first);
    let tracked = api.record("SB-NORMAL-0001").await;
    assert_eq!(tracked["status"], "VOIDED");
    assert_eq!(tracked["estimatedDelivery"], "2026-01-13T23:59:59-05:00", "its last value");
    assert_eq!(tracked["history"][2]["description"], "Customer cancelled");
    assert_eq!(tracked["history"][2]["location"], "Miami, US");
    let label = api.get("/api/v1/labels/SB-NORMAL-0001/download").await;
    assert_eq!(label.refusal(), (409, "LABEL_VOIDED"));
}

#[tokio::test]
async fn a_request_voids_what_it_can_and_explains_the_rest() {
    let (server, api) = start().await;
    server.clock().advance(Duration::from_secs(300)).await;
    let response =
        void(&api, "void-0001", &["SB-NORMAL-0001", "SB-ABSENT-0001", "SB-SUCCESS-0001", "odd"])
            .await;
    let data = response.json()["data"].clone();
    assert_eq!(response.status, 200);
    let expected = ["voided true", "PARCEL_NOT_FOUND", "PARCEL_NOT_VOIDABLE", "PARCEL_NOT_FOUND"];
    assert_eq!(results(&data), expected);
    assert_eq!(data["summary"], json!({ "requested": 4, "voided": 1, "failed": 3 }));
    assert_eq!(data["results"][2]["status"], "CUSTOMS_CLEARANCE");
    let again = void(&api, "void-0002", &["SB-NORMAL-0001", "SB-SUCCESS-0001"]).await;
    assert_eq!(again.status, 200, "already voided counts as voided");
    assert_eq!(again.json()["data"]["results"][0]["alreadyVoided"], true);
    assert_eq!(again.json()["data"]["results"][0]["voidedAt"], "2026-01-05T08:05:00.000Z");
}

#[tokio::test]
async fn a_request_that_voids_nothing_is_not_a_success() {
    let (server, api) = start().await;
    server.clock().advance(Duration::from_secs(300)).await;
    let stranger = Api::with_key(server.url(), &server.key().account("other").issue());
    let table: [(&Api, &[&str], u16, &str); 4] = [
        (&api, &["SB-ABSENT-0001", "odd"], 404, "PARCEL_NOT_FOUND"),
        (&stranger, &["SB-NORMAL-0001"], 404, "PARCEL_NOT_FOUND"),
        (&api, &["SB-SUCCESS-0001"], 409, "PARCEL_NOT_VOIDABLE"),
        (&api, &["SB-ABSENT-0001", "SB-SUCCESS-0001"], 409, "VOID_FAILED"),
    ];
    for (api, numbers, status, code) in table {
        let response = void(api, "void-0001", numbers).await;
        assert_eq!(response.refusal(), (status, code), "{numbers:?}");
        assert_eq!(results(&response.json()["error"]["details"]).len(), numbers.len());
    }
    let free = void(&api, "void-0001", &["SB-NORMAL-0001"]).await;
    assert_eq!(free.status, 200, "the key is still free");
}

#[tokio::test]
async fn all_faults_of_a_void_are_reported_at_once() {
    let (_server, api) = start().await;
    let body = json!({ "trackingNumbers": ["SB-NORMAL-0001", "sb-normal-0001"], "reason": 7 });
    let faults =
        ["idempotencyKey REQUIRED", "trackingNumbers[1] DUPLICATE", "reason INVALID_FORMAT"];
    assert_eq!(api.post(VOID, &body).await.faults(), faults);
}

#[tokio::test]
async fn a_repeated_void_is_replayed_and_a_changed_one_conflicts() {
    let (_server, api) = start().await;
    let first = void(&api, "void-0001", &["SB-NORMAL-0001"]).await;
    let again = void(&api, "void-0001", &["SB-NORMAL-0001"]).await;
    assert_eq!((again.status, &again.bytes), (200, &first.bytes));
    assert_eq!([&first, &again].map(|one| one.header("idempotent-replayed")), ["", "true"]);
    let other = void(&api, "void-0001", &["SB-NORMAL-0002"]).await;
    assert_eq!(other.refusal(), (409, "IDEMPOTENCY_CONFLICT"));
    let create = api.create(&order_with_number("void-0001", "SB-NORMAL-0003")).await;
    assert_eq!(create.status, 201, "the same key on another operation is another key");
}

#[tokio::test]
async fn a_void_stops_the_simulation() {
    let (server, api) = start().await;
    assert_eq!(void(&api, "void-0001", &["SB-SUCCESS-0001"]).await.status, 200);
    assert_eq!(server.clock().advance(Duration::from_secs(3600)).await, []);
    assert_eq!(api.track("SB-SUCCESS-0001").await.json()["status"], "VOIDED");
}

#[tokio::test]
async fn a_voided_tracking_number_stays_taken() {
    let (_server, api) = start().await;
    void(&api, "void-0001", &["SB-NORMAL-0001"]).await;
    let again = api.create(&order_with_number("order-again", "SB-NORMAL-0001")).await;
    assert_eq!(again.refusal(), (409, "PARCEL_DUPLICATE_TRACKING"));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_concurrent_voids_of_an_order_takes_effect() {
    let (_server, api) = start().await;
    let mut tasks = tokio::task::JoinSet::new();
    for i in 0..16 {
        let api = api.clone();
        tasks.spawn(async move { void(&api, &format!("void-{i:04}"), &["SB-NORMAL-0001"]).await });
    }
    let responses = tasks.join_all().await;
    assert!(responses.iter().all(|response| response.status == 200));
    let fresh =
        responses.iter().filter(|a| a.json()["data"]["results"][0]["alreadyVoided"] == false);
    assert_eq!(fresh.count(), 1);
    let history = api.record("SB-NORMAL-0001").await;
    assert_eq!(history["history"].as_array().unwrap().len(), 3);
}
