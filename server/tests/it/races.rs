//! A void, a manifest and a carrier event for the same parcel at the same time, on a file. Whichever comes first, the
//! history follows the table of transitions, and every response is correct.

use parcelo::Operation;
use serde_json::{Value, json};

use crate::{
    api::{Api, order_with_number},
    running::TestSetup,
};

const ROUNDS: usize = 40;

async fn scan(api: &Api, carrier: &str, number: &str) -> Value {
    // The carrier's clock is slightly ahead, so that its scan never counts as late.
    let at = chrono::Utc::now() + chrono::Duration::minutes(1);
    let event = json!({ "eventId": format!("scan-{number}"), "trackingNumber": number, "status": "PICKED_UP",
        "occurredAt": at.to_rfc3339(), "location": "Miami, US" });
    api.push_events(carrier, json!([event])).await[0]["outcome"].clone()
}

/// Returns an air waybill number with its check digit.
fn awb(round: usize) -> String {
    let serial = 1_234_000 + round;
    format!("176-{serial}{}", serial % 7)
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_void_manifest_and_scan_leave_a_legal_history() {
    let setup = TestSetup::new();
    let running = setup.start(&["--sandbox-rate-limit", "100000"]);
    let api = running.api(&setup.new_key("sandbox").1);
    let carrier =
        setup.admin("carriers", &["create", "--environment", "sandbox", "--name", "Andes"]);
    let carrier = carrier["key"].as_str().unwrap();
    let mut ends = std::collections::BTreeMap::new();
    for round in 0..ROUNDS {
        let number = &format!("SB-RACED-{round:04}");
        api.create_parcel(&order_with_number(&format!("order-{round:04}"), number)).await;
        let void =
            json!({ "idempotencyKey": format!("void-{round:04}"), "trackingNumbers": [number] });
        let manifest = json!({ "awbNumber": awb(round), "trackingNumbers": [number] });
        let (voided, flown, seen) = tokio::join!(
            api.post(Operation::VoidOrders.path(), &void),
            api.post(Operation::SubmitManifest.path(), &manifest),
            scan(&api, carrier, number),
        );
        let record = api.record(number).await;
        let events = record["history"].as_array().unwrap();
        let history: Vec<_> =
            events.iter().map(|event| event["status"].as_str().unwrap()).collect();
        let end = history[2..].join(" ");
        let statuses = (voided.status, flown.status, seen.as_str().unwrap());
        let expected = match end.as_str() {
            "VOIDED" => (200, 409, "REJECTED"),
            "PICKED_UP" => (409, 409, "APPLIED"),
            "MANIFEST_SUBMITTED PICKED_UP" => (409, 201, "APPLIED"),
            other => panic!("{number} went LABEL_GENERATED {other}"),
        };
        assert_eq!(statuses, expected, "{number}: {end}");
        let sequences: Vec<_> =
            events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
        assert_eq!(sequences, (1..=sequences.len() as u64).collect::<Vec<_>>());
        *ends.entry(end).or_insert(0) += 1;
    }
    assert_eq!(ends.values().sum::<usize>(), ROUNDS, "{ends:?}");
}
