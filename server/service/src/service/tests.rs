//! Tests of the service on a manual clock: carriers' limits and events, and tracking numbers that collide.

use std::sync::Arc;

use parcelo_domain::{
    CarrierKeyRecord, CarrierRowId, Millis, Refusal, Secrets,
    audit::Actor,
    credentials::CarrierScope,
    limit::{Admission, Quota},
    sample,
};
use parcelo_store::{Store, StoreError};
use parcelo_system::{
    clock::{Clock, ManualClock},
    ids::Ids,
};
use parcelo_types::{Environment, ErrorCode, ParcelStatus, TrackingNumber};
use parcelo_wire::CarrierOutcome;
use serde_json::json;

use super::{Caller, Carrier, Limits, NewKeyRequest, Service, Settings, WriteResponse};

pub(crate) fn settings() -> Settings {
    let limits = Limits { production: 3, ..Limits::default() };
    Settings { limits, ..Settings::new("", Secrets::derive(&[1; 32])) }
}

pub(crate) fn service(clock: &Arc<ManualClock>) -> Service {
    let store = Store::memory([1; 32]).unwrap();
    let clock: Arc<dyn Clock> = clock.clone();
    Service::new(store, clock, Arc::new(Ids::seeded(1)), settings())
}

pub(crate) fn carrier(row: i64, environment: Environment) -> Carrier {
    Carrier {
        key: Arc::new(CarrierKeyRecord {
            row,
            id: format!("car_{row}"),
            scope: CarrierScope { carrier: CarrierRowId(1), environment },
            hash: [1; 32],
            old_secrets: Vec::new(),
            name: "Andes Cargo".to_owned(),
            last4: "wXyZ".to_owned(),
            created_at: Millis(0),
            revoked_at: None,
        }),
        trace: None,
    }
}

#[test]
fn a_refused_read_says_when_to_retry() {
    let refusal = Refusal::from(StoreError::Crowded { database: "parcelo.db".into() });
    assert_eq!((refusal.code, refusal.retry_after), (ErrorCode::ServiceUnavailable, Some(1)));
}

#[tokio::test]
async fn a_carrier_key_has_ten_times_the_limit_of_its_environment() {
    let service = service(&Arc::new(ManualClock::at(Millis(0))));
    let one = carrier(1, Environment::Production);
    for left in (0..30).rev() {
        let quota = Quota { limit: 30, remaining: left, reset: 1 };
        assert_eq!(service.admit_carrier(&one, Millis(0)).await, Admission::Granted(quota));
    }
    let empty = Quota { limit: 30, remaining: 0, reset: 1 };
    assert_eq!(service.admit_carrier(&one, Millis(999)).await, Admission::Refused(empty));
    for (row, environment, limit) in
        [(2, Environment::Production, 30), (3, Environment::Sandbox, 1_000)]
    {
        let quota = Quota { limit, remaining: limit - 1, reset: 1 };
        let admission = service.admit_carrier(&carrier(row, environment), Millis(0)).await;
        assert_eq!(admission, Admission::Granted(quota));
    }
    assert!(matches!(service.admit_carrier(&one, Millis(1_000)).await, Admission::Granted(_)));
}

/// Returns a caller with a new sandbox key.
pub(crate) async fn caller(service: &Service) -> Caller {
    caller_in(service, Environment::Sandbox).await
}

/// Returns a request for an unrestricted sandbox key.
pub(crate) fn key_request() -> NewKeyRequest {
    NewKeyRequest::unrestricted("default", Environment::Sandbox, "Test")
}

pub(crate) async fn caller_in(service: &Service, environment: Environment) -> Caller {
    let (issuer, request) =
        (service.issuer(Actor::Server), NewKeyRequest { environment, ..key_request() });
    let (_, key) = issuer.issue_api_key(request, service.now()).await.unwrap();
    Caller { key: Arc::new(key), trace: None }
}

/// Creates an order for `SB-SUCCESS-0001`.
async fn create_order(service: &Service) {
    let caller = caller(service).await;
    service.create_order(&caller, &sample::order(), None).await.unwrap();
}

/// Creates an order without a tracking number, and returns the number and the label URL of the response.
async fn create_unnumbered_order(
    service: &Service,
    caller: &Caller,
    key: &str,
) -> (TrackingNumber, String) {
    let mut order = sample::order();
    order["trackingNumber"] = json!(null);
    order["idempotencyKey"] = json!(key);
    let answer = service.create_order(caller, &order, None).await.unwrap();
    let WriteResponse::Created(body) = answer else { panic!("{answer:?}") };
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let text = |name: &str| body["parcel"][name].as_str().unwrap().to_owned();
    (TrackingNumber::parse(&text("trackingNumber")).unwrap(), text("labelUrl"))
}

#[tokio::test]
async fn an_order_that_draws_a_taken_number_gets_another() {
    let service = service(&Arc::new(ManualClock::at(Millis(1_767_600_000_000))));
    let caller = caller(&service).await;
    let before = service.ids.seed_position();
    let (first, _) = create_unnumbered_order(&service, &caller, "order-of-the-first").await;
    // The clock and the random numbers are the same again.
    service.ids.resume_from(&before);
    let (second, label_url) =
        create_unnumbered_order(&service, &caller, "order-of-the-second").await;
    assert_ne!(first, second);
    let parcel = service.store.parcel(Environment::Sandbox, &second).await.unwrap().unwrap();
    let site = service.site(Environment::Sandbox);
    assert_eq!(label_url, site.label_url(service.secrets(), &second, parcel.id));
    assert!(service.store.parcel(Environment::Sandbox, &first).await.unwrap().is_some());
}

#[tokio::test]
async fn due_steps_are_taken_before_a_scan_is_evaluated() {
    let clock = Arc::new(ManualClock::at(Millis(1_767_600_000_000)));
    let service = service(&clock);
    create_order(&service).await;
    clock.set(clock.now().plus(17 * Millis::MINUTE));
    let body = json!({ "events": [{
        "eventId": "scan-0001", "trackingNumber": "SB-SUCCESS-0001", "status": "DELIVERED",
        "occurredAt": "2026-01-05T08:16:00Z", "location": "Quito, EC"
    }] });
    let carrier = carrier(1, Environment::Sandbox);
    let answer = service.push_carrier_events(&carrier, &body).await.unwrap();
    assert_eq!(answer.results[0].outcome, CarrierOutcome::Applied);
    let number = TrackingNumber::parse("SB-SUCCESS-0001").unwrap();
    let parcel = service.store.parcel(Environment::Sandbox, &number).await.unwrap().unwrap();
    let events = service.store.events(&parcel).await.unwrap();
    let statuses: Vec<_> =
        events.iter().map(|event| ParcelStatus::from(event.state).to_string()).collect();
    let expected = [
        "ORDERED",
        "LABEL_GENERATED",
        "CUSTOMS_CLEARANCE",
        "IN_TRANSIT",
        "OUT_FOR_DELIVERY",
        "DELIVERED",
    ];
    assert_eq!(statuses, expected);
}
