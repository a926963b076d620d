//! Scenarios and snapshots of mock servers in the test's own process: their refusals, further servers, and HTTP.

use std::sync::Arc;

use parcelo_server::mock::{MockServer, Scenario};
use serde_json::{Value, json};

use crate::{
    api::{Api, HttpResponse, send},
    embedded,
    raw::RawConnection,
};

/// Starts a server with controls, in memory, because further servers and snapshots are.
async fn start(seed: u64, scenario: &str) -> Arc<MockServer> {
    let builder = embedded::in_memory("a further server has a store of its own").seed(seed);
    let builder = builder.scenario(Scenario::parse(scenario).unwrap());
    builder.start_controlled("127.0.0.1:0".parse().unwrap()).await.unwrap()
}

async fn restore(server: &MockServer, snapshot: &[u8]) -> HttpResponse {
    let request = Api::new(server.url()).request("PUT", "/__mock/snapshot");
    send(request.body(snapshot.to_vec())).await
}

async fn start_further(server: &MockServer, wanted: &Value) -> HttpResponse {
    let request = Api::new(server.url()).request("POST", "/__mock/servers");
    send(request.body(wanted.to_string())).await
}

#[tokio::test]
#[should_panic(expected = "the scenario is refused: faults[1].first: requests are counted from 1")]
async fn a_refused_call_of_a_scenario_names_its_place() {
    let scenario =
        r#"{ "faults": [{ "fault": "close", "expect": 1 }, { "fault": "close", "first": 0 }] }"#;
    let scenario = Scenario::parse(scenario).unwrap();
    // The first fault would also fail the check, whose message would hide the reason.
    embedded::builder().verify_on_drop().scenario(scenario).start().await;
}

#[tokio::test]
async fn the_scenario_of_the_guide_is_accepted() {
    let guide = include_str!("../../../docs/testing.md").split("## Scenarios").nth(1).unwrap();
    let json = guide.split("```json").nth(1).unwrap().split("```").next().unwrap();
    let server = start(1, json).await;
    assert_eq!(server.scenario_keys().len(), 1);
}

#[tokio::test]
async fn a_further_server_has_the_scenario_of_the_first_or_its_own() {
    let first = r#"{ "keys": [{ "account": "shop" }], "parcels": [{ "trackingNumber": "SB-NORMAL-0001" }] }"#;
    let server = start(1, first).await;
    let other = json!({ "scenario": {
        "clock": "frozen=2027-01-01T00:00:00Z",
        "parcels": [{ "trackingNumber": "SB-NORMAL-0002", "status": "DELIVERED" }],
    } });
    for (wanted, number, keys, now) in [
        (json!({}), "SB-NORMAL-0001", 1, "2026-01-05T08:00:00.000Z"),
        (other, "SB-NORMAL-0002", 0, "2027-01-01T00:00:00.000Z"),
    ] {
        let started = start_further(&server, &wanted).await.json();
        let [url, key] = ["url", "key"].map(|name| started[name].as_str().unwrap());
        let api = Api::new(url).key(key);
        let listed = api.get("/api/v1/parcels").await.json();
        assert_eq!(listed["meta"]["total"], 1, "{wanted}");
        assert_eq!(listed["data"][0]["trackingNumber"], number);
        assert_eq!(api.get("/__mock/clock").await.json()["now"], now);
        let shown = api.get("/__mock/keys").await.json();
        assert_eq!(shown["keys"].as_array().unwrap().len(), keys, "{wanted}");
    }
}

#[tokio::test]
async fn a_further_server_with_a_wrong_scenario_is_refused() {
    let server = start(1, "{}").await;
    let parcel = |number: &str| json!({ "trackingNumber": number });
    let lost =
        json!([parcel("SB-NORMAL-0001"), { "trackingNumber": "SB-NORMAL-0002", "status": "LOST" }]);
    let twice = json!([parcel("SB-NORMAL-0001"), parcel("SB-NORMAL-0001")]);
    let nowhere = json!([{ "trackingNumber": "SB-NORMAL-0001", "country": "XX" }]);
    for (scenario, field) in [
        (json!({ "clock": "noon" }), "scenario.clock"),
        (json!({ "parcels": lost }), "scenario.parcels[1].status"),
        (json!({ "parcels": twice }), "scenario.parcels[1].trackingNumber"),
        (json!({ "parcels": [parcel("odd")] }), "scenario.parcels[0].trackingNumber"),
        (json!({ "parcels": nowhere }), "scenario.parcels[0].country"),
        (json!({ "faults": [{ "fault": "error" }] }), "scenario.faults[0].code"),
        (json!({ "parcel": [] }), "scenario"),
        (json!(["system"]), "scenario"),
        (json!({ "parcels": parcel("SB-NORMAL-0001") }), "scenario.parcels"),
        (json!({ "keys": [{}, []] }), "scenario.keys[1]"),
        (json!({ "faults": [["Health", 1]] }), "scenario.faults[0]"),
        (json!({ "webhooks": [{ "reply": 503 }] }), "scenario.webhooks[0].reply"),
        (json!({ "clock": 5 }), "scenario.clock"),
        (json!({ "parcels": [{ "country": 1 }] }), "scenario.parcels[0].country"),
        (json!({ "parcels": [{}] }), "scenario.parcels[0]"),
        (json!({ "faults": [{ "nth": "1", "fault": "reset" }] }), "scenario.faults[0].nth"),
    ] {
        let refused = start_further(&server, &json!({ "scenario": scenario })).await;
        assert_eq!(refused.refusal(), (400, "VALIDATION_FAILED"), "{scenario}");
        let fault = &refused.json()["error"]["details"]["errors"][0];
        assert_eq!(fault["field"], field, "{scenario}");
        assert_ne!(fault["message"], fault["message_es"], "{scenario}");
        assert!(!fault["message"].as_str().unwrap().contains("struct"), "{fault}");
    }
}

#[tokio::test]
async fn a_snapshot_moves_to_a_server_with_the_same_seed() {
    let (first, same, other) = (start(7, "{}").await, start(7, "{}").await, start(8, "{}").await);
    let numbers = first.seed_parcels(2).await;
    let snapshot = Api::new(first.url()).get("/__mock/snapshot").await;
    assert_eq!(snapshot.header("content-type"), "application/octet-stream");
    let restored = restore(&same, &snapshot.bytes).await.json();
    assert_eq!(restored, json!({ "now": "2026-01-05T08:00:00.000Z", "fired": [] }));
    let api = Api::with_key(same.url(), &same.key().issue());
    for number in &numbers {
        assert_eq!(api.track(number.as_str()).await.status, 200);
    }
    let table: [(&MockServer, &[u8], &str); 3] = [
        (&other, &snapshot.bytes, "another seed"),
        (&same, &snapshot.bytes[..1_000], "not a whole snapshot"),
        (&same, b"", "not a whole snapshot"),
    ];
    for (server, bytes, reason) in table {
        let refused = restore(server, bytes).await;
        assert_eq!(refused.refusal(), (400, "VALIDATION_FAILED"), "{reason}");
        assert!(refused.text().contains(reason), "{}", refused.text());
    }
    assert_eq!(api.track(numbers[0].as_str()).await.status, 200, "a refusal changes nothing");
}

#[tokio::test]
async fn a_snapshot_above_the_limit_is_refused_with_its_limit() {
    let server = start(1, "{}").await;
    let mut connection = RawConnection::open(server.url()).await;
    let head = "PUT /__mock/snapshot HTTP/1.1\r\nhost: mock\r\ncontent-length: 300000000\r\n\r\n";
    connection.send(&[head]).await;
    let refused = connection.next_response().await.unwrap();
    assert_eq!(refused.status, 400);
    assert!(refused.body.contains("256 MiB"), "{}", refused.body);
}

#[tokio::test]
async fn a_restored_receiver_is_not_reported_as_the_suites_own() {
    let (first, second) = (start(7, "{}").await, start(7, "{}").await);
    let control = async |server: &MockServer, method: &str, control: &str, body: Value| {
        let request = Api::new(server.url()).request(method, &format!("/__mock/{control}"));
        send(request.body(body.to_string())).await
    };
    let url = "http://127.0.0.1:9/hooks";
    assert_eq!(control(&first, "POST", "webhooks", json!({ "url": url })).await.status, 200);
    let snapshot = Api::new(first.url()).get("/__mock/snapshot").await;
    assert_eq!(restore(&second, &snapshot.bytes).await.status, 200);
    let shown = control(&second, "GET", "webhooks", json!({})).await.json();
    assert_eq!(shown["listening"], false);
    assert!(shown["hints"].to_string().contains(url), "{shown}");
    control(&second, "POST", "webhooks", json!({})).await;
    assert_eq!(restore(&second, &snapshot.bytes).await.status, 200);
    let shown = control(&second, "GET", "webhooks", json!({})).await.json();
    assert_eq!(shown, json!({ "listening": true, "deliveries": [], "hints": [] }));
}
