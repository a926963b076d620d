//! Tests of the dispatcher over a store in memory, with a clock that the tests move and receivers on real sockets.

mod crowd;
mod damage;
mod identity;
#[cfg(feature = "postgres")]
mod servers;

use std::{
    collections::HashSet,
    future::Future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderMap, Response},
};
use parcelo::webhook::{ID, Webhook};
use parcelo_domain::{
    Millis, Tenant,
    credentials::CarrierScope,
    sample::{self, TEST_AUTHOR},
    webhooks::{
        AllowedHosts, AttemptResult, DeliverySlots, DeliveryStatus, DisabledBy, EndpointResponse,
        MAX_IN_FLIGHT_PER_ENDPOINT, WebhookEventKinds,
    },
};
use parcelo_store::{EventsToReplay, Store};
use parcelo_system::{
    clock::{Clock, ManualClock},
    ids::Ids,
};
use parcelo_types::{Environment, model::EventData};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::WebhookDispatcher;
use crate::{
    http::{Listener, Stop},
    mock::MockServer,
    service::{
        Caller, Carrier, CredentialIssuer, Delivery, EndpointRequest, Endpoints, NewKeyRequest,
        Service,
    },
    waiting::{PausedTime, until},
};

const START: Millis = Millis(1_768_057_500_000);

/// A service with a clock that the tests move. It sends nothing by itself.
struct TestService {
    service: Arc<Service>,
    clock: Arc<ManualClock>,
    ids: Arc<Ids>,
}

/// One delivery: its time, headers and body.
type ReceivedDelivery = (Millis, HeaderMap, Bytes);

/// A receiver that records deliveries and responds with the status that a function returns; 0 is no response.
struct Receiver {
    url: String,
    received: Arc<Mutex<Vec<ReceivedDelivery>>>,
}

impl TestService {
    async fn new() -> Self {
        Self::with_store(Store::memory([1; 32]).unwrap(), 1).await
    }

    async fn with_store(store: Store, seed: u64) -> Self {
        let (ids, clock) = (Arc::new(Ids::seeded(seed)), Arc::new(ManualClock::at(START)));
        let mut settings = MockServer::start().await.api().service.settings().clone();
        settings.webhooks.private = true;
        let service = Arc::new(Service::new(store, clock.clone(), Arc::clone(&ids), settings));
        Self { service, clock, ids }
    }

    fn endpoints(&self) -> Endpoints<'_> {
        Endpoints {
            store: self.service.store(),
            ids: &self.ids,
            by: TEST_AUTHOR.clone(),
            trace: None,
        }
    }

    async fn caller(&self, account: &str, environment: Environment) -> Caller {
        let request = NewKeyRequest::unrestricted(account, environment, "Test");
        let (_, key) = self.issuer().issue_api_key(request, START).await.unwrap();
        Caller { key: Arc::new(key), trace: None }
    }

    fn issuer(&self) -> CredentialIssuer<'_> {
        let (store, secrets) = (self.service.store(), &self.service.settings().secrets);
        CredentialIssuer { store, secrets, ids: &self.ids, by: TEST_AUTHOR.clone() }
    }

    /// Creates a production tenant whose events are sent to a URL.
    async fn subscriber(&self, account: &str, url: &str) -> Caller {
        let caller = self.caller(account, Environment::Production).await;
        self.subscribe(caller.tenant(), url).await;
        caller
    }

    async fn subscribe(&self, tenant: Tenant, url: &str) {
        let (url, kinds) = (url.to_owned(), WebhookEventKinds::default());
        let request = EndpointRequest { tenant, url, kinds, allowed_hosts: AllowedHosts::Any };
        self.endpoints().set(request, START).await.unwrap();
    }

    /// Leases the deliveries that are due, which must all be this tenant's.
    async fn lease_due(&self, tenant: Tenant) -> Vec<Delivery> {
        let mut all = Vec::new();
        let slots = DeliverySlots::new(MAX_IN_FLIGHT_PER_ENDPOINT);
        for event in self.service.lease_deliveries(&slots).await.unwrap() {
            assert_eq!(event.tenant(), tenant);
            all.extend(self.service.prepare_delivery(event).await.unwrap());
        }
        all
    }

    /// Leases the only delivery that is due.
    async fn lease_one(&self, tenant: Tenant) -> Delivery {
        let mut taken = self.lease_due(tenant).await;
        assert_eq!(taken.len(), 1);
        taken.remove(0)
    }

    /// Settles a delivery with a response, now.
    async fn settle_with_status(&self, delivery: Delivery, status: u16) {
        let answer = Ok(EndpointResponse { status, retry_after: None, body_prefix: Vec::new() });
        let outcome = AttemptResult { at: self.clock.now(), millis: 1, response: answer };
        self.service.settle_delivery(delivery, outcome).await.unwrap();
    }

    async fn create(&self, caller: &Caller, number: &str) {
        let mut order = sample::order();
        order["idempotencyKey"] = json!(format!("key-{number}"));
        order["trackingNumber"] = json!(number);
        self.service.create_order(caller, &order, None).await.unwrap();
    }

    async fn carrier(&self) -> Carrier {
        let (issuer, name) = (self.issuer(), "Carrier".to_owned());
        let created = issuer.issue::<CarrierScope>(name, Environment::Production, START).await;
        Carrier { key: Arc::new(created.unwrap().1), trace: None }
    }

    /// Reports a carrier's scans of production parcels, now.
    async fn scan(&self, carrier: &Carrier, numbers: &[String], status: &str) {
        let at = parcelo_types::internal::time::to_text(self.clock.now().to_utc());
        let event = |number: &String| {
            json!({ "eventId": format!("{number}-{status}"), "trackingNumber": number,
                "status": status, "location": "Lima, PE", "occurredAt": at })
        };
        let body = json!({ "events": numbers.iter().map(event).collect::<Vec<_>>() });
        let results = self.service.push_carrier_events(carrier, &body).await.unwrap();
        assert_eq!(usize::try_from(results.summary.applied), Ok(numbers.len()), "{results:?}");
    }

    /// Delivers everything, moving the clock from one due time to the next.
    async fn deliver_all(&self) {
        let dispatcher =
            WebhookDispatcher::new(Arc::clone(&self.service), MAX_IN_FLIGHT_PER_ENDPOINT);
        while let Some(due) = self.service.next_delivery_due().await.unwrap() {
            self.clock.set(due.max(self.clock.now()));
            dispatcher.deliver_due().await.unwrap();
        }
    }

    async fn disabled(&self, tenant: Tenant) -> Option<DisabledBy> {
        self.endpoints().find(tenant).await.unwrap().disabled
    }

    async fn statuses(&self, tenant: Tenant) -> Vec<DeliveryStatus> {
        let logged = self.service.store().deliveries(tenant, 1_000).await.unwrap();
        logged.iter().map(|logged| logged.delivery_status).collect()
    }

    async fn start_receiver(
        &self,
        reply: impl Fn(&str) -> u16 + Send + Sync + 'static,
    ) -> Receiver {
        let (clock, reply) = (self.clock.clone(), Arc::new(reply));
        start_receiver(move |headers, body| {
            let (now, status) = (clock.now(), reply(&number_and_status(&body)));
            async move {
                if status == 0 {
                    std::future::pending::<()>().await;
                }
                let answer = Response::builder().status(status).body(Body::empty()).unwrap();
                ((now, headers, body), answer)
            }
        })
        .await
    }
}

async fn start_receiver<F, A>(respond: F) -> Receiver
where
    F: Fn(HeaderMap, Bytes) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = (ReceivedDelivery, Response<Body>)> + Send,
{
    let socket = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/hook", socket.local_addr().unwrap());
    let received = Arc::new(Mutex::new(Vec::new()));
    let routes = Router::new().fallback({
        let received = Arc::clone(&received);
        move |headers: HeaderMap, body: Bytes| async move {
            let (delivery, answer) = respond(headers, body).await;
            received.lock().unwrap().push(delivery);
            answer
        }
    });
    drop(Listener::start(socket, routes, Stop::default()));
    Receiver { url, received }
}

impl Receiver {
    fn received(&self) -> Vec<ReceivedDelivery> {
        self.received.lock().unwrap().clone()
    }

    /// Returns `NUMBER STATUS` for each delivery.
    fn statuses(&self) -> Vec<String> {
        self.received().iter().map(|(_, _, body)| number_and_status(body)).collect()
    }
}

fn number_and_status(body: &[u8]) -> String {
    let event: Value = serde_json::from_slice(body).unwrap();
    let text = |name: &str| event["data"][name].as_str().unwrap_or_default().to_owned();
    format!("{} {}", text("trackingNumber"), text("newStatus"))
}

fn event_ids(seen: &[ReceivedDelivery]) -> HashSet<String> {
    seen.iter().map(|(_, headers, _)| headers[ID].to_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn production_events_are_tried_ten_times_then_held() {
    let test = TestService::new().await;
    let broken = test.start_receiver(|_| 500).await;
    let caller = test.subscriber("shop", &broken.url).await;
    test.create(&caller, "PARCEL-00001").await;
    test.deliver_all().await;
    let seen = broken.received();
    let table = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
    assert_eq!(seen.len(), table.len() + 1);
    assert_eq!(seen[0].0, START, "the first immediately");
    for (pair, seconds) in seen.windows(2).zip(table) {
        let off = pair[1].0.0 - pair[0].0.0 - seconds * Millis::SECOND;
        assert!(off.abs() <= seconds * Millis::SECOND / 10, "{seconds} s: {off} ms off");
    }
    assert_eq!(event_ids(&seen).len(), 1, "every attempt has the same id");
    let tenant = caller.tenant();
    assert_eq!(test.statuses(tenant).await, [DeliveryStatus::Failed]);
    assert!(test.disabled(tenant).await.is_some());

    test.create(&caller, "PARCEL-00002").await;
    assert_eq!(test.service.next_delivery_due().await.unwrap(), None);
    assert_eq!(test.statuses(tenant).await, [DeliveryStatus::Held, DeliveryStatus::Failed]);
    let fine = test.start_receiver(|_| 200).await;
    let replay = EventsToReplay::MissedSince(Millis(0));
    let early = test.endpoints().replay(tenant, replay, test.clock.now()).await;
    assert!(early.is_err(), "a webhook that is disabled replays nothing");
    test.subscribe(tenant, &fine.url).await;
    test.endpoints().replay(tenant, replay, test.clock.now()).await.unwrap();
    test.deliver_all().await;
    assert_eq!(fine.statuses(), ["PARCEL-00001 LABEL_GENERATED", "PARCEL-00002 LABEL_GENERATED"]);
    let replayed = event_ids(&fine.received());
    assert!(replayed.is_superset(&event_ids(&seen)), "a replay has the event's own id");
    let log = test.service.store().deliveries(tenant, 10).await.unwrap();
    assert_eq!(log[1].attempts.len(), 11, "the log has the failed ones too");
}

#[tokio::test]
async fn later_events_wait_for_the_third_failure_and_keep_their_order() {
    let test = TestService::new().await;
    let receiver =
        test.start_receiver(|text| if text.ends_with("PICKED_UP") { 500 } else { 200 }).await;
    let caller = test.subscriber("shop", &receiver.url).await;
    test.create(&caller, "PARCEL-00001").await;
    let carrier = test.carrier().await;
    for status in ["PICKED_UP", "IN_TRANSIT", "DELIVERED"] {
        test.scan(&carrier, &["PARCEL-00001".to_owned()], status).await;
    }
    test.deliver_all().await;
    let statuses: Vec<_> =
        receiver.statuses().iter().map(|text| text.split(' ').nth(1).unwrap().to_owned()).collect();
    let start =
        ["LABEL_GENERATED", "PICKED_UP", "PICKED_UP", "PICKED_UP", "IN_TRANSIT", "DELIVERED"];
    assert_eq!(statuses[..6], start);
    assert_eq!(statuses[6..], ["PICKED_UP"; 7], "it is sent ten times in all");
    assert_eq!(test.disabled(caller.tenant()).await, None, "other events were delivered");
}

#[tokio::test]
async fn a_flapping_endpoint_gets_every_event() {
    let test = TestService::new().await;
    let count = AtomicUsize::new(0);
    let reply = move |_: &str| [500, 200, 302, 404, 204][count.fetch_add(1, Ordering::SeqCst) % 5];
    let receiver = test.start_receiver(reply).await;
    let caller = test.subscriber("shop", &receiver.url).await;
    for number in 0..40 {
        test.create(&caller, &format!("PARCEL-{number:05}")).await;
    }
    test.deliver_all().await;
    assert_eq!(event_ids(&receiver.received()).len(), 40);
    assert!(
        test.statuses(caller.tenant())
            .await
            .iter()
            .all(|status| *status == DeliveryStatus::Delivered)
    );
}

#[tokio::test]
async fn ten_hanging_deliveries_do_not_delay_others() {
    let test = TestService::new().await;
    // Hanging deliveries are not given up in that time.
    let _paused = PausedTime::start();
    let (open, hanging) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&test.clock));
    let counted = Arc::clone(&open);
    let stuck = start_receiver(move |headers, body| {
        counted.fetch_add(1, Ordering::SeqCst);
        let now = hanging.now();
        async move {
            std::future::pending::<()>().await;
            ((now, headers, body), Response::default())
        }
    })
    .await;
    let fine = test.start_receiver(|_| 200).await;
    let (slow, quick) =
        (test.subscriber("slow", &stuck.url).await, test.subscriber("quick", &fine.url).await);
    let dispatcher = WebhookDispatcher::new(Arc::clone(&test.service), MAX_IN_FLIGHT_PER_ENDPOINT);
    let running = tokio::spawn(async move { dispatcher.run(std::future::pending()).await });
    for number in 0..25 {
        test.create(&slow, &format!("SLOW-{number:05}-X")).await;
    }
    for number in 0..50 {
        test.create(&quick, &format!("QUICK-{number:05}-X")).await;
    }
    until("the quick endpoint has everything", async || {
        fine.received().len() == 50 && open.load(Ordering::SeqCst) >= MAX_IN_FLIGHT_PER_ENDPOINT
    })
    .await;
    assert_eq!(
        open.load(Ordering::SeqCst),
        MAX_IN_FLIGHT_PER_ENDPOINT,
        "no more deliveries are in flight"
    );
    running.abort();
}

#[tokio::test]
async fn an_unsettled_event_is_due_again_when_its_lease_ends() {
    let test = TestService::new().await;
    let caller = test.subscriber("shop", "http://127.0.0.1:9/").await;
    let tenant = caller.tenant();
    test.create(&caller, "PARCEL-00001").await;
    let first = test.lease_due(tenant).await;
    assert_eq!(first.len(), 1);
    assert!(test.lease_due(tenant).await.is_empty(), "it is leased");
    test.clock.set(START.plus(Millis::MINUTE));
    let again = test.lease_due(tenant).await;
    assert_eq!((&again[0].headers[0], &again[0].body), (&first[0].headers[0], &first[0].body));
    test.service.end_leases().await.unwrap();
    assert_eq!(test.lease_due(tenant).await.len(), 1);
}

#[tokio::test]
async fn a_test_is_sent_and_a_disabled_webhook_holds_events() {
    let test = TestService::new().await;
    let receiver = test.start_receiver(|_| 200).await;
    let caller = test.subscriber("shop", &receiver.url).await;
    let tenant = caller.tenant();
    test.endpoints().send_test(tenant, START).await.unwrap();
    test.deliver_all().await;
    let event: parcelo_types::model::WebhookEvent =
        serde_json::from_slice(&receiver.received()[0].2).unwrap();
    assert_eq!((event.data, event.environment), (EventData::Test, Environment::Production.into()));
    test.endpoints().disable(tenant).await.unwrap();
    assert!(test.endpoints().send_test(tenant, START).await.is_err());
    test.create(&caller, "PARCEL-00001").await;
    test.endpoints().enable(tenant).await.unwrap();
    test.deliver_all().await;
    assert_eq!(test.statuses(tenant).await, [DeliveryStatus::Held, DeliveryStatus::Delivered]);
    test.clock.set(START.plus(30 * Millis::DAY));
    let purged = test.service.purge_outbox().await.unwrap();
    assert_eq!(purged, 2, "everything is deleted after 30 days");
}

#[tokio::test]
async fn an_address_that_is_no_longer_allowed_is_not_called() {
    let test = TestService::new().await;
    let receiver = test.start_receiver(|_| 200).await;
    let caller = test.subscriber("shop", &receiver.url).await;
    test.create(&caller, "PARCEL-00001").await;
    let mut settings = test.service.settings().clone();
    settings.webhooks.private = false;
    let (store, ids) = (test.service.store().clone(), Arc::clone(&test.ids));
    let strict = Arc::new(Service::new(store, test.clock.clone(), ids, settings));
    WebhookDispatcher::new(strict, MAX_IN_FLIGHT_PER_ENDPOINT).deliver_due().await.unwrap();
    let log = test.service.store().deliveries(caller.tenant(), 10).await.unwrap();
    let error = log[0].attempts[0].error.clone().unwrap();
    assert!(error.contains("not allowed") && receiver.received().is_empty(), "{error}");
}

#[tokio::test]
async fn without_a_webhook_no_event_is_enqueued() {
    let test = TestService::new().await;
    let caller = test.caller("shop", Environment::Production).await;
    test.create(&caller, "PARCEL-00001").await;
    test.subscribe(caller.tenant(), "http://127.0.0.1:9/").await;
    assert!(test.statuses(caller.tenant()).await.is_empty());
}

const OLD: &str = "http://127.0.0.1:9/old";
const NEW: &str = "http://127.0.0.1:9/new";

#[derive(Debug, Clone, Copy)]
enum EndpointChange {
    Replace,
    ReplaceWhileDisabled,
    RemoveAndSet,
    RemoveAndSetSame,
}

impl TestService {
    async fn replace_endpoint(&self, tenant: Tenant, change: EndpointChange) {
        match change {
            EndpointChange::Replace => {}
            EndpointChange::ReplaceWhileDisabled => {
                drop(self.endpoints().disable(tenant).await.unwrap());
            }
            EndpointChange::RemoveAndSet | EndpointChange::RemoveAndSetSame => {
                drop(self.endpoints().remove(tenant).await.unwrap());
            }
        }
        let same = matches!(change, EndpointChange::RemoveAndSetSame);
        self.subscribe(tenant, if same { OLD } else { NEW }).await;
    }
}

#[tokio::test]
async fn a_late_response_of_a_replaced_webhook_is_only_logged() {
    use EndpointChange::{RemoveAndSet, RemoveAndSetSame, Replace, ReplaceWhileDisabled};
    for change in [Replace, ReplaceWhileDisabled, RemoveAndSet, RemoveAndSetSame] {
        for (failed_before, status) in [(0, 410), (0, 500), (2, 500), (0, 200)] {
            let test = TestService::new().await;
            let caller = test.caller("shop", Environment::Sandbox).await;
            let tenant = caller.tenant();
            test.subscribe(tenant, OLD).await;
            test.endpoints().send_test(tenant, START).await.unwrap();
            for _ in 0..failed_before {
                let delivery = test.lease_one(tenant).await;
                test.settle_with_status(delivery, 500).await;
                test.clock.set(test.service.next_delivery_due().await.unwrap().unwrap());
            }
            let late = test.lease_one(tenant).await;
            test.replace_endpoint(tenant, change).await;
            let case = format!("{change:?}, {status} after {failed_before}");
            let before = test.statuses(tenant).await;
            test.settle_with_status(late, status).await;
            assert!(test.disabled(tenant).await.is_none(), "{case}");
            assert_eq!(test.statuses(tenant).await, before, "{case}");
            let log = test.service.store().deliveries(tenant, 1).await.unwrap();
            assert_eq!(log[0].attempts.len(), failed_before + 1, "{case}");
            if !matches!(change, Replace) {
                let missed = EventsToReplay::MissedSince(START);
                test.endpoints().replay(tenant, missed, START).await.unwrap();
            }
            test.clock.set(test.clock.now().plus(Millis::MINUTE));
            let next = test.lease_one(tenant).await;
            assert_eq!(next.url == NEW, !matches!(change, RemoveAndSetSame), "{case}");
        }
    }
}

#[tokio::test]
async fn a_response_counts_unless_its_webhook_was_replaced() {
    let test = TestService::new().await;
    let caller = test.subscriber("shop", OLD).await;
    let tenant = caller.tenant();
    test.endpoints().send_test(tenant, START).await.unwrap();
    let delivery = test.lease_one(tenant).await;
    test.subscribe(tenant, OLD).await;
    test.endpoints().disable(tenant).await.unwrap();
    test.settle_with_status(delivery, 200).await;
    assert_eq!(
        test.statuses(tenant).await,
        [DeliveryStatus::Delivered],
        "the event was held, but was delivered"
    );
    test.endpoints().enable(tenant).await.unwrap();
    test.endpoints().send_test(tenant, START).await.unwrap();
    let delivery = test.lease_one(tenant).await;
    test.endpoints().rotate_secret(tenant, START).await.unwrap();
    test.settle_with_status(delivery, 410).await;
    assert_eq!(test.disabled(tenant).await, Some(DisabledBy::Gone));
}

#[tokio::test]
async fn a_suspended_process_sends_nothing_under_a_lease_that_may_end() {
    let test = TestService::new().await;
    let tenant = test.subscriber("shop", OLD).await.tenant();
    test.endpoints().send_test(tenant, START).await.unwrap();
    let slots = DeliverySlots::new(MAX_IN_FLIGHT_PER_ENDPOINT);
    let event = test.service.lease_deliveries(&slots).await.unwrap().remove(0);
    // An attempt of 15 s ends within the lease of a minute, or may not.
    for (seconds, is_sent) in [(40, true), (46, false)] {
        test.clock.set(START.plus(seconds * Millis::SECOND));
        let delivery = test.service.prepare_delivery(event.clone()).await.unwrap();
        assert_eq!(delivery.is_some(), is_sent, "after {seconds} s");
    }
    test.clock.set(START.plus(Millis::MINUTE));
    test.lease_one(tenant).await;
}

#[tokio::test]
async fn an_attempt_from_before_a_replay_does_not_settle_it() {
    for status in [200, 410, 500] {
        for taken_again in [true, false] {
            let test = TestService::new().await;
            let caller = test.subscriber("shop", OLD).await;
            let tenant = caller.tenant();
            let event = test.endpoints().send_test(tenant, START).await.unwrap();
            let late = test.lease_one(tenant).await;
            test.endpoints().disable(tenant).await.unwrap();
            test.endpoints().enable(tenant).await.unwrap();
            test.endpoints().replay(tenant, EventsToReplay::One(event), START).await.unwrap();
            let again = if taken_again { Some(test.lease_one(tenant).await) } else { None };
            let due = test.service.next_delivery_due().await.unwrap();
            test.settle_with_status(late, status).await;
            let case = format!("{status} {taken_again}");
            assert_eq!(test.service.next_delivery_due().await.unwrap(), due, "{case}");
            assert_eq!(test.statuses(tenant).await, [DeliveryStatus::Ready], "{case}");
            assert!(test.disabled(tenant).await.is_none(), "{case}");
            let again = match again {
                Some(again) => again,
                None => test.lease_one(tenant).await,
            };
            test.settle_with_status(again, 200).await;
            assert_eq!(test.statuses(tenant).await, [DeliveryStatus::Delivered], "{case}");
        }
    }
}

#[tokio::test]
async fn every_replaced_secret_signs_for_its_24_hours() {
    const HOUR: i64 = Millis::HOUR;
    let test = TestService::new().await;
    let receiver = test.start_receiver(|_| 200).await;
    let caller = test.subscriber("shop", &receiver.url).await;
    let tenant = caller.tenant();
    let mut secrets = vec![test.endpoints().find(tenant).await.unwrap().secret];
    for replaced in [0, HOUR, 2 * HOUR] {
        secrets.push(test.endpoints().rotate_secret(tenant, START.plus(replaced)).await.unwrap());
    }
    let day = Millis::DAY;
    let table = [
        (3 * HOUR, [true, true, true, true]),
        (day - 1, [true, true, true, true]),
        (day, [false, true, true, true]),
        (day + HOUR, [false, false, true, true]),
        (day + 2 * HOUR, [false, false, false, true]),
    ];
    for (after, expected) in table {
        test.clock.set(START.plus(after));
        test.endpoints().send_test(tenant, test.clock.now()).await.unwrap();
        test.deliver_all().await;
        let (at, headers, body) = receiver.received().pop().unwrap();
        let signed = secrets.iter().map(|secret| {
            let webhook = Webhook::new([secret.clone()]).unwrap();
            webhook.verify_at(&headers, &body, at.to_utc()).is_ok()
        });
        assert_eq!(signed.collect::<Vec<_>>(), expected, "{after}");
    }
    test.endpoints().remove(tenant).await.unwrap();
    test.subscribe(tenant, &receiver.url).await;
    assert!(test.endpoints().find(tenant).await.unwrap().old.is_empty());
}

#[tokio::test]
async fn at_most_sixteen_secrets_sign() {
    let test = TestService::new().await;
    let caller = test.subscriber("shop", OLD).await;
    let tenant = caller.tenant();
    for _ in 0..20 {
        test.endpoints().rotate_secret(tenant, START).await.unwrap();
    }
    test.endpoints().send_test(tenant, START).await.unwrap();
    let delivery = test.lease_one(tenant).await;
    let (_, signatures) = &delivery.headers[2];
    assert_eq!(signatures.split(' ').count(), 16);
}
