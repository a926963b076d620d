//! A delivery on its way is known by its event, its lease and its tenant: never by a row's number, which
//! the database gives away again after a reset.

use parcelo::{Awb, Environment};
use serde_json::json;
use ulid::Ulid;

use super::{House, OLD, START};
use crate::{
    clock::Millis,
    domain::{
        Changes, NewManifest, Op, Tenant,
        webhooks::{AllowedHosts, DeliveryStatus, Kind, Kinds, OutboxEvent},
    },
    ids::named,
    service::EndpointRequest,
    store::CommitOutcome,
};

impl House {
    async fn attempts(&self, tenant: Tenant) -> usize {
        let logged = self.service.store().deliveries(tenant, 10).await.unwrap();
        logged.iter().map(|logged| logged.attempts.len()).sum()
    }
}

#[tokio::test]
async fn an_answer_from_before_a_reset_touches_nobody_elses_event() {
    for status in [200, 410, 500] {
        let house = House::new().await;
        let ours = house.caller("ours", Environment::Sandbox).await.tenant();
        let theirs = house.subscriber("theirs", OLD).await.tenant();
        house.subscribe(ours, OLD).await;
        house.endpoints().test(ours, START).await.unwrap();
        let late = house.take(ours).await;
        house.service.store().reset(ours).await.unwrap();
        house.endpoints().test(theirs, START).await.unwrap();
        let own = house.take(theirs).await;

        house.answer(late, status).await;
        assert_eq!(house.standings(theirs).await, [DeliveryStatus::Ready], "{status}");
        assert_eq!(house.attempts(theirs).await, 0, "{status}: the answer is in a stranger's log");
        assert!(house.endpoints().find(theirs).await.unwrap().disabled.is_none(), "{status}");
        house.answer(own, 200).await;
        assert_eq!(house.standings(theirs).await, [DeliveryStatus::Delivered], "{status}");
        assert_eq!(house.attempts(theirs).await, 1, "{status}");
    }
}

/// The mock's ids follow from its seed: after a reset they can come again.
#[tokio::test]
async fn an_answer_from_before_a_reset_does_not_settle_the_same_event_come_again() {
    for status in [200, 410, 500] {
        let house = House::new().await;
        let tenant = house.caller("shop", Environment::Sandbox).await.tenant();
        house.subscribe(tenant, OLD).await;
        let event = Ulid::from_parts(1, 7);
        let told =
            OutboxEvent { event, kind: Kind::Test, sequence: None, previous: None, at: START };
        house.service.store().enqueue(tenant, told.clone()).await.unwrap();
        let late = house.take(tenant).await;
        house.service.store().reset(tenant).await.unwrap();
        house.service.store().enqueue(tenant, told).await.unwrap();
        let own = house.take(tenant).await;

        house.answer(late, status).await;
        assert_eq!(house.standings(tenant).await, [DeliveryStatus::Ready], "{status}");
        assert_eq!(house.attempts(tenant).await, 0, "{status}");
        house.answer(own, 200).await;
        assert_eq!(house.standings(tenant).await, [DeliveryStatus::Delivered], "{status}");
    }
}

fn manifest(tenant: Tenant, at: Millis, id: u128) -> NewManifest {
    let id = Ulid::from_parts(1, id);
    let awb = Awb::parse("176-12345675").unwrap();
    let document = json!({
        "manifestId": named("man", id), "awbNumber": awb, "status": "SUBMITTED", "parcelCount": 0,
        "totalWeightKg": 0, "declaredValues": [], "destinationCountries": [], "trackingNumbers": [],
        "submittedAt": "2026-01-10T15:05:00.000Z"
    });
    let document = document.to_string().into_bytes();
    NewManifest { id, tenant, awb, submitted_at: at, document, parcels: Vec::new() }
}

impl House {
    async fn submit(&self, tenant: Tenant, id: u128) {
        let now = self.service.now();
        let ops = vec![Op::InsertManifest(Box::new(manifest(tenant, now, id)))];
        let changes = Changes { now, idempotency_record: None, expect: Vec::new(), ops };
        assert_eq!(self.service.store().commit(changes).await, CommitOutcome::Committed);
    }

    async fn hears_of_manifests(&self, tenant: Tenant, url: &str) {
        let (url, kinds) = (url.to_owned(), Kinds::named(["manifest.submitted"]).unwrap());
        let request = EndpointRequest { tenant, url, kinds, reach: AllowedHosts::Everywhere };
        self.endpoints().set(request, START).await.unwrap();
    }
}

#[tokio::test]
async fn an_event_of_a_deleted_manifest_never_tells_of_the_one_in_its_place() {
    let house = House::new().await;
    let receiver = house.receiver(|_| 200).await;
    let ours = house.caller("ours", Environment::Sandbox).await.tenant();
    let theirs = house.caller("theirs", Environment::Production).await.tenant();
    for (tenant, id) in [(ours, 1), (theirs, 2)] {
        house.hears_of_manifests(ours, &receiver.url).await;
        house.submit(tenant, id).await;
        house.clock.set(house.service.now().plus(30 * Millis::DAY));
        house.service.purge_sandboxes().await.unwrap();
    }
    house.deliver_all().await;
    let told: Vec<_> = receiver.seen().into_iter().map(|(_, _, body)| body).collect();
    assert_eq!(told, [] as [axum::body::Bytes; 0]);
    assert_eq!(house.service.next_delivery().await.unwrap(), None, "there is nothing left to tell");
}
