//! Webhooks of the embedded server: their content, their order, their retries, and events that are not sent.

use std::{collections::HashSet, time::Duration};

use parcelo::{Environment, Operation, ParcelStatus, model::EventData};
use parcelo_server::mock::{Inbox, Received, Reply};
use parcelo_types::internal::EventKind;
use serde_json::{Value, json};

use crate::{
    api::{Api, order, order_with_number, send, with},
    embedded::start_with_key,
};

async fn post(api: &Api, operation: Operation, body: Value) {
    let request = api.request("POST", operation.path()).header("content-type", "application/json");
    let response = send(request.body(body.to_string())).await;
    assert!(response.status < 300, "{}", response.text());
}

/// Returns each delivery as `kind sequence`, in the order of arrival.
fn summaries(deliveries: &[Received]) -> Vec<String> {
    let summaries = deliveries.iter().map(|delivery| {
        let event = delivery.event.as_ref().expect("a verified event");
        match &event.data {
            EventData::StatusChanged(change) => {
                format!("{} {}", change.new_status, change.sequence.unwrap())
            }
            data => data.kind().to_string(),
        }
    });
    summaries.collect()
}

/// Returns the milliseconds between consecutive deliveries, by the server's clock.
fn pauses(deliveries: &[Received]) -> Vec<i64> {
    deliveries.windows(2).map(|pair| (pair[1].at - pair[0].at).num_milliseconds()).collect()
}

#[tokio::test]
async fn each_step_of_a_journey_sends_an_event_when_it_happens() {
    let (server, api) = start_with_key().await;
    let inbox = server.webhook_inbox().start().await;
    let order =
        with(order_with_number("order-0001", "SB-SUCCESS-0001"), "/externalOrderId", json!("A-17"));
    api.create_parcel(&order).await;
    let label = inbox.wait_for(|e| e.new_status == ParcelStatus::LabelGenerated).await.unwrap();
    assert_eq!(label.previous_status, ParcelStatus::Ordered);
    assert_eq!((label.location.as_str(), label.sequence), ("Miami, US", Some(2)));
    assert_eq!(label.external_order_id.as_deref(), Some("A-17"));
    let fired = server.clock().advance(Duration::from_secs(25 * 60)).await;
    assert_eq!(fired.len(), 4);
    let expected = [
        "LABEL_GENERATED 2",
        "CUSTOMS_CLEARANCE 3",
        "IN_TRANSIT 4",
        "OUT_FOR_DELIVERY 5",
        "DELIVERED 6",
    ];
    assert_eq!(summaries(&inbox.deliveries()), expected, "advance waits for webhooks");
    assert_eq!(pauses(&inbox.deliveries()), [300_000; 4]);
    let last = inbox.events().pop().unwrap();
    assert_eq!(last.environment, Environment::Sandbox);
    assert_eq!(last.timestamp.to_rfc3339(), "2026-01-05T08:20:00+00:00");
    let body: Value = serde_json::from_slice(&inbox.deliveries()[4].body).unwrap();
    let id = last.id.unwrap();
    assert!(id.as_str().starts_with("evt_") && inbox.deliveries()[4].id == id.as_str());
    let expected = json!({ "id": id, "event": "parcel.status_changed", "environment": "sandbox",
        "timestamp": "2026-01-05T08:20:00.000Z", "data": { "trackingNumber": "SB-SUCCESS-0001",
        "previousStatus": "OUT_FOR_DELIVERY", "newStatus": "DELIVERED", "location": "Quito, EC",
        "sequence": 6, "externalOrderId": "A-17" } });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn the_same_seed_sends_the_same_bytes() {
    let run = async || {
        let (server, api) = start_with_key().await;
        let inbox = server.webhook_inbox().reply([503]).start().await;
        for number in ["SB-SUCCESS-0001", "SB-CUSTOMS-0001"] {
            api.create_parcel(&order_with_number(&format!("order-{number}"), number)).await;
        }
        server.clock().advance(Duration::from_secs(2 * 3_600)).await;
        let all = inbox.deliveries().into_iter();
        all.map(|delivery| (delivery.at, delivery.body)).collect::<Vec<_>>()
    };
    let first = run().await;
    assert_eq!(first.len(), 11);
    assert_eq!(first, run().await);
}

#[tokio::test]
async fn the_sandbox_tries_three_times_and_then_holds_events() {
    let (server, api) = start_with_key().await;
    let inbox = server.webhook_inbox().reply([500, 404, 301]).start().await;
    api.create_parcel(&order_with_number("order-0001", "SB-NORMAL-0001")).await;
    server.clock().advance(Duration::from_secs(3_600)).await;
    let deliveries = inbox.deliveries();
    assert_eq!(deliveries.len(), 3);
    assert!(deliveries.iter().all(|delivery| delivery.id == deliveries[0].id));
    assert!(deliveries.iter().all(|delivery| delivery.body == deliveries[0].body));
    let [short, long] = pauses(&deliveries)[..] else { panic!("two pauses") };
    assert!((4_500..=5_500).contains(&short), "{short}");
    assert!((54_000..=66_000).contains(&long), "{long}");
    api.create_parcel(&order_with_number("order-0002", "SB-NORMAL-0002")).await;
    server.clock().advance(Duration::from_secs(3_600)).await;
    assert_eq!(inbox.deliveries().len(), 3, "a webhook that only fails is disabled");
    let again = server.webhook_inbox().start().await;
    api.create_parcel(&order_with_number("order-0003", "SB-NORMAL-0003")).await;
    let change = again.wait_for(|_| true).await.unwrap();
    assert_eq!(change.tracking_number.as_str(), "SB-NORMAL-0003", "held events are not sent again");
}

#[tokio::test]
async fn a_410_disables_at_once_and_a_retry_after_is_honoured() {
    let (server, api) = start_with_key().await;
    let later = Reply::status(503).header("retry-after", "600");
    let inbox = server.webhook_inbox().reply([later, Reply::status(410)]).start().await;
    api.create_parcel(&order_with_number("order-0001", "SB-NORMAL-0001")).await;
    server.clock().advance(Duration::from_secs(599)).await;
    assert_eq!(inbox.deliveries().len(), 1);
    server.clock().advance(Duration::from_secs(1)).await;
    assert_eq!(pauses(&inbox.deliveries()), [600_000]);
    api.create_parcel(&order_with_number("order-0002", "SB-NORMAL-0002")).await;
    server.clock().advance(Duration::from_secs(3_600)).await;
    assert_eq!(inbox.deliveries().len(), 2);
}

#[tokio::test]
async fn an_event_that_is_given_up_does_not_delay_other_parcels() {
    let (server, api) = start_with_key().await;
    let inbox = server.webhook_inbox().reply([200, 500, 500, 500]).start().await;
    api.create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    inbox.wait_for(|_| true).await.unwrap();
    api.create_parcel(&order_with_number("order-0002", "SB-NORMAL-0002")).await;
    server.clock().advance(Duration::from_secs(1_500)).await;
    let events = summaries(&inbox.deliveries());
    assert_eq!(events.last().unwrap(), "DELIVERED 6");
    let failed = inbox.deliveries().iter().filter(|delivery| delivery.status == 500).count();
    assert_eq!((failed, inbox.events().len()), (3, 5), "the second parcel's event is given up");
}

#[tokio::test]
async fn each_attempt_is_a_span_of_the_trace_that_caused_its_event() {
    let (server, api) = start_with_key().await;
    let inbox = server.webhook_inbox().events(["parcel.voided", "manifest.submitted"]);
    let inbox = inbox.reply([503]).start().await;
    let carrier = server.carrier_key();
    // The request's `traceparent` has the trace of this digit, 32 times.
    let call = async |operation: Operation, trace: &str, body: Value| {
        let parent = format!("00-{}-00f067aa0ba902b7-01", trace.repeat(32));
        let request = api.request("POST", operation.path()).header("traceparent", parent);
        let request = request.header("X-Carrier-Key", carrier.secret());
        let request = request.header("content-type", "application/json");
        let response = send(request.body(body.to_string())).await;
        assert!(response.status < 300, "{}", response.text());
    };
    let order = |number: &str| order_with_number(&format!("order-{number}"), number);
    call(Operation::CreateOrder, "1", order("SB-NORMAL-0001")).await;
    server.clock().advance(Duration::ZERO).await; // its first attempt fails
    api.create_parcel(&order("SB-NORMAL-0002")).await;
    call(Operation::CreateOrder, "0", order("SB-NORMAL-0003")).await;
    let void = json!({ "idempotencyKey": "void-0001", "trackingNumbers": ["SB-NORMAL-0001"] });
    call(Operation::VoidOrders, "2", void).await;
    let manifest = json!({ "idempotencyKey": "man-0001", "awbNumber": "176-12345675",
        "trackingNumbers": ["SB-NORMAL-0002"] });
    call(Operation::SubmitManifest, "3", manifest).await;
    let scan = json!({ "eventId": "scan-1", "trackingNumber": "SB-NORMAL-0003", "status": "PICKED_UP",
        "occurredAt": "2026-01-05T08:00:00Z", "location": "Miami, US" });
    call(Operation::PushCarrierEvents, "4", json!({ "events": [scan] })).await;
    server.clock().advance(Duration::from_secs(10)).await;
    let deliveries = server.webhooks().deliveries();
    let mut parents: Vec<_> = deliveries.iter().map(|sent| sent.traceparent.as_deref()).collect();
    let attempts = |trace: &str| {
        let start = format!("00-{}-", trace.repeat(32));
        let is_in_trace = |parent: &&str| {
            parent.starts_with(&start) && parent.len() == 55 && parent.ends_with("-01")
        };
        parents.iter().flatten().copied().filter(is_in_trace).count()
    };
    // An order has an attempt, and the first one a second; a void and a manifest have an event of their own beside the
    // parcel's.
    assert_eq!(["1", "2", "3", "4"].map(attempts), [2, 2, 2, 1], "{parents:?}");
    let untraced = parents.iter().filter(|parent| parent.is_none()).count();
    assert_eq!((untraced, parents.len()), (2, 9), "without a trace, or with an invalid one");
    let spans: HashSet<_> = parents.iter().flatten().map(|parent| &parent[36..52]).collect();
    assert!(spans.len() == 7 && !spans.contains("00f067aa0ba902b7"), "{parents:?}");
    let received = inbox.deliveries();
    let mut received: Vec<_> = received.iter().map(|one| one.traceparent.as_deref()).collect();
    // Attempts at once arrive in any order.
    parents.sort_unstable();
    received.sort_unstable();
    assert_eq!(received, parents);
}

#[tokio::test]
async fn other_kinds_of_events_are_sent_on_request() {
    let (server, api) = start_with_key().await;
    let kinds = ["parcel.created", "parcel.voided", "manifest.submitted"];
    let inbox = server.webhook_inbox().events(kinds).start().await;
    api.create_parcel(&order_with_number("order-0001", "SB-NORMAL-0001")).await;
    api.create_parcel(&order_with_number("order-0002", "SB-NORMAL-0002")).await;
    let void = json!({ "idempotencyKey": "void-0001", "trackingNumbers": ["SB-NORMAL-0001"],
        "reason": "Customer cancelled" });
    post(&api, Operation::VoidOrders, void).await;
    let manifest = json!({ "idempotencyKey": "man-0001", "awbNumber": "176-12345675",
        "trackingNumbers": ["SB-NORMAL-0002"] });
    post(&api, Operation::SubmitManifest, manifest).await;
    server.clock().advance(Duration::ZERO).await;
    let mut kinds: Vec<_> = inbox.events().iter().map(|event| event.data.kind()).collect();
    kinds.sort_by_key(ToString::to_string);
    let expected = [
        EventKind::ManifestSubmitted,
        EventKind::ParcelCreated,
        EventKind::ParcelCreated,
        EventKind::ParcelStatusChanged,
        EventKind::ParcelStatusChanged,
        EventKind::ParcelStatusChanged,
        EventKind::ParcelStatusChanged,
        EventKind::ParcelVoided,
    ];
    assert_eq!(kinds, expected);
    for event in inbox.events() {
        match event.data {
            EventData::ParcelCreated(created) => {
                assert_eq!(created.status, ParcelStatus::Ordered);
                assert!(created.id.as_str().starts_with("par_"));
            }
            EventData::ParcelVoided(voided) => {
                assert_eq!(voided.previous_status, ParcelStatus::LabelGenerated);
                assert_eq!(voided.reason.as_deref(), Some("Customer cancelled"));
            }
            EventData::ManifestSubmitted(manifest) => assert_eq!(manifest.parcel_count, 1),
            EventData::StatusChanged(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn accounts_get_events_of_their_own_parcels_only() {
    let (server, api) = start_with_key().await;
    let other = Api::with_key(server.url(), &server.key().account("other").issue());
    let inbox = server.webhook_inbox().account("other").start().await;
    api.create_parcel(&order("order-0001")).await;
    let number = other.create_parcel(&order("order-0001")).await;
    server.clock().advance(Duration::from_secs(3_600)).await;
    let numbers: Vec<_> = inbox.events().into_iter().map(number_of).collect();
    assert_eq!(numbers, [number]);
}

fn number_of(event: parcelo::model::WebhookEvent) -> String {
    match event.data {
        EventData::StatusChanged(change) => change.tracking_number.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_redirect_is_a_failure_and_is_not_followed() {
    let (server, api) = start_with_key().await;
    let elsewhere = server.webhook_inbox().account("other").start().await;
    let redirect = Reply::status(307).header("location", elsewhere.url());
    let inbox = server.webhook_inbox().reply([redirect]).start().await;
    api.create_parcel(&order("order-0001")).await;
    server.clock().advance(Duration::from_secs(10)).await;
    assert_eq!(statuses(&inbox), [307, 200]);
    assert!(elsewhere.deliveries().is_empty());
}

#[tokio::test]
async fn an_endless_response_is_cut_off_and_its_status_counts() {
    let (server, api) = start_with_key().await;
    let huge = Reply::status(200).body(vec![b'x'; 8 << 20]);
    let inbox = server.webhook_inbox().reply([huge]).start().await;
    api.create_parcel(&order("order-0001")).await;
    server.clock().advance(Duration::from_secs(3_600)).await;
    assert_eq!(statuses(&inbox), [200]);
}

fn statuses(inbox: &Inbox) -> Vec<u16> {
    inbox.deliveries().iter().map(|delivery| delivery.status).collect()
}

#[test]
fn an_impossible_reply_fails_the_test() {
    let replies: [fn() -> Reply; 6] = [
        || 0.into(),
        || 7.into(),
        || Reply::status(101),
        || Reply::status(1_000),
        || Reply::status(200).header("retry after", "1"),
        || Reply::status(200).header("retry-after", "1\r\nx: y"),
    ];
    for (index, reply) in replies.into_iter().enumerate() {
        assert!(std::panic::catch_unwind(reply).is_err(), "no. {index}");
    }
    let fine: [fn() -> Reply; 3] = [|| 204.into(), || Reply::status(999), Reply::hang];
    for reply in fine {
        assert!(std::panic::catch_unwind(reply).is_ok());
    }
}

#[tokio::test]
async fn a_reset_discards_unsent_events() {
    let (server, api) = start_with_key().await;
    let inbox = server.webhook_inbox().reply([500]).start().await;
    api.create_parcel(&order("order-0001")).await;
    server.clock().advance(Duration::ZERO).await;
    let request = api.request("POST", Operation::ResetSandbox.path());
    let response = send(request).await;
    assert_eq!(response.json()["data"]["deleted"]["webhookDeliveries"], 1, "{}", response.text());
    server.clock().advance(Duration::from_secs(3_600)).await;
    assert_eq!(statuses(&inbox), [500]);
}
