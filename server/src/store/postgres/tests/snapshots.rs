//! A transaction that stays open elsewhere (a dump, a report) keeps PostgreSQL from removing dead rows. What is
//! due is found all the same, and not behind all that was delivered meanwhile.

use futures_util::future::join_all;
use tokio_postgres::Client;

use super::cluster::{client, database, run_sql};
use crate::{
    domain::{audit::BY, webhooks::RetryDecision},
    store::{
        Settled, Store,
        postgres::Address,
        tests::conformance::{
            NOW, SECRET, sandbox,
            webhooks::{endpoint, outcome},
        },
    },
    waiting::until,
};

/// What it took to deliver everything.
#[derive(Debug)]
struct Cost {
    /// Pages of the outbox and its indexes that were looked at, a delivery.
    pages: i64,
    /// Rows of it that an index led to, a delivery.
    rows: i64,
}

/// A transaction that sees the database as it is now, until it is dropped.
async fn hold(address: &Address) -> Client {
    let holder = client(address).await;
    holder.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await.unwrap();
    holder
}

/// Delivers so many events of one tenant, one due every 3 ms, as a dispatcher does: ten at a time.
async fn deliver(address: &Address, events: usize) -> Cost {
    let store = Store::connect(address.clone(), SECRET).await.unwrap();
    let tenant = sandbox(1);
    store.set_endpoint(endpoint(tenant), &BY).await.unwrap();
    let insert = format!(
        "INSERT INTO outbox (tenant, epoch, event_id, happened_at, created_at, due, after_lease, \
         kind, state) SELECT {}, 0, decode(lpad(n::text, 32, '0'), 'hex'), 0, {now} + 3 * n, \
         {now} + 3 * n, 0, 4, 1 FROM generate_series(0, {events} - 1) AS all_events (n)",
        tenant.number(),
        now = NOW.0
    );
    run_sql(address, &insert);
    let (mut now, mut delivered) = (NOW, 0);
    while delivered < events {
        now = now.plus(30);
        assert_eq!(store.tenants_with_due(now, 9).await.unwrap(), [tenant]);
        let leased = store.lease(vec![(tenant, 10)], now).await.unwrap();
        let settled = leased
            .events
            .into_iter()
            .map(|(_, lease)| store.settle(lease, outcome(now, 200), RetryDecision::Delivered));
        let settled = join_all(settled).await;
        delivered += settled.len();
        assert!(settled.iter().all(|one| matches!(one, Ok(Settled::Counted))));
    }
    store.close().await;
    let (pages, rows) = looked_at(address).await;
    let each = |all: i64| all / i64::try_from(events).unwrap();
    Cost { pages: each(pages), rows: each(rows) }
}

/// The pages and rows of the outbox that were looked at, once all connections have reported theirs.
async fn looked_at(address: &Address) -> (i64, i64) {
    let client = client(address).await;
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
         AND pid <> pg_backend_pid() AND state = 'idle'";
    let others = async || client.query_one(others, &[]).await.unwrap().get::<_, i64>(0);
    until("they have ended", async || others().await == 0).await;
    let counted = "SELECT (SELECT sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read) \
         FROM pg_statio_user_tables WHERE relname LIKE 'outbox%')::bigint, \
         (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname LIKE 'outbox%')::bigint";
    let row = client.query_one(counted, &[]).await.unwrap();
    (row.get(0), row.get(1))
}

/// The cost beside a snapshot that is held for all of it, or not.
async fn cost(events: usize, is_held: bool) -> Option<Cost> {
    let address = database()?;
    // The schema first.
    Store::connect(address.clone(), SECRET).await.unwrap().close().await;
    let holder = if is_held { Some(hold(&address).await) } else { None };
    let cost = deliver(&address, events).await;
    drop(holder);
    Some(cost)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: `.ci/prove postgres` runs it"]
async fn a_delivery_costs_no_more_the_longer_a_snapshot_is_held() {
    let Some(few) = cost(1_000, true).await else { return };
    let many = cost(3_000, true).await.unwrap();
    assert!(many.rows <= 2 * few.rows, "{few:?}, {many:?}");
    assert!(many.pages <= 2 * few.pages, "{few:?}, {many:?}");
}
