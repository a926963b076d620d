//! Carrier events: the service accepts and rejects them as the SDK's rules do offline, each event gets one outcome, and
//! a repeated event is a duplicate without effect.

use axum::body::Body;
use http::Request;
use parcelo_server::mock::sample;
use parcelo_types::internal::parse_body;
use parcelo_wire::{CarrierKey, check_carrier_events};
use serde_json::{Value, json};

use crate::{
    Target,
    service::{HttpResponse, Service, with_service},
};

pub(crate) const TARGET: Target = Target { name: "carrier_events", check, cases: 300 };

/// The placeholder for the parcel's tracking number, which is new for each input.
const NUMBER_PLACEHOLDER: &str = "SB-SUCCESS-0001";
const NOW: &str = "2026-01-05T08:00:00Z";

fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    with_service(|service| {
        let api_key = service.key("default");
        let mut order = sample::order();
        order.as_object_mut().unwrap().remove("trackingNumber");
        let created = service.post(&api_key, "/api/v1/orders/create", order.to_string().as_bytes());
        let number = created.json()["parcel"]["trackingNumber"].as_str().unwrap().to_owned();
        let body = text.replace(NUMBER_PLACEHOLDER, &number);
        let carrier = {
            let _context = service.runtime.enter();
            service.server.carrier_key()
        };
        let response = push(service, &carrier, &body);
        let faults = match parse_body(body.as_bytes()) {
            Err(fault) => vec![fault],
            Ok(value) => match check_carrier_events(&value, NOW.parse().unwrap()) {
                Err(rejected) => rejected.faults,
                Ok(events) => {
                    let event_ids: Vec<_> =
                        events.events.iter().map(|event| event.event_id.clone()).collect();
                    let tracking_record =
                        || service.get(&api_key, &format!("/api/v1/tracking/{number}")).json();
                    let first_outcomes = assert_one_result_each(&response, &event_ids);
                    let after = tracking_record();
                    let again = push(service, &carrier, &body);
                    assert_duplicates(&first_outcomes, &again);
                    let has_rejected = first_outcomes.iter().any(|outcome| outcome == "REJECTED");
                    assert!(
                        has_rejected || tracking_record() == after,
                        "a repeated event changes the record"
                    );
                    return;
                }
            },
        };
        response.assert_faults(&faults, &body);
    });
}

fn push(service: &Service, carrier: &CarrierKey, body: &str) -> HttpResponse {
    let request = Request::post("/carrier/v1/events")
        .header("x-carrier-key", carrier.secret())
        .header("content-type", "application/json");
    service.call(request.body(Body::from(body.to_owned())).unwrap())
}

/// Checks that there is one result for each event, in their order, and that the sums match the results. Returns
/// the outcomes.
fn assert_one_result_each(response: &HttpResponse, event_ids: &[String]) -> Vec<String> {
    assert_eq!(response.status, 200, "{response:?}");
    let body = response.json();
    let (results, summary) =
        (body["data"]["results"].as_array().unwrap(), &body["data"]["summary"]);
    let text = |result: &Value, name: &str| result[name].as_str().unwrap().to_owned();
    assert_eq!(results.iter().map(|result| text(result, "eventId")).collect::<Vec<_>>(), event_ids);
    let outcomes: Vec<_> = results.iter().map(|result| text(result, "outcome")).collect();
    let sums = [
        ("applied", "APPLIED"),
        ("recorded", "RECORDED"),
        ("duplicates", "DUPLICATE"),
        ("rejected", "REJECTED"),
    ];
    for (name, outcome) in sums {
        let count = outcomes.iter().filter(|found| *found == outcome).count();
        assert_eq!(summary[name], json!(count), "{body}");
    }
    assert_eq!(summary["received"], json!(outcomes.len()));
    outcomes
}

/// Checks that each repeated event is a duplicate. An event that was rejected need not be one, because it may be valid
/// after the events that followed it.
fn assert_duplicates(first_outcomes: &[String], again: &HttpResponse) {
    let body = again.json();
    let results = body["data"]["results"].as_array().unwrap();
    for (outcome, result) in first_outcomes.iter().zip(results) {
        assert!(
            outcome == "REJECTED" || result["outcome"] == "DUPLICATE",
            "{first_outcomes:?} {body}"
        );
    }
}
