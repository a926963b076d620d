//! Costs while a transaction that stays open elsewhere (a dump, a report) keeps PostgreSQL from removing dead rows. A
//! search for due events does not read all events that were delivered meanwhile, and a commit or claim does not read
//! all earlier versions of its row.

use futures_util::future::join_all;
use parcelo_domain::{
    sample::TEST_AUTHOR,
    shared_limit::{LimitClaim, SharedKey},
    webhooks::RetryDecision,
};
use tokio_postgres::Client;

use crate::postgres::test_util::cluster::{client, database, run_sql};
use crate::{
    CommitOutcome, Settled, Store,
    postgres::Address,
    tests::conformance::{
        NOW, SECRET, create, sandbox,
        webhooks::{endpoint, outcome},
    },
    waiting::until,
};

/// The cost of a delivery.
#[derive(Debug)]
struct Cost {
    /// Pages of the outbox and its indexes read for one delivery.
    pages: i64,
    /// Rows of the outbox that an index led to, for one delivery.
    rows: i64,
}

/// Opens a transaction that sees the database as it is now, until it is dropped.
async fn hold_snapshot(address: &Address) -> Client {
    let holder = client(address).await;
    holder.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await.unwrap();
    holder
}

/// Delivers events of one tenant, one due every 3 ms, as a dispatcher does: ten at a time.
async fn deliver(address: &Address, events: usize) -> Cost {
    let store = Store::connect(address.clone(), SECRET).await.unwrap();
    let tenant = sandbox(1);
    store.set_endpoint(endpoint(tenant), &TEST_AUTHOR).await.unwrap();
    let insert = format!(
        "INSERT INTO outbox (tenant, event_id, happened_at, created_at, due, after_lease, \
         kind, state) SELECT {}, decode(lpad(n::text, 32, '0'), 'hex'), 0, {now} + 3 * n, \
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
        assert!(settled.iter().all(|result| matches!(result, Ok(Settled::Counted))));
    }
    store.close().await;
    let (pages, rows) = read_counts(address, "outbox%").await;
    let per_event = |all: i64| all / i64::try_from(events).unwrap();
    Cost { pages: per_event(pages), rows: per_event(rows) }
}

/// Returns the numbers of pages and rows of these tables that were read, once all connections have reported theirs.
async fn read_counts(address: &Address, tables: &str) -> (i64, i64) {
    let client = client(address).await;
    let count_others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
         AND pid <> pg_backend_pid() AND state = 'idle'";
    let others = async || client.query_one(count_others, &[]).await.unwrap().get::<_, i64>(0);
    until("the other connections have ended", async || others().await == 0).await;
    let counted = "SELECT (SELECT sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read) \
         FROM pg_statio_user_tables WHERE relname LIKE $1)::bigint, \
         (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname LIKE $1)::bigint";
    let row = client.query_one(counted, &[&tables]).await.unwrap();
    (row.get(0), row.get(1))
}

/// Measures the cost of deliveries, with a snapshot that is held throughout if `is_held`.
async fn measure_deliveries(events: usize, is_held: bool) -> Option<Cost> {
    let address = database()?;
    // The schema is created first.
    Store::connect(address.clone(), SECRET).await.unwrap().close().await;
    let holder = if is_held { Some(hold_snapshot(&address).await) } else { None };
    let cost = deliver(&address, events).await;
    drop(holder);
    Some(cost)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: `.ci/prove postgres` runs it"]
async fn delivery_cost_is_independent_of_snapshot_age() {
    let Some(few) = measure_deliveries(1_000, true).await else { return };
    let many = measure_deliveries(3_000, true).await.unwrap();
    assert!(many.rows <= 2 * few.rows, "{few:?}, {many:?}");
    assert!(many.pages <= 2 * few.pages, "{few:?}, {many:?}");
}

/// Creates orders one after the other, each with a claim of its key. Returns the average number of pages that an order
/// reads for its counts and for its claim.
async fn create_orders(address: &Address, first: u32, orders: u32) -> [i64; 2] {
    const TABLES: [&str; 2] = ["parcel_count%", "rate_limit_windows"];
    let mut before = [0; 2];
    for (before, tables) in before.iter_mut().zip(TABLES) {
        *before = read_counts(address, tables).await.0;
    }
    let store = Store::connect(address.clone(), SECRET).await.unwrap();
    for number in first..first + orders {
        let order = create(sandbox(1), &format!("SB-SNAP-{number:08}"), number);
        assert_eq!(store.commit(order).await, CommitOutcome::Committed);
        let key = SharedKey::Api(1);
        let claim =
            LimitClaim { second: (number / 100).into(), key, limit: 50, admitted: 1, wanted: 1 };
        store.claim_requests(vec![claim]).await.unwrap();
        if number % 100 == 0 {
            store.merge_count_changes().await.unwrap();
        }
    }
    store.close().await;
    let mut pages = [0; 2];
    for ((pages, tables), before) in pages.iter_mut().zip(TABLES).zip(before) {
        *pages = (read_counts(address, tables).await.0 - before) / i64::from(orders);
    }
    pages
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: `.ci/prove postgres` runs it"]
async fn order_cost_is_independent_of_snapshot_age() {
    let Some(address) = database() else { return };
    Store::connect(address.clone(), SECRET).await.unwrap().close().await;
    let before = create_orders(&address, 0, 500).await;
    let holder = hold_snapshot(&address).await;
    let during = create_orders(&address, 500, 20_000).await;
    drop(holder);
    let worst = before.iter().zip(during).map(|(before, during)| during / before).max();
    assert!(worst <= Some(3), "{before:?} pages before it, {during:?} during it");
}

/// Inserts old rows into each table that is purged.
const INSERT_OLD_ROWS: &str = "\
    INSERT INTO idempotency (key, tenant, first_seen, fingerprint, body) \
    SELECT decode(md5(g::text), 'hex'), 3, g, '', '' FROM generate_series(1, ROWS) AS g; \
    INSERT INTO outbox (tenant, event_id, happened_at, created_at, after_lease, kind, state) \
    SELECT 3, decode(md5(g::text), 'hex'), 0, g, 0, 4, 2 FROM generate_series(1, ROWS) AS g; \
    INSERT INTO parcels (id, version, tenant, created_at, updated_at, promised_day, label_version, \
        last_sequence, environment, state, country, number, public_id, origin, destination) \
    SELECT g, 1, 3, g, 0, 20000, 1, 2, 1, 2, 'EC', 'SB-OLD-' || lpad(g::text, 8, '0'), \
        decode(md5(g::text), 'hex'), '', '' FROM generate_series(1, ROWS) AS g; \
    DELETE FROM term_queue";

/// Purges tables while a snapshot sees all their rows. Returns, for each table, the rows read through indexes per
/// deleted row.
async fn measure_purge(rows: i64) -> Option<[i64; 3]> {
    let address = database()?;
    Store::connect(address.clone(), SECRET).await.unwrap().close().await;
    run_sql(&address, &INSERT_OLD_ROWS.replace("ROWS", &rows.to_string()));
    let holder = hold_snapshot(&address).await;
    let store = Store::connect(address.clone(), SECRET).await.unwrap();
    assert_eq!(store.purge_records(NOW).await.unwrap(), rows.unsigned_abs());
    assert_eq!(store.purge_outbox(NOW).await.unwrap(), usize::try_from(rows).unwrap());
    assert_eq!(store.purge(NOW).await.unwrap().parcels, rows.unsigned_abs());
    store.close().await;
    drop(holder);
    let mut rows_read = [0; 3];
    for (rows_read, table) in rows_read.iter_mut().zip(["idempotency", "outbox_done", "parcels"]) {
        *rows_read = read_counts(&address, table).await.1 / rows;
    }
    Some(rows_read)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: `.ci/prove postgres` runs it"]
async fn a_purge_reads_deleted_rows_once() {
    // If each page began with the first row, 13, 12 and 29 rows would be read for each deleted row.
    let Some(rows_read) = measure_purge(10_000).await else { return };
    assert!(rows_read.iter().all(|rows| *rows <= 6), "{rows_read:?} rows read per deleted row");
}
