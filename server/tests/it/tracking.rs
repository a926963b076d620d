//! GET /api/v1/tracking/{trackingNumber}, and the sandbox's simulated journeys while the clock is moved.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    api::{Api, order, order_with_number, send},
    embedded::start_with_key,
};

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}

/// Returns each event as `STATUS minutes`, counted from the creation of the parcel.
async fn history(api: &Api, number: &str) -> Vec<String> {
    let body = api.record(number).await;
    let events = body["history"].as_array().unwrap();
    let minutes = |event: &Value| {
        let time = event["timestamp"].as_str().unwrap();
        let time = chrono::DateTime::parse_from_rfc3339(time).unwrap();
        (time.timestamp() - 1_767_600_000) / 60
    };
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["sequence"], index + 1, "{body}");
    }
    assert_eq!(body["status"], events.last().unwrap()["status"], "{body}");
    events
        .iter()
        .map(|event| format!("{} {}", event["status"].as_str().unwrap(), minutes(event)))
        .collect()
}

#[tokio::test]
async fn a_record_contains_its_history() {
    let (_server, api) = start_with_key().await;
    api.create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    let record = api.track("sb-success-0001").await;
    assert_eq!(record.status, 200);
    assert_eq!(
        record.json(),
        json!({
            "trackingNumber": "SB-SUCCESS-0001", "status": "LABEL_GENERATED", "statusName": "Label generated",
            "estimatedDelivery": "2026-01-13T23:59:59-05:00",
            "arrival": { "kind": "EXPECTED", "date": "2026-01-13" }
        })
    );
    let with_history = api.record("SB-SUCCESS-0001").await;
    let first = json!({
        "status": "ORDERED", "statusName": "Order created", "timestamp": "2026-01-05T08:00:00.000Z",
        "location": "Miami, US", "sequence": 1
    });
    assert_eq!(with_history["history"][0], first);
    assert_eq!(with_history["history"][1]["status"], "LABEL_GENERATED");
}

#[tokio::test]
async fn texts_are_in_the_language_of_the_caller() {
    let (_server, api) = start_with_key().await;
    api.create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    let path = "/api/v1/tracking/SB-SUCCESS-0001?includeHistory=true";
    let spanish =
        send(api.request("GET", path).header("Accept-Language", "es-EC, en;q=0.5")).await.json();
    assert_eq!(spanish["statusName"], "Etiqueta generada");
    assert_eq!(spanish["history"][0]["statusName"], "Pedido creado");
}

#[tokio::test]
async fn an_unknown_or_invalid_number_is_refused() {
    let (server, api) = start_with_key().await;
    let number = api.create_parcel(&order("order-0001")).await;
    for path in ["short", &"X".repeat(31)] {
        assert_eq!(api.track(path).await.faults(), ["trackingNumber INVALID_FORMAT"], "{path}");
    }
    for path in
        ["SB-ABSENT-0001", "not%20a%20number", "ÑÑÑÑÑÑÑÑÑÑ", "%00%00%00%00%00%00%00%00%00%00"]
    {
        let response = api.get(&format!("/api/v1/tracking/{path}")).await;
        assert_eq!(response.refusal(), (404, "PARCEL_NOT_FOUND"), "{path}");
    }
    let stranger = Api::with_key(server.url(), &server.key().account("other").issue());
    assert_eq!(stranger.track(&number).await.refusal(), (404, "PARCEL_NOT_FOUND"));
    let sibling = Api::with_key(server.url(), &server.key().issue());
    assert_eq!(sibling.track(&number).await.status, 200, "keys of one account share their parcels");
    let maybe = api.get(&format!("/api/v1/tracking/{number}?includeHistory=maybe")).await;
    assert_eq!(maybe.faults(), ["includeHistory INVALID_FORMAT"]);
    let both = api.get("/api/v1/tracking/short?includeHistory=maybe").await;
    let faults = ["trackingNumber INVALID_FORMAT", "includeHistory INVALID_FORMAT"];
    assert_eq!(both.faults(), faults, "all faults at once");
}

#[tokio::test]
async fn each_scenario_takes_its_steps_on_time() {
    let table: [(&str, &[&str]); 5] = [
        (
            "SB-SUCCESS-0001",
            &["CUSTOMS_CLEARANCE 5", "IN_TRANSIT 10", "OUT_FOR_DELIVERY 15", "DELIVERED 20"],
        ),
        ("SB-FAIL-0001", &["IN_TRANSIT 5", "DELIVERY_ATTEMPTED 10", "DELIVERY_FAILED 15"]),
        (
            "SB-CUSTOMS-0001",
            &["CUSTOMS_CLEARANCE 5", "CUSTOMS_HOLD 10", "CUSTOMS_CLEARANCE 70", "IN_TRANSIT 75"],
        ),
        ("sb-rts-00001", &["IN_TRANSIT 5", "DELIVERY_ATTEMPTED 10", "RETURN_TO_SENDER 15"]),
        ("SB-NOTHING-0001", &[]),
    ];
    // One long move of the clock equals many short ones.
    for (moves, length) in [(80, 1), (1, 60 * 24 * 29)] {
        let (server, api) = start_with_key().await;
        for (number, _) in table {
            api.create_parcel(&order_with_number(&format!("order-{number}"), number)).await;
        }
        let mut fired = Vec::new();
        for _ in 0..moves {
            fired.extend(server.clock().advance(minutes(length)).await);
        }
        for (number, steps) in table {
            let all = [&["ORDERED 0", "LABEL_GENERATED 0"][..], steps].concat();
            assert_eq!(history(&api, number).await, all, "{number}");
        }
        assert_eq!(fired.len(), 14);
        assert!(fired.is_sorted_by_key(|step| step.at));
        let record = api.record("SB-CUSTOMS-0001").await;
        assert_eq!(record["history"][2]["location"], "Quito, EC");
    }
}
