//! Tests that two servers on one database give the guarantees of a single server, even if their clocks differ by a
//! second.

use std::{collections::HashSet, sync::Arc};

use futures_util::future::join_all;
use parcelo_domain::{Millis, Refusal, audit::Actor, sample};
use parcelo_store::{
    Store,
    test_util::{CutStore, database, run_sql, two_servers},
};
use parcelo_system::{clock::ManualClock, ids::Ids};
use parcelo_types::{Environment, ErrorCode, Language, TrackingNumber};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use super::{
    Caller, KeyedRequest, Service, WriteResponse,
    tests::{caller, key_request, settings},
};
use crate::waiting::until;

/// The start of a day.
const MIDNIGHT: Millis = Millis(20_460 * Millis::DAY);

/// Two servers on one database, each with its own clock.
struct TwoServers {
    services: [Arc<Service>; 2],
    clocks: [Arc<ManualClock>; 2],
    caller: Caller,
}

impl TwoServers {
    /// Starts both with clocks that show `now`. Returns `None` if PostgreSQL is not installed.
    async fn at(now: Millis) -> Option<Self> {
        let [one, other] = two_servers().await?;
        let clocks = [0, 1].map(|_| Arc::new(ManualClock::at(now)));
        let [ids, other_ids] = [1, 2].map(|seed| Arc::new(Ids::seeded(seed)));
        let services = [
            Arc::new(Service::new(one, clocks[0].clone(), ids, settings())),
            Arc::new(Service::new(other, clocks[1].clone(), other_ids, settings())),
        ];
        Some(Self { caller: caller(&services[0]).await, services, clocks })
    }

    /// Sets the clocks to `now`, the second server's `ahead` milliseconds later.
    fn set_clocks(&self, now: Millis, ahead: i64) {
        self.clocks[0].set(now);
        self.clocks[1].set(now.plus(ahead));
    }

    async fn create(&self, server: usize, order: &Value) -> WriteResponse {
        self.services[server].create_order(&self.caller, order, None).await.unwrap()
    }

    /// Sends the same order 64 times at once, to both servers in turn.
    async fn create_64_times(&self, order: &Value) -> Vec<WriteResponse> {
        let barrier = Arc::new(Barrier::new(64));
        let tasks = (0..64).map(|index| {
            let (service, barrier) = (Arc::clone(&self.services[index % 2]), Arc::clone(&barrier));
            let (caller, order) = (self.caller.clone(), order.clone());
            tokio::spawn(async move {
                barrier.wait().await;
                service.create_order(&caller, &order, None).await.unwrap()
            })
        });
        let tasks: Vec<_> = tasks.collect();
        join_all(tasks).await.into_iter().map(Result::unwrap).collect()
    }

    async fn count_parcels(&self) -> usize {
        self.services[0].store().creations().await.unwrap().len()
    }
}

/// Returns an order with an idempotency key. The tracking number is generated unless one is given.
fn order(key: &str, number: Option<&str>) -> Value {
    let mut order = sample::order();
    order["idempotencyKey"] = json!(key);
    order["trackingNumber"] = json!(number);
    order
}

fn count_created(responses: &[WriteResponse]) -> usize {
    responses.iter().filter(|response| matches!(response, WriteResponse::Created(_))).count()
}

fn bodies(responses: &[WriteResponse]) -> HashSet<Vec<u8>> {
    let body = |response: &WriteResponse| match response {
        WriteResponse::Created(body)
        | WriteResponse::Done(body)
        | WriteResponse::Replayed(body) => body.clone(),
    };
    responses.iter().map(body).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_at_midnight_makes_one_parcel_on_two_servers() {
    let Some(servers) = TwoServers::at(MIDNIGHT).await else { return };
    // One server's clock is before midnight, the other's is after it.
    servers.set_clocks(MIDNIGHT.plus(-500), 1_000);
    for round in 0..5 {
        let responses =
            servers.create_64_times(&order(&format!("midnight-key-{round}"), None)).await;
        assert_eq!((count_created(&responses), bodies(&responses).len()), (1, 1), "{round}");
    }
    assert_eq!(servers.count_parcels().await, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_after_24_hours_makes_one_new_parcel() {
    let Some(servers) = TwoServers::at(MIDNIGHT).await else { return };
    for round in 0..5 {
        let order = order(&format!("day-long-key-{round}"), None);
        let first_seen = MIDNIGHT.plus(round * 3 * Millis::DAY);
        servers.set_clocks(first_seen, 0);
        let first = servers.create(0, &order).await;
        // By one server's clock the key is 24 hours old, by the other's it is not.
        servers.set_clocks(first_seen.plus(Millis::DAY - 500), 1_000);
        let responses = servers.create_64_times(&order).await;
        assert_eq!(count_created(&responses), 1, "{round}");
        let all = bodies(&responses);
        let first = bodies(&[first]);
        assert!(all.difference(&first).count() == 1, "{round}: the old response or the new one");
        servers.set_clocks(first_seen.plus(Millis::DAY + 500), 0);
        let later = servers.create_64_times(&order).await;
        assert_eq!(count_created(&later), 0);
        assert_eq!(bodies(&later), &all - &first, "{round}: only the new one from then on");
    }
    assert_eq!(servers.count_parcels().await, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_of_unknown_outcome_is_retried_only_if_safe() {
    let Some(cut) = CutStore::open().await else { return };
    let (clock, ids) = (Arc::new(ManualClock::at(MIDNIGHT)), Arc::new(Ids::seeded(1)));
    let service = Service::new(cut.store.clone(), clock, ids, settings());
    let caller = caller(&service).await;
    let refused = |refusal: Refusal| (refusal.code, refusal.retry_after);
    let order = order("a-key-in-doubt", Some("SB-STUCK-0001"));
    cut.cut_next_commit();
    let response = service.create_order(&caller, &order, None).await.map(drop).map_err(refused);
    assert_eq!(response, Err((ErrorCode::IdempotencyInProgress, Some(1))));
    let again = service.create_order(&caller, &order, None).await.unwrap();
    assert!(matches!(again, WriteResponse::Replayed(_)), "the first request was committed");
    // A reprint without a key cannot be repeated: each one makes another version.
    cut.cut_next_commit();
    let tenant = caller.tenant();
    let refusal = service.reprint_parcel(tenant, "SB-STUCK-0001").await.unwrap_err();
    assert!(refusal.text(Language::En).contains("check what it was meant to change"));
    assert_eq!(refused(refusal), (ErrorCode::InternalError, None));
    // A manifest can be repeated without a key: each air waybill has one.
    let manifest = json!({ "awbNumber": "176-12345675", "trackingNumbers": ["SB-STUCK-0001"] });
    let submit = || {
        let request = KeyedRequest { body: &manifest, header_key: None, request_id: "req_1" };
        service.submit_manifest(&caller, request)
    };
    cut.cut_next_commit();
    let response = submit().await.map(drop).map_err(refused);
    assert_eq!(response, Err((ErrorCode::ServiceUnavailable, Some(1))));
    assert!(matches!(submit().await, Ok(WriteResponse::Done(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_revoked_even_if_a_failover_lost_its_last_write() {
    let Some(address) = database() else { return };
    let store = Store::connect(address.clone(), [9; 32]).await.unwrap();
    let (settings, ids) = (settings(), Arc::new(Ids::seeded(1)));
    let service = Service::new(store, Arc::new(ManualClock::at(MIDNIGHT)), ids, settings);
    let (key, record) =
        service.issuer(Actor::Server).issue_api_key(key_request(), MIDNIGHT).await.unwrap();
    let accepts =
        async || service.authenticate(Environment::Sandbox, Some(key.secret())).await.is_ok();
    assert!(accepts().await);
    // The standby that took over lacks the last write of a key, and gives its number to the next one.
    run_sql(
        &address,
        "UPDATE api_keys SET changed = changed - 1; SELECT pg_terminate_backend(pid) \
         FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
    let revoke = async || service.revoke_key(&record.id, Actor::Server).await.is_ok();
    until("it is revoked", revoke).await;
    until("it is refused", async || !accepts().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_is_forgotten_while_clocks_disagree() {
    let Some(address) = database() else { return };
    let store = Store::connect(address, [9; 32]).await.unwrap();
    let (settings, ids) = (settings(), Arc::new(Ids::seeded(1)));
    let clock = Arc::new(ManualClock::at(MIDNIGHT));
    let service = Service::new(store.clone(), clock.clone(), ids, settings);
    let caller = caller(&service).await;
    let order = order("a-key-of-a-day", None);
    service.create_order(&caller, &order, None).await.unwrap();
    // The clock of the database's machine jumps by 25 hours, and the server follows it.
    let jump = 25 * Millis::HOUR;
    let shared = store.shared_clock().unwrap();
    let machine = shared.read_machine();
    shared.record_measurement(machine, machine.wall.plus(jump), machine);
    clock.set(MIDNIGHT.plus(jump));
    service.purge().await;
    let again = service.create_order(&caller, &order, None).await.unwrap();
    assert!(matches!(again, WriteResponse::Replayed(_)), "one of the two clocks is wrong");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tickers_of_two_servers_take_each_step_once() {
    let Some(servers) = TwoServers::at(MIDNIGHT).await else { return };
    let number = |index: usize| format!("SB-SUCCESS-{index:04}");
    let orders: Vec<_> = (0..300)
        .map(|index| order(&format!("order-of-parcel-{index}"), Some(&number(index))))
        .collect();
    join_all(orders.iter().enumerate().map(|(index, order)| servers.create(index % 2, order)))
        .await;
    for minutes in [5, 10, 15, 20] {
        servers.set_clocks(MIDNIGHT.plus(minutes * Millis::MINUTE + 1_000), -1_000);
        let [one, other] = &servers.services;
        let fired = tokio::join!(one.take_due_steps(), other.take_due_steps());
        let all: Vec<_> = [fired.0.unwrap(), fired.1.unwrap()].concat();
        let parcels: HashSet<_> = all.iter().map(|fired| fired.tracking_number.as_str()).collect();
        assert_eq!((all.len(), parcels.len()), (300, 300), "after {minutes} minutes");
    }
    let store = servers.services[1].store();
    for index in 0..300 {
        let number = TrackingNumber::parse(&number(index)).unwrap();
        let parcel = store.parcel(Environment::Sandbox, &number).await.unwrap().unwrap();
        let events = store.events(&parcel).await.unwrap();
        let sequences: Vec<_> = events.iter().map(|event| event.sequence).collect();
        assert_eq!(sequences, [1, 2, 3, 4, 5, 6], "{number}: each step has one event");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_uses_of_two_servers_are_added_up() {
    let Some(servers) = TwoServers::at(MIDNIGHT).await else { return };
    let next_day = MIDNIGHT.plus(Millis::DAY);
    for _ in 0..20 {
        for (service, requests) in servers.services.iter().zip([3, 4]) {
            (0..requests).for_each(|_| service.count_legacy_use(&servers.caller, MIDNIGHT));
            service.count_legacy_use(&servers.caller, next_day);
        }
        let saved =
            join_all(servers.services.iter().map(|service| service.save_legacy_uses())).await;
        saved.into_iter().for_each(Result::unwrap);
    }
    let uses = servers.services[0].store().legacy_uses().await.unwrap();
    let requests: Vec<_> = uses.iter().map(|day| day.requests).collect();
    assert_eq!(requests, [40, 140], "the latest day first");
}

#[tokio::test(flavor = "multi_thread")]
async fn purges_of_two_servers_at_once_delete_everything_once() {
    let Some(servers) = TwoServers::at(MIDNIGHT).await else { return };
    let orders: Vec<_> =
        (0..450).map(|index| order(&format!("order-of-parcel-{index}"), None)).collect();
    join_all(orders.iter().enumerate().map(|(index, order)| servers.create(index % 2, order)))
        .await;
    servers.set_clocks(MIDNIGHT.plus(31 * Millis::DAY), 1_000);
    let recent = order("order-of-today", None);
    servers.create(0, &recent).await;
    let [one, other] = &servers.services;
    let mut deleted = (0, 0);
    // A purge ends when the other server has taken its page; the next call continues.
    until("all are deleted", async || {
        let both = tokio::join!(one.purge_sandboxes(), other.purge_sandboxes());
        for purged in [both.0.unwrap(), both.1.unwrap()] {
            deleted = (deleted.0 + purged.parcels, deleted.1 + purged.idempotency_keys);
        }
        deleted.0 >= 450 && deleted.1 >= 450
    })
    .await;
    assert_eq!(deleted, (450, 450));
    assert_eq!(servers.count_parcels().await, 1, "today's parcel");
    let counted = one.store().activity(servers.caller.tenant(), 0).await.unwrap();
    assert_eq!(counted.iter().map(|day| day.parcels).sum::<u64>(), 1, "and counted once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_by_two_servers_spares_later_orders() {
    let Some(servers) = TwoServers::at(MIDNIGHT).await else { return };
    let number = |index: usize| format!("SB-RESET-{index:05}");
    let orders = |key: &str| -> Vec<_> {
        (0..300).map(|index| order(&format!("{key}-{index}"), Some(&number(index)))).collect()
    };
    let before = orders("before-the-reset");
    join_all(before.iter().enumerate().map(|(index, order)| servers.create(index % 2, order)))
        .await;
    let [one, other] = &servers.services;
    assert_eq!(one.reset_sandbox(&servers.caller).await.unwrap().deleted.parcels, 300);
    assert_eq!(servers.count_parcels().await, 0);
    // The other server finds the reset unfinished and erases too, while it takes orders with the same numbers.
    other.store().resume_resets().await.unwrap();
    let after = orders("after-the-reset");
    let responses =
        join_all(after.iter().enumerate().map(|(index, order)| servers.create(index % 2, order)))
            .await;
    assert_eq!(count_created(&responses), 300);
    other.store().resume_resets().await.unwrap();
    assert_eq!(servers.count_parcels().await, 300);
    let counted = other.store().activity(servers.caller.tenant(), 0).await.unwrap();
    assert_eq!(counted.iter().map(|day| day.parcels).sum::<u64>(), 300);
}
