//! A row that cannot be read hurts itself only.

use parcelo::Environment;

use super::{House, START};
use crate::{
    domain::{
        Tenant,
        webhooks::{DeliveryStatus, DisabledBy},
    },
    store::{Damage, EventsToReplay, damage},
};

impl House {
    async fn damage(&self, tenant: Tenant, what: Damage) {
        damage(self.service.store(), tenant, what).await;
    }
}

#[tokio::test]
async fn an_endpoint_that_cannot_be_read_holds_up_nobody_else() {
    let house = House::new().await;
    let receiver = house.receiver(|_| 200).await;
    let mut tenants = Vec::new();
    for account in ["first", "second", "third"] {
        let caller = house.subscriber(account, &receiver.url).await;
        house.create(&caller, &format!("PARCEL-{account}-01")).await;
        tenants.push(caller.tenant());
    }
    house.damage(tenants[0], Damage::Endpoint).await;
    house.deliver_all().await;
    let told = ["second", "third"].map(|account| format!("PARCEL-{account}-01 LABEL_GENERATED"));
    let mut words = receiver.words();
    words.sort();
    assert_eq!(words, told);
    let off = house.service.store().switched_off(tenants[0]).await.unwrap();
    assert_eq!(off, Some((DisabledBy::Unreadable, 1)), "what was for it is held");

    let caller = house.caller("first", Environment::Production).await;
    house.create(&caller, "PARCEL-first-02").await;
    house.subscribe(tenants[0], &receiver.url).await;
    let missed = EventsToReplay::MissedSince(START);
    house.endpoints().replay(tenants[0], missed, START).await.unwrap();
    house.deliver_all().await;
    let words = receiver.words();
    let told = ["01", "02"].map(|number| format!("PARCEL-first-{number} LABEL_GENERATED"));
    assert_eq!(words[2..], told, "set up again, it has what it missed");
}

#[tokio::test]
async fn an_event_that_cannot_be_read_fails_alone_and_once() {
    for what in [Damage::Event, Damage::Parcel] {
        let house = House::new().await;
        let receiver = house.receiver(|_| 200).await;
        let caller = house.subscriber("shop", &receiver.url).await;
        let tenant = caller.tenant();
        for number in 0..5 {
            house.create(&caller, &format!("PARCEL-{number:05}")).await;
        }
        house.damage(tenant, what).await;
        house.deliver_all().await;
        let mut words = receiver.words();
        words.sort();
        let told: Vec<_> =
            (1..5).map(|number| format!("PARCEL-{number:05} LABEL_GENERATED")).collect();
        assert_eq!(words, told, "{what:?}: the others arrive, each once");
        assert_eq!(
            house.service.next_delivery().await.unwrap(),
            None,
            "{what:?}: it is not taken again"
        );
        assert!(house.endpoints().find(tenant).await.unwrap().disabled.is_none(), "{what:?}");
        let log = house.service.store().deliveries(tenant, 10).await.unwrap();
        match what {
            Damage::Event => assert_eq!(log.len(), 4, "the log shows what can be read"),
            Damage::Parcel | Damage::Endpoint | Damage::Key => {
                let failed = &log[4];
                assert_eq!(
                    (failed.delivery_status, failed.attempts.len()),
                    (DeliveryStatus::Failed, 1)
                );
                let error = failed.attempts[0].error.as_deref().unwrap();
                assert!(error.contains("cannot be read"), "{error}");
            }
        }
    }
}
