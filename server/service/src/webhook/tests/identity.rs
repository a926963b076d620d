//! Tests that a delivery in flight is identified by its event, its lease and its tenant, never by a row id, which
//! the database may reuse after a reset.

use parcelo_domain::{
    Changes, Millis, NewManifest, StoreOp, Tenant,
    ids::public_id,
    webhooks::{AllowedHosts, DeliveryStatus, OutboxEvent, WebhookEventKind, WebhookEventKinds},
};
use parcelo_store::CommitOutcome;
use parcelo_types::{Awb, Environment};
use serde_json::json;
use ulid::Ulid;

use super::{OLD, START, TestService};
use crate::service::{Delivery, EndpointRequest};

impl TestService {
    async fn attempts(&self, tenant: Tenant) -> usize {
        let logged = self.service.store().deliveries(tenant, 10).await.unwrap();
        logged.iter().map(|logged| logged.attempts.len()).sum()
    }

    /// Checks that a response from before a reset does not settle the tenant's event from after it.
    async fn assert_late_response_is_ignored(
        &self,
        tenant: Tenant,
        (late, own): (Delivery, Delivery),
        status: u16,
    ) {
        self.settle_with_status(late, status).await;
        assert_eq!(self.statuses(tenant).await, [DeliveryStatus::Ready], "{status}");
        assert_eq!(self.attempts(tenant).await, 0, "{status}: the late response is not in its log");
        assert!(self.disabled(tenant).await.is_none(), "{status}");
        self.settle_with_status(own, 200).await;
        assert_eq!(self.statuses(tenant).await, [DeliveryStatus::Delivered], "{status}");
        assert_eq!(self.attempts(tenant).await, 1, "{status}");
    }
}

#[tokio::test]
async fn a_response_from_before_a_reset_does_not_settle_others() {
    for status in [200, 410, 500] {
        let test = TestService::new().await;
        let ours = test.caller("ours", Environment::Sandbox).await.tenant();
        let theirs = test.subscriber("theirs", OLD).await.tenant();
        test.subscribe(ours, OLD).await;
        test.endpoints().send_test(ours, START).await.unwrap();
        let late = test.lease_one(ours).await;
        test.service.store().reset(ours).await.unwrap();
        test.endpoints().send_test(theirs, START).await.unwrap();
        let own = test.lease_one(theirs).await;
        test.assert_late_response_is_ignored(theirs, (late, own), status).await;
    }
}

/// The mock's ids derive from its seed, so they can repeat after a reset.
#[tokio::test]
async fn a_response_from_before_a_reset_does_not_settle_new_events() {
    for status in [200, 410, 500] {
        let test = TestService::new().await;
        let tenant = test.caller("shop", Environment::Sandbox).await.tenant();
        test.subscribe(tenant, OLD).await;
        let (event, kind) = (Ulid::from_parts(1, 7), WebhookEventKind::Test);
        let event = OutboxEvent { event, kind, sequence: None, previous: None, at: START };
        test.service.store().enqueue(tenant, event.clone(), None).await.unwrap();
        let late = test.lease_one(tenant).await;
        test.service.store().reset(tenant).await.unwrap();
        test.service.store().enqueue(tenant, event, None).await.unwrap();
        let own = test.lease_one(tenant).await;
        test.assert_late_response_is_ignored(tenant, (late, own), status).await;
    }
}

fn manifest(tenant: Tenant, at: Millis, id: u128) -> NewManifest {
    let id = Ulid::from_parts(1, id);
    let awb = Awb::parse("176-12345675").unwrap();
    let document = json!({
        "manifestId": public_id("man", id), "awbNumber": awb, "status": "SUBMITTED", "parcelCount": 0,
        "totalWeightKg": 0, "declaredValues": [], "destinationCountries": [], "trackingNumbers": [],
        "submittedAt": "2026-01-10T15:05:00.000Z"
    });
    let document = document.to_string().into_bytes();
    NewManifest { id, tenant, awb, submitted_at: at, document, parcels: Vec::new() }
}

impl TestService {
    async fn submit(&self, tenant: Tenant, id: u128) {
        let now = self.service.now();
        let ops = vec![StoreOp::InsertManifest(Box::new(manifest(tenant, now, id)))];
        let changes =
            Changes { now, trace: None, idempotency_record: None, expect: Vec::new(), ops };
        assert_eq!(self.service.store().commit(changes).await, CommitOutcome::Committed);
    }

    async fn subscribe_to_manifests(&self, tenant: Tenant, url: &str) {
        let (url, kinds) =
            (url.to_owned(), WebhookEventKinds::from_codes(["manifest.submitted"]).unwrap());
        let request = EndpointRequest { tenant, url, kinds, allowed_hosts: AllowedHosts::Any };
        self.endpoints().set(request, START).await.unwrap();
    }
}

#[tokio::test]
async fn an_event_of_a_deleted_manifest_never_carries_another() {
    let test = TestService::new().await;
    let receiver = test.start_receiver(|_| 200).await;
    let ours = test.caller("ours", Environment::Sandbox).await.tenant();
    let theirs = test.caller("theirs", Environment::Production).await.tenant();
    for (tenant, id) in [(ours, 1), (theirs, 2)] {
        test.subscribe_to_manifests(ours, &receiver.url).await;
        test.submit(tenant, id).await;
        test.clock.set(test.service.now().plus(30 * Millis::DAY));
        test.service.purge_sandboxes().await.unwrap();
    }
    test.deliver_all().await;
    let bodies: Vec<_> = receiver.received().into_iter().map(|(_, _, body)| body).collect();
    assert_eq!(bodies, [] as [axum::body::Bytes; 0]);
    assert_eq!(test.service.next_delivery_due().await.unwrap(), None, "nothing is left to send");
}
