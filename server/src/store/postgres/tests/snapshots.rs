//! A transaction that stays open elsewhere (a dump, a report) keeps PostgreSQL from removing dead rows. What is
//! due is found all the same, and not behind all that was delivered meanwhile.

use tokio_postgres::{Client, NoTls};
use ulid::Ulid;

use super::cluster::database;
use crate::{
    clock::stopwatch,
    domain::webhooks::{Kind, OutboxEvent, RetryDecision},
    store::{
        Store,
        postgres::Address,
        sqlite::tests::conformance::{
            NOW, SECRET, sandbox,
            webhooks::{endpoint, outcome},
        },
    },
};

/// What it took to deliver everything.
#[derive(Debug)]
struct Cost {
    /// Pages of the outbox and its indexes that were looked at, a delivery.
    pages: i64,
    /// Rows of it that an index led to, a delivery.
    rows: i64,
    millis: u128,
}

async fn client(address: &Address) -> Client {
    let (client, connection) = address.config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A transaction that sees the database as it is now, until it is dropped.
async fn hold(address: &Address) -> Client {
    let holder = client(address).await;
    holder.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await.unwrap();
    holder
}

/// Delivers so many events of one tenant in tens, as a dispatcher does.
async fn deliver(address: &Address, events: u64) -> Cost {
    let store = Store::connect(address.clone(), SECRET).await.unwrap();
    let tenant = sandbox(1);
    store.set_endpoint(endpoint(tenant)).await.unwrap();
    let began = stopwatch();
    let (mut now, mut enqueued, mut delivered) = (NOW, 0, 0);
    loop {
        // Ten in 30 ms.
        now = now.plus(30);
        for _ in 0..10.min(events - enqueued) {
            let event = Ulid::from_parts(1, enqueued.into());
            let test =
                OutboxEvent { event, kind: Kind::Test, sequence: None, previous: None, at: now };
            store.enqueue(tenant, test).await.unwrap();
            enqueued += 1;
        }
        let waiting = store.tenants_with_due(now, 9).await.unwrap();
        if waiting.is_empty() {
            break;
        }
        let leased = store.lease(vec![(tenant, 10)], now).await.unwrap();
        for (_, lease) in leased.events {
            let settled = store.settle(lease, outcome(now, 200), RetryDecision::Delivered);
            settled.await.unwrap();
            delivered += 1;
        }
    }
    assert_eq!(delivered, events);
    let millis = began.elapsed().as_millis();
    store.close().await;
    let (pages, rows) = looked_at(address).await;
    let each = |all: i64| all / i64::try_from(events).unwrap();
    Cost { pages: each(pages), rows: each(rows), millis }
}

/// The pages and rows of the outbox that were looked at, once all connections have told theirs.
async fn looked_at(address: &Address) -> (i64, i64) {
    let client = client(address).await;
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
         AND pid <> pg_backend_pid() AND state = 'idle'";
    while client.query_one(others, &[]).await.unwrap().get::<_, i64>(0) > 0 {
        tokio::task::yield_now().await;
    }
    let counted = "SELECT (SELECT sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read) \
         FROM pg_statio_user_tables WHERE relname LIKE 'outbox%')::bigint, \
         (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname LIKE 'outbox%')::bigint";
    let row = client.query_one(counted, &[]).await.unwrap();
    (row.get(0), row.get(1))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn deliveries_beside_a_snapshot_that_is_held_cost() {
    for events in [500, 2_000] {
        for is_held in [false, true] {
            let Some(address) = database() else { return };
            // The schema first.
            Store::connect(address.clone(), SECRET).await.unwrap().close().await;
            let holder = if is_held { Some(hold(&address).await) } else { None };
            println!("{events} events, held: {is_held}: {:?}", deliver(&address, events).await);
            drop(holder);
        }
    }
}
