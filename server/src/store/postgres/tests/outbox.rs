//! The outbox of several servers: whose clock counts, what a fault would strand, and what an upgrade keeps.

use tokio_postgres::NoTls;

use super::cluster::{database, run_sql};
use crate::{
    clock::{Clock, Millis, SystemClock},
    domain::webhooks::{Kind, LEASE, OutboxEvent, RetryDecision},
    store::{
        Settled, Store,
        postgres::{self, Address},
        tests::conformance::{
            NOW, SECRET, made, moved, on, sandbox,
            webhooks::{endpoint, lease, outcome},
        },
    },
};
use crate::{domain::State, store::CommitOutcome};

/// Servers whose leases begin and end by the database's clock, as in production.
async fn servers(address: &Address, count: usize) -> Vec<Store> {
    let mut servers = Vec::new();
    for _ in 0..count {
        let engine = postgres::Store::connect(address.clone(), SECRET).await.unwrap();
        engine.lease_by_the_database();
        servers.push(Store::from(engine));
    }
    servers
}

async fn enqueue(store: &Store, event: u64, at: Millis) {
    let event = ulid::Ulid::from_parts(1, event.into());
    let test = OutboxEvent { event, kind: Kind::Test, sequence: None, previous: None, at };
    store.enqueue(sandbox(1), test).await.unwrap();
}

/// What passes by the database's clock: its leases are so much older.
fn pass(address: &Address, millis: i64) {
    run_sql(address, &format!("UPDATE outbox SET lease_until = lease_until - {millis}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_clock_is_wrong_steals_no_lease_and_keeps_none() {
    for wrong in [0, Millis::DAY, -Millis::DAY] {
        let Some(address) = database() else { return };
        let [right, skewed] = servers(&address, 2).await.try_into().unwrap();
        let now = SystemClock.now();
        let tenant = sandbox(1);
        right.set_endpoint(endpoint(tenant)).await.unwrap();
        for event in 0..4 {
            enqueue(&right, event, now.plus(-2 * Millis::DAY)).await;
        }
        let of_right = lease(&right, tenant, 2, now).await;
        let of_skewed = lease(&skewed, tenant, 9, now.plus(wrong)).await;
        assert_eq!((of_right.len(), of_skewed.len()), (2, 2), "{wrong}: it takes what is free");
        pass(&address, LEASE - 5_000);
        assert!(lease(&skewed, tenant, 9, now.plus(wrong)).await.is_empty(), "{wrong}");
        assert!(lease(&right, tenant, 9, now).await.is_empty(), "{wrong}");
        pass(&address, 5_001);
        assert_eq!(lease(&right, tenant, 9, now).await.len(), 4, "{wrong}: a minute for each");
        for late in of_skewed {
            let settled = right.settle(late, outcome(now, 410), RetryDecision::Gone).await;
            assert_eq!(settled.unwrap(), Settled::Late, "{wrong}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_waits_for_nothing_is_found_and_sent() {
    let Some(address) = database() else { return };
    let store = Store::connect(address.clone(), SECRET).await.unwrap();
    let tenant = sandbox(1);
    store.set_endpoint(endpoint(tenant)).await.unwrap();
    let parcel = made(&store, tenant, "SB-STRANDED-01").await;
    let change = on(&parcel, vec![moved(&parcel, State::InTransit, 5)]);
    assert_eq!(store.commit(change).await, CommitOutcome::Committed);
    // As if both had been written beside each other without the lock.
    run_sql(&address, "UPDATE outbox SET state = 2, due = NULL WHERE state = 1");
    assert!(lease(&store, tenant, 9, NOW.plus(9)).await.is_empty());
    assert_eq!(store.release_stranded(NOW.plus(9)).await.unwrap(), 1);
    assert_eq!(store.release_stranded(NOW.plus(9)).await.unwrap(), 0);
    assert_eq!(lease(&store, tenant, 9, NOW.plus(9)).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_written_without_touching_an_index() {
    let Some(address) = database() else { return };
    let [store] = servers(&address, 1).await.try_into().unwrap();
    let tenant = sandbox(1);
    store.set_endpoint(endpoint(tenant)).await.unwrap();
    let now = SystemClock.now();
    for event in 0..50 {
        enqueue(&store, event, now.plus(-9)).await;
    }
    assert_eq!(lease(&store, tenant, 50, now).await.len(), 50);
    store.close().await;
    let (client, connection) = address.config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    let counted = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables \
         WHERE relname = 'outbox_undone'";
    // The connections tell what they did when they end.
    loop {
        let row = client.query_one(counted, &[]).await.unwrap();
        let [all, hot] = [0, 1].map(|column| row.get::<_, i64>(column));
        if all >= 50 {
            // But for some that their page has no room for.
            assert!(hot * 10 >= all * 8, "{hot} of {all}");
            break;
        }
        tokio::task::yield_now().await;
    }
}

/// What a server of schema 1 does to lease.
const LEASE_OF_SCHEMA_1: &str = "WITH next AS (SELECT id FROM living_outbox WHERE tenant = 3 \
     AND due <= (extract(epoch FROM now()) * 1000)::bigint ORDER BY due, id LIMIT 9 \
     FOR UPDATE SKIP LOCKED), mine AS (UPDATE outbox AS o SET leased = true, leased_by = 1, \
     lease = 1000, due = (extract(epoch FROM now()) * 1000)::bigint + 60000, \
     first_attempt = coalesce(first_attempt, 0) FROM next WHERE o.id = next.id RETURNING o.id) \
     SELECT count(*) FROM mine";

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_the_version_before_shares_the_outbox() {
    let Some(address) = database() else { return };
    let [store] = servers(&address, 1).await.try_into().unwrap();
    let tenant = sandbox(1);
    store.set_endpoint(endpoint(tenant)).await.unwrap();
    let (client, connection) = address.config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    let old_leases =
        async || -> i64 { client.query_one(LEASE_OF_SCHEMA_1, &[]).await.unwrap().get(0) };
    let now = SystemClock.now();
    for event in 0..4 {
        enqueue(&store, event, now.plus(-9)).await;
    }
    assert_eq!(lease(&store, tenant, 2, now).await.len(), 2);
    assert_eq!(old_leases().await, 2, "the rest, and none that is leased");
    assert!(lease(&store, tenant, 9, now).await.is_empty(), "nor does it take the old one's");
    let later = now.plus(LEASE + 1_000);
    let freed = lease(&store, tenant, 9, later).await.len();
    assert_eq!(freed, 2, "but when their time is over");
}

/// A database as schema 1 has it, with an event in each state.
const SCHEMA_1: &str = include_str!("../migrations/0001_init.sql");
const EVENTS_OF_SCHEMA_1: &str = "CREATE TABLE schema_migrations (version bigint PRIMARY KEY, \
     applied_at timestamptz NOT NULL DEFAULT now()); INSERT INTO schema_migrations VALUES (1); \
     INSERT INTO webhook_endpoints SELECT 3, 'https://shop.example/', 31, \
     decode(repeat('07', 32), 'hex'), true, NULL, 0; \
     INSERT INTO outbox (tenant, epoch, event_id, happened_at, created_at, due, after_lease, kind, state) \
     SELECT 3, 0, decode(repeat('0' || state, 16), 'hex'), 0, state, CASE state WHEN 1 THEN 5 END, \
     0, 4, state FROM generate_series(0, 4) AS all_states (state)";

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_keeps_every_event() {
    let Some(address) = database() else { return };
    run_sql(&address, SCHEMA_1);
    run_sql(&address, EVENTS_OF_SCHEMA_1);
    let store = Store::connect(address, SECRET).await.unwrap();
    let tenant = sandbox(1);
    let log = store.deliveries(tenant, 9).await.unwrap();
    let moments: Vec<_> = log.iter().map(|event| event.created_at.0).collect();
    assert_eq!(moments, [4, 3, 2, 1, 0], "in their order");
    assert!(store.has_missed(tenant).await.unwrap());
    assert_eq!(lease(&store, tenant, 9, NOW).await.len(), 1);
    enqueue(&store, 9, NOW).await;
    let newest = store.deliveries(tenant, 1).await.unwrap().remove(0);
    assert_eq!(newest.created_at, NOW, "new ones come after them");
}
