//! A void, a manifest and a carrier event for the same parcel at the same time, on a file. Whichever comes first, the
//! history follows the table of transitions, and every response is correct.

use parcelo::Operation;
use serde_json::{Value, json};

use crate::{
    api::{Answer, Api, order_with_number, send},
    running::TestSetup,
};

const ROUNDS: usize = 40;

async fn post(api: &Api, path: &str, body: Value) -> Answer {
    let request = api.request("POST", path).header("content-type", "application/json");
    send(request.body(body.to_string())).await
}

async fn scan(url: &str, carrier: &str, number: &str) -> Answer {
    // The carrier's clock is slightly ahead, so that its scan never counts as late.
    let at = chrono::Utc::now() + chrono::Duration::minutes(1);
    let event = json!({ "eventId": format!("scan-{number}"), "trackingNumber": number, "status": "PICKED_UP",
        "occurredAt": at.to_rfc3339(), "location": "Miami, US" });
    let request = Api::new(url).request("POST", Operation::PushCarrierEvents.path());
    let request =
        request.header("x-carrier-key", carrier).header("content-type", "application/json");
    send(request.body(json!({ "events": [event] }).to_string())).await
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
    let carrier = setup.carriers(&["create", "--environment", "sandbox", "--name", "Andes"]);
    let carrier = carrier["key"].as_str().unwrap();
    let mut ends = std::collections::BTreeMap::new();
    for round in 0..ROUNDS {
        let number = &format!("SB-RACED-{round:04}");
        api.create_parcel(&order_with_number(&format!("order-{round:04}"), number)).await;
        let void =
            json!({ "idempotencyKey": format!("void-{round:04}"), "trackingNumbers": [number] });
        let manifest = json!({ "awbNumber": awb(round), "trackingNumbers": [number] });
        let (voided, flown, seen) = tokio::join!(
            post(&api, Operation::VoidOrders.path(), void),
            post(&api, Operation::SubmitManifest.path(), manifest),
            scan(running.sandbox(), carrier, number),
        );
        let seen = seen.json()["data"]["results"][0]["outcome"].as_str().unwrap().to_owned();
        let body = api
            .get(&format!("{}?includeHistory=true", Operation::GetTracking.path_of(number)))
            .await
            .json();
        let history: Vec<_> = body["history"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["status"].as_str().unwrap())
            .collect();
        let end = history[2..].join(" ");
        let statuses = (voided.status, flown.status, seen.as_str());
        let expected = match end.as_str() {
            "VOIDED" => (200, 409, "REJECTED"),
            "PICKED_UP" => (409, 409, "APPLIED"),
            "MANIFEST_SUBMITTED PICKED_UP" => (409, 201, "APPLIED"),
            other => panic!("{number} went LABEL_GENERATED {other}"),
        };
        assert_eq!(statuses, expected, "{number}: {end}");
        let sequences: Vec<_> = body["history"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["sequence"].as_u64().unwrap())
            .collect();
        assert_eq!(sequences, (1..=sequences.len() as u64).collect::<Vec<_>>());
        *ends.entry(end).or_insert(0) += 1;
    }
    assert_eq!(ends.values().sum::<usize>(), ROUNDS, "{ends:?}");
}
