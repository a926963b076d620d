//! The outbox of several servers: leases follow the database's clock, no event is stranded, and upgrades keep all
//! events.

use futures_util::{FutureExt as _, future::join_all};
use parcelo_domain::{
    Millis, NewManifest, State, StoreOp,
    ids::public_id,
    sample::TEST_AUTHOR,
    webhooks::{
        DeliveryStatus, DisabledBy, Endpoint, EventSubject, LEASE_MILLIS, OutboxEvent,
        RetryDecision, WebhookEventKind, WebhookEventKinds,
    },
};
use parcelo_system::clock::{Clock, SystemClock};
use parcelo_types::Awb;

use super::held::count_deadlocks;
use crate::postgres::test_util::cluster::{
    client, database, empty_database, new_store, run_sql, two_servers, until_blocked, with_endpoint,
};
use crate::{
    CommitOutcome, EventsToReplay, Settled, Store,
    postgres::{self, Address},
    tests::conformance::{
        NOW, SECRET, apply, changes_to, commit, create, create_parcel, move_parcel, sandbox,
        webhooks::{endpoint, lease, outcome},
    },
    waiting::{LONG, pause, wait_for_value},
};

/// Opens servers whose leases begin and end by the database's clock, as in production.
async fn servers(address: &Address, count: usize) -> Vec<Store> {
    let mut servers = Vec::new();
    for _ in 0..count {
        let engine =
            postgres::Store::connect(address.clone(), SECRET, postgres::READERS).await.unwrap();
        engine.lease_by_database_clock();
        servers.push(Store::from(engine));
    }
    servers
}

async fn enqueue(store: &Store, event: u64, at: Millis) {
    let event = ulid::Ulid::from_parts(1, event.into());
    let test =
        OutboxEvent { event, kind: WebhookEventKind::Test, sequence: None, previous: None, at };
    store.enqueue(sandbox(1), test, None).await.unwrap();
}

/// Makes all leases older, as if time had passed on the database's clock.
fn age_leases(address: &Address, millis: i64) {
    run_sql(address, &format!("UPDATE outbox SET lease_until = lease_until - {millis}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_clock_neither_steals_nor_keeps_leases() {
    for wrong in [0, Millis::DAY, -Millis::DAY] {
        let Some(address) = database() else { return };
        let [right, skewed] = servers(&address, 2).await.try_into().unwrap();
        let now = SystemClock.now();
        let tenant = sandbox(1);
        right.set_endpoint(endpoint(tenant), &TEST_AUTHOR).await.unwrap();
        for event in 0..4 {
            enqueue(&right, event, now.plus(-2 * Millis::DAY)).await;
        }
        let right_leases = lease(&right, tenant, 2, now).await;
        let skewed_leases = lease(&skewed, tenant, 9, now.plus(wrong)).await;
        assert_eq!(
            (right_leases.len(), skewed_leases.len()),
            (2, 2),
            "{wrong}: it leases free events"
        );
        // Half of the lease time remains, enough for the rest of this test.
        age_leases(&address, LEASE_MILLIS / 2);
        assert!(lease(&skewed, tenant, 9, now.plus(wrong)).await.is_empty(), "{wrong}");
        assert!(lease(&right, tenant, 9, now).await.is_empty(), "{wrong}");
        age_leases(&address, LEASE_MILLIS / 2 + 1);
        assert_eq!(lease(&right, tenant, 9, now).await.len(), 4, "{wrong}: a minute for each");
        for late in skewed_leases {
            let settled = right.settle(late, outcome(now, 410), RetryDecision::Gone).await;
            assert_eq!(settled.unwrap(), Settled::Late, "{wrong}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranded_event_is_found_and_sent() {
    let Some((store, _, address)) = with_endpoint().await else { return };
    let tenant = sandbox(1);
    let parcel = create_parcel(&store, tenant, "SB-STRANDED-01").await;
    commit(&store, changes_to(&parcel, vec![move_parcel(&parcel, State::InTransit, 5)])).await;
    // As if both had been written at the same time without the lock.
    run_sql(&address, "UPDATE outbox SET state = 2, due = NULL WHERE state = 1");
    assert!(lease(&store, tenant, 9, NOW.plus(9)).await.is_empty());
    assert_eq!(store.release_stranded(NOW.plus(9)).await.unwrap(), 1);
    assert_eq!(store.release_stranded(NOW.plus(9)).await.unwrap(), 0);
    assert_eq!(lease(&store, tenant, 9, NOW.plus(9)).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settlement_waits_for_a_change_of_its_parcel() {
    let Some((store, other, address)) = with_endpoint().await else { return };
    let tenant = sandbox(1);
    create_parcel(&store, tenant, "SB-CHANGED-001").await;
    let leased = lease(&store, tenant, 1, NOW).await.remove(0);
    // Another server adds an event, which waits for the leased one. A settlement that did not see it would strand it.
    other.batch_execute("BEGIN; SELECT FROM parcels FOR NO KEY UPDATE").await.unwrap();
    let watcher = client(&address).await;
    let settling = tokio::spawn({
        let store = store.clone();
        async move { store.settle(leased, outcome(NOW, 200), RetryDecision::Delivered).await }
    });
    until_blocked(&watcher, 1, || settling.is_finished()).await;
    assert!(!settling.is_finished(), "it did not wait");
    other.batch_execute("COMMIT").await.unwrap();
    assert_eq!(settling.await.unwrap().unwrap(), Settled::Counted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_written_without_touching_an_index() {
    let Some(address) = database() else { return };
    let [store] = servers(&address, 1).await.try_into().unwrap();
    let tenant = sandbox(1);
    store.set_endpoint(endpoint(tenant), &TEST_AUTHOR).await.unwrap();
    let now = SystemClock.now();
    for event in 0..50 {
        enqueue(&store, event, now.plus(-9)).await;
    }
    assert_eq!(lease(&store, tenant, 50, now).await.len(), 50);
    store.close().await;
    let client = client(&address).await;
    let counted = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables \
         WHERE relname = 'outbox_undone'";
    // Connections report their statistics when they end.
    let counts = wait_for_value("all updates are counted", async || {
        let row = client.query_one(counted, &[]).await.unwrap();
        let [all, hot] = [0, 1].map(|column| row.get::<_, i64>(column));
        (all >= 50).then_some((all, hot))
    });
    let (all, hot) = counts.await;
    // Some updates do not fit into their page, and so write the indexes.
    assert!(hot * 10 >= all * 8, "{hot} of {all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn settling_many_tenants_on_two_servers_never_deadlocks() {
    let Some((store, address)) = new_store().await else { return };
    let stores = [store, Store::connect(address.clone(), SECRET).await.unwrap()];
    let tenants: Vec<_> = (1..=6).map(sandbox).collect();
    for tenant in &tenants {
        stores[0].set_endpoint(endpoint(*tenant), &TEST_AUTHOR).await.unwrap();
    }
    let mut leases = [Vec::new(), Vec::new()];
    for (place, tenant) in tenants.iter().enumerate() {
        for server in 0..2 {
            create_parcel(&stores[server], *tenant, &format!("SB-MANY-{place}-{server}")).await;
            leases[server].extend(lease(&stores[server], *tenant, 1, NOW).await);
        }
    }
    run_sql(&address, "INSERT INTO webhook_successes SELECT tenant, 0 FROM webhook_endpoints");
    // The servers settle in opposite orders, and each reaches the middle before either continues.
    leases[1].reverse();
    let other = client(&address).await;
    let middle = "BEGIN; SELECT FROM webhook_successes ORDER BY tenant OFFSET 2 LIMIT 2 FOR UPDATE";
    other.batch_execute(middle).await.unwrap();
    let pauses = [stores[0].pause_writes().await, stores[1].pause_writes().await];
    let settles = leases.into_iter().zip(&stores).flat_map(|(leases, store)| {
        let settle = move |lease| store.settle(lease, outcome(NOW, 200), RetryDecision::Delivered);
        leases.into_iter().map(settle)
    });
    let mut settles = Box::pin(join_all(settles));
    assert!((&mut settles).now_or_never().is_none(), "they wait behind the pauses");
    let watcher = client(&address).await;
    drop(pauses);
    tokio::join!(settles, async {
        until_blocked(&watcher, 2, || false).await;
        other.batch_execute("COMMIT").await.unwrap();
    })
    .0
    .into_iter()
    .for_each(|settled| assert_eq!(settled.unwrap(), Settled::Counted));
    drop((other, watcher));
    stores.into_iter().for_each(drop);
    assert_eq!(count_deadlocks(&client(&address).await).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_newer_than_a_lease_number_waits_for_the_next() {
    let Some((store, _, address)) = with_endpoint().await else { return };
    let tenant = sandbox(1);
    enqueue(&store, 1, NOW).await;
    // As if two other servers had drawn numbers between this one's number and its search.
    run_sql(&address, "UPDATE outbox SET after_lease = after_lease + 2");
    assert!(lease(&store, tenant, 9, NOW).await.is_empty());
    let mut leased = lease(&store, tenant, 9, NOW).await;
    while leased.is_empty() {
        leased = lease(&store, tenant, 9, NOW).await;
    }
    let settled =
        store.settle(leased.remove(0), outcome(NOW, 500), RetryDecision::Unreadable).await;
    assert_eq!(settled.unwrap(), Settled::Counted, "its answer matches its lease");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivered_event_is_not_held_by_disabling_its_endpoint() {
    let Some((store, other, address)) = with_endpoint().await else { return };
    let tenant = sandbox(1);
    enqueue(&store, 1, NOW).await;
    // Another server settles it, and has not committed yet when this one holds the rest.
    other.batch_execute("BEGIN; UPDATE outbox SET state = 2, due = NULL").await.unwrap();
    let watcher = client(&address).await;
    let disabling = tokio::spawn({
        let store = store.clone();
        async move { store.disable_endpoint(tenant, DisabledBy::Operator, &TEST_AUTHOR).await }
    });
    until_blocked(&watcher, 1, || false).await;
    other.batch_execute("COMMIT").await.unwrap();
    disabling.await.unwrap().unwrap();
    let log = store.deliveries(tenant, 9).await.unwrap();
    assert_eq!(log[0].delivery_status, DeliveryStatus::Delivered);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_held_while_it_is_released_stays_held() {
    let Some((store, other, address)) = with_endpoint().await else { return };
    let tenant = sandbox(1);
    let parcel = create_parcel(&store, tenant, "SB-HELD-000001").await;
    let first = lease(&store, tenant, 1, NOW).await.remove(0);
    commit(&store, changes_to(&parcel, vec![move_parcel(&parcel, State::InTransit, 5)])).await;
    // Another server holds the waiting events, and has not committed yet when this one settles the earlier event.
    other.batch_execute("BEGIN; UPDATE outbox SET state = 4 WHERE state = 0").await.unwrap();
    let watcher = client(&address).await;
    let settling = tokio::spawn({
        let store = store.clone();
        async move { store.settle(first, outcome(NOW, 200), RetryDecision::Delivered).await }
    });
    until_blocked(&watcher, 1, || false).await;
    other.batch_execute("COMMIT").await.unwrap();
    settling.await.unwrap().unwrap();
    let log = store.deliveries(tenant, 9).await.unwrap();
    let statuses: Vec<_> = log.iter().map(|event| event.delivery_status).collect();
    assert_eq!(statuses, [DeliveryStatus::Held, DeliveryStatus::Delivered]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_simultaneous_replays_send_each_event_again_once() {
    let Some([one, other]) = two_servers().await else { return };
    let tenant = sandbox(1);
    one.set_endpoint(endpoint(tenant), &TEST_AUTHOR).await.unwrap();
    for event in 0..20 {
        enqueue(&one, event, NOW).await;
    }
    one.disable_endpoint(tenant, DisabledBy::Operator, &TEST_AUTHOR).await.unwrap();
    one.enable_endpoint(tenant, &TEST_AUTHOR).await.unwrap();
    let missed = EventsToReplay::MissedSince(Millis(0));
    let both = tokio::join!(one.replay(tenant, missed, NOW), other.replay(tenant, missed, NOW));
    assert_eq!(both.0.unwrap() + both.1.unwrap(), 20);
    assert_eq!(lease(&one, tenant, 99, NOW).await.len(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_reused_during_an_erasure_keeps_its_new_record() {
    let Some([one, other]) = two_servers().await else { return };
    let tenant = sandbox(1);
    let replays = |outcomes: &[CreateOutcome]| {
        outcomes.iter().filter(|outcome| **outcome == CreateOutcome::Replayed).count()
    };
    for round in 0..3 {
        let [first, again] = [format!("first-{round}"), format!("again-{round}")];
        assert_eq!(replays(&create_orders(&one, &first).await), 0);
        one.reset(tenant).await.unwrap();
        // Right after the reset, first on the server that is not erasing, then on the one that is.
        assert_eq!(replays(&create_orders(&other, &again).await), 0);
        other.resume_resets().await.unwrap();
        assert_eq!(replays(&create_orders(&one, "later").await), 200);
        assert_eq!(replays(&create_orders(&one, &again).await), 0, "each key has the new record");
        one.reset(tenant).await.unwrap();
    }
}

#[derive(Debug, PartialEq, Eq)]
enum CreateOutcome {
    /// The order stored under the key is this caller's.
    Created,
    /// The order stored under the key is another caller's.
    Replayed,
}

/// Sends 200 orders at once, each with a different key and with the answer `body`, and each again until its outcome is
/// known, as callers do: a slow machine answers some of them too late.
async fn create_orders(store: &Store, body: &str) -> Vec<CreateOutcome> {
    let create_order = async |number: u32| loop {
        let mut changes = create(sandbox(1), &format!("SB-AGAIN-{number:05}"), number);
        changes.idempotency_record.as_mut().unwrap().body = body.as_bytes().to_vec();
        match store.commit(changes).await {
            CommitOutcome::Committed => break CreateOutcome::Created,
            CommitOutcome::IdempotencyTaken(record) if record.body == body.as_bytes() => {
                break CreateOutcome::Created;
            }
            CommitOutcome::IdempotencyTaken(_) => break CreateOutcome::Replayed,
            CommitOutcome::Busy => pause().await,
            other => panic!("{other:?}"),
        }
    };
    tokio::time::timeout(LONG, join_all((0..200).map(create_order))).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_parcel_leaves_no_concurrently_added_event() {
    let Some((store, address)) = new_store().await else { return };
    let tenant = sandbox(1);
    create_parcel(&store, tenant, "SB-ORPHAN-0001").await;
    let other = client(&address).await;
    // Another server is moving the parcel while it is reset and erased.
    other.batch_execute("BEGIN; SELECT 1 FROM parcels FOR NO KEY UPDATE").await.unwrap();
    store.reset(tenant).await.unwrap();
    let watcher = client(&address).await;
    until_blocked(&watcher, 1, || false).await;
    let adds = "INSERT INTO events SELECT id, 3, 1, 0, 'Quito, EC', NULL FROM parcels; COMMIT";
    other.batch_execute(adds).await.unwrap();
    let remaining = "SELECT (SELECT count(*) FROM parcels), count(*) FROM events";
    let events = wait_for_value("all is erased", async || {
        let row = watcher.query_one(remaining, &[]).await.unwrap();
        (row.get::<_, i64>(0) == 0).then(|| row.get::<_, i64>(1))
    });
    assert_eq!(events.await, 0);
}

/// The statements that create schema 1.
const SCHEMA_1: &str = include_str!("../migrations/0001_init.sql");
/// Inserts an event in each state into a database of schema 1.
const EVENTS_OF_SCHEMA_1: &str = "CREATE TABLE schema_migrations (version bigint PRIMARY KEY, \
     applied_at timestamptz NOT NULL DEFAULT now()); INSERT INTO schema_migrations VALUES (1); \
     INSERT INTO webhook_endpoints SELECT 3, 'https://shop.example/', 31, \
     decode(repeat('07', 32), 'hex'), true, NULL, 0; \
     INSERT INTO outbox (tenant, epoch, event_id, happened_at, created_at, due, after_lease, kind, state) \
     SELECT 3, 0, decode(repeat('0' || state, 16), 'hex'), 0, state, CASE state WHEN 1 THEN 5 END, \
     0, 4, state FROM generate_series(0, 4) AS all_states (state)";

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_keeps_every_event() {
    let Some(address) = empty_database() else { return };
    run_sql(&address, SCHEMA_1);
    run_sql(&address, EVENTS_OF_SCHEMA_1);
    let store = Store::connect(address, SECRET).await.unwrap();
    let tenant = sandbox(1);
    let log = store.deliveries(tenant, 9).await.unwrap();
    let creation_times: Vec<_> = log.iter().map(|event| event.created_at.0).collect();
    assert_eq!(creation_times, [4, 3, 2, 1, 0], "in order");
    assert!(store.has_missed(tenant).await.unwrap());
    let due = lease(&store, tenant, 9, NOW).await;
    assert_eq!(due.iter().map(|event| event.trace).collect::<Vec<_>>(), [None]);
    enqueue(&store, 9, NOW).await;
    let newest = store.deliveries(tenant, 1).await.unwrap().remove(0);
    assert_eq!(newest.created_at, NOW, "new ones come after them");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_waits_for_a_long_read_stops_no_other_read() {
    let Some(address) = empty_database() else { return };
    run_sql(&address, SCHEMA_1);
    run_sql(&address, EVENTS_OF_SCHEMA_1);
    let [dump, serving] = [client(&address).await, client(&address).await];
    // As `pg_dump` holds it while it runs.
    dump.batch_execute("BEGIN; SELECT FROM outbox LIMIT 1").await.unwrap();
    let upgrade = tokio::spawn(async move { Store::connect(address, SECRET).await.unwrap() });
    until_blocked(&dump, 1, || false).await;
    serving.batch_execute("SET lock_timeout = '10s'; SELECT count(*) FROM outbox").await.unwrap();
    assert!(!upgrade.is_finished());
    dump.batch_execute("COMMIT").await.unwrap();
    upgrade.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_event_fails_alone_and_the_next_is_sent() {
    let Some((store, _, address)) = with_endpoint().await else { return };
    let tenant = sandbox(1);
    let parcel = create_parcel(&store, tenant, "SB-UNREADABLE-1").await;
    commit(&store, changes_to(&parcel, vec![move_parcel(&parcel, State::InTransit, 5)])).await;
    run_sql(&address, "UPDATE outbox SET kind = 99 WHERE state = 1");
    let leased = store.lease(vec![(tenant, 9)], NOW.plus(9)).await.unwrap();
    assert_eq!((leased.events.len(), leased.unreadable), (0, vec![tenant]));
    assert_eq!(lease(&store, tenant, 9, NOW.plus(9)).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_event_carries_the_manifest() {
    let Some((store, _)) = new_store().await else { return };
    let (tenant, kinds) =
        (sandbox(1), WebhookEventKinds::from_codes(["manifest.submitted"]).unwrap());
    store.set_endpoint(Endpoint { kinds, ..endpoint(tenant) }, &TEST_AUTHOR).await.unwrap();
    let (id, awb) = (ulid::Ulid::from_parts(1, 7), Awb::parse("176-12345675").unwrap());
    let document = serde_json::json!({
        "manifestId": public_id("man", id), "awbNumber": awb, "status": "SUBMITTED", "parcelCount": 0,
        "totalWeightKg": 0, "declaredValues": [], "destinationCountries": [], "trackingNumbers": [],
        "submittedAt": "2026-01-10T15:05:00.000Z"
    });
    let document = document.to_string().into_bytes();
    let manifest =
        NewManifest { id, tenant, awb, submitted_at: NOW, document, parcels: Vec::new() };
    apply(&store, vec![StoreOp::InsertManifest(Box::new(manifest))]).await;
    let leased = lease(&store, tenant, 9, NOW.plus(9)).await.remove(0);
    let payload = store.payload(&leased).await.unwrap().unwrap();
    let EventSubject::Manifest(manifest) = payload.subject else {
        panic!("it is about a manifest")
    };
    assert_eq!(manifest.awb_number.as_str(), "176-12345675");
}
