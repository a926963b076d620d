//! Tests that an unreadable row does not affect others.

use parcelo_domain::{
    Tenant,
    webhooks::{DeliveryStatus, DisabledBy},
};
use parcelo_store::{
    EventsToReplay,
    test_util::{Damage, damage},
};
use parcelo_types::Environment;

use super::{START, TestService};

impl TestService {
    async fn damage(&self, tenant: Tenant, what: Damage) {
        damage(self.service.store(), tenant, what).await;
    }
}

#[tokio::test]
async fn an_unreadable_endpoint_does_not_delay_others() {
    let test = TestService::new().await;
    let receiver = test.start_receiver(|_| 200).await;
    let mut tenants = Vec::new();
    for account in ["first", "second", "third"] {
        let caller = test.subscriber(account, &receiver.url).await;
        test.create(&caller, &format!("PARCEL-{account}-01")).await;
        tenants.push(caller.tenant());
    }
    test.damage(tenants[0], Damage::Endpoint).await;
    test.deliver_all().await;
    let expected =
        ["second", "third"].map(|account| format!("PARCEL-{account}-01 LABEL_GENERATED"));
    let mut statuses = receiver.statuses();
    statuses.sort();
    assert_eq!(statuses, expected);
    let off = test.service.store().disabled_endpoint(tenants[0]).await.unwrap();
    assert_eq!(off, Some((DisabledBy::Unreadable, 1)), "its event is held");

    let caller = test.caller("first", Environment::Production).await;
    test.create(&caller, "PARCEL-first-02").await;
    test.subscribe(tenants[0], &receiver.url).await;
    let missed = EventsToReplay::MissedSince(START);
    test.endpoints().replay(tenants[0], missed, START).await.unwrap();
    test.deliver_all().await;
    let statuses = receiver.statuses();
    let expected = ["01", "02"].map(|number| format!("PARCEL-first-{number} LABEL_GENERATED"));
    assert_eq!(statuses[2..], expected, "once set up again, it gets the events that it missed");
}

#[tokio::test]
async fn an_unreadable_event_fails_alone_and_once() {
    for what in [Damage::Event, Damage::Parcel] {
        let test = TestService::new().await;
        let receiver = test.start_receiver(|_| 200).await;
        let caller = test.subscriber("shop", &receiver.url).await;
        let tenant = caller.tenant();
        for number in 0..5 {
            test.create(&caller, &format!("PARCEL-{number:05}")).await;
        }
        test.damage(tenant, what).await;
        test.deliver_all().await;
        let mut statuses = receiver.statuses();
        statuses.sort();
        let expected: Vec<_> =
            (1..5).map(|number| format!("PARCEL-{number:05} LABEL_GENERATED")).collect();
        assert_eq!(statuses, expected, "{what:?}: the others arrive, each once");
        let due = test.service.next_delivery_due().await.unwrap();
        assert_eq!(due, None, "{what:?}: it is not leased again");
        assert!(test.disabled(tenant).await.is_none(), "{what:?}");
        let log = test.service.store().deliveries(tenant, 10).await.unwrap();
        match what {
            Damage::Event => assert_eq!(log.len(), 4, "the log shows the readable ones"),
            Damage::Parcel | Damage::Endpoint | Damage::Key => {
                let failed = &log[4];
                assert_eq!(failed.delivery_status, DeliveryStatus::Failed);
                assert_eq!(failed.attempts.len(), 1);
                let error = failed.attempts[0].error.as_deref().unwrap();
                assert!(error.contains("cannot be read"), "{error}");
            }
        }
    }
}
