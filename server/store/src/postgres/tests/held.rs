//! Rows that another connection has locked: as few writes as possible wait for them, as briefly as possible, and two
//! servers never wait for each other.

use std::sync::Arc;

use futures_util::{FutureExt as _, future::join_all};
use parcelo_domain::{
    Changes,
    sample::TEST_AUTHOR,
    webhooks::{Endpoint, RetryDecision},
};
use tokio::sync::{Barrier, Semaphore};
use tokio_postgres::Client;

use crate::postgres::test_util::cluster::{
    client, run_sql, run_sql_at_postgres, socket_and_name, store_and_client, until_blocked,
    with_endpoint, writer_pid,
};
use crate::{
    CommitOutcome, Engine, Settled, Store, StoreError, endpoints,
    postgres::{self, READERS},
    tests::conformance::{
        NOW, create, record, sandbox,
        webhooks::{endpoint, enqueue, lease, outcome},
    },
    waiting::until,
};

fn order(account: i64, key: u32) -> Changes {
    create(sandbox(account), &format!("SB-HELD-{account}-{key:04}"), key)
}

fn engine(store: &Store) -> &postgres::Store {
    let Engine::Postgres(engine) = &store.0 else { unreachable!("a store on PostgreSQL") };
    engine
}

/// Returns the number of deadlocks, once all other connections have reported. PostgreSQL counts every deadlock, because
/// a group waits for a lock longer than `deadlock_timeout`. A long wait without a deadlock, as on a slow machine, is
/// not counted.
pub(super) async fn count_deadlocks(client: &Client) -> i64 {
    let count_connections =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()";
    let connections =
        async || client.query_one(count_connections, &[]).await.unwrap().get::<_, i64>(0);
    until("all other connections have ended", async || connections().await <= 1).await;
    let sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_locked_for_one_tenant_barely_delays_other_tenants() {
    let Some((store, client, _)) = with_endpoint().await else { return };
    client.batch_execute("BEGIN; SELECT FROM webhook_endpoints FOR UPDATE").await.unwrap();
    let pause = store.pause_writes().await.unwrap();
    let mut locked_out: Vec<_> =
        (1..151).map(|key| Box::pin(store.commit(order(1, key)))).collect();
    assert!(locked_out.iter_mut().all(|order| order.now_or_never().is_none()));
    drop(pause);
    let mut tries = 1;
    while store.commit(order(2, 99)).await == CommitOutcome::Busy {
        tries += 1;
    }
    // If the writer waited for each of the 150, twice for 50 ms, four tries would be needed.
    assert!(tries <= 2, "{tries} tries of 5 s");
    let locked_out = join_all(locked_out).await;
    assert!(locked_out.iter().all(|order| *order == CommitOutcome::Busy), "{locked_out:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn abandoned_writes_are_skipped_behind_a_locked_row() {
    let Some((store, client, _)) = with_endpoint().await else { return };
    client.batch_execute("BEGIN; SELECT FROM webhook_endpoints FOR UPDATE").await.unwrap();
    let pause = store.pause_writes().await.unwrap();
    let mut locked_out = Box::pin(store.commit(order(1, 1)));
    let mut abandoned = Box::pin(store.commit(order(2, 2)));
    assert!((&mut locked_out).now_or_never().is_none());
    assert!((&mut abandoned).now_or_never().is_none());
    drop(abandoned);
    drop(pause);
    // Both are rolled back together, and each is then tried alone.
    assert_eq!(locked_out.await, CommitOutcome::Busy);
    assert_eq!(store.idempotency_record(&record(sandbox(2), 2).key).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_lookup_that_times_out_can_be_retried() {
    let Some((store, client, _)) = store_and_client().await else { return };
    client.batch_execute("BEGIN; LOCK TABLE idempotency").await.unwrap();
    let key = record(sandbox(1), 1).key;
    let looked_up = store.idempotency_record(&key).await;
    assert!(matches!(looked_up, Err(StoreError::Busy { .. })), "{looked_up:?}");
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(store.idempotency_record(&key).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unsendable_value_fails_only_its_own_write() {
    let Some((store, ..)) = store_and_client().await else { return };
    let pause = store.pause_writes().await.unwrap();
    let unsendable = async |db: &postgres::connection::Connection| {
        db.execute("SELECT $1::bigint", &[&"a text"]).await
    };
    let mut order = Box::pin(store.commit(order(1, 1)));
    let mut call = Box::pin(engine(&store).call(unsendable));
    assert!((&mut order).now_or_never().is_none() && (&mut call).now_or_never().is_none());
    drop(pause);
    let failed = call.await;
    assert!(matches!(failed, Err(StoreError::Engine { .. })), "{failed:?}");
    assert_eq!(order.await, CommitOutcome::Committed);
}

#[tokio::test(flavor = "multi_thread")]
async fn disabling_an_endpoint_during_orders_never_deadlocks() {
    let Some((store, client, address)) = with_endpoint().await else { return };
    let tenant = sandbox(1);
    enqueue(&store, tenant, 1).await;
    let leased = lease(&store, tenant, 1, NOW).await.remove(0);
    // Another server's group creates an order of the same tenant, and settles an event with the same answer of its
    // endpoint.
    client.batch_execute("BEGIN; SELECT FROM webhook_endpoints FOR SHARE").await.unwrap();
    let pause = store.pause_writes().await.unwrap();
    let mut order = Box::pin(store.commit(order(1, 1)));
    let mut settle = Box::pin(store.settle(leased, outcome(NOW, 410), RetryDecision::Gone));
    assert!((&mut order).now_or_never().is_none() && (&mut settle).now_or_never().is_none());
    let watcher = self::client(&address).await;
    drop(pause);
    let upgrade_lock = tokio::spawn(async move {
        until_blocked(&watcher, 1, || false).await;
        client.batch_execute("SELECT FROM webhook_endpoints FOR UPDATE; COMMIT").await.unwrap();
    });
    assert_eq!(order.await, CommitOutcome::Committed);
    settle.await.unwrap();
    upgrade_lock.await.unwrap();
    assert!(store.endpoint(tenant).await.unwrap().unwrap().disabled.is_some());
    drop(store);
    assert_eq!(count_deadlocks(&self::client(&address).await).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_whose_success_is_not_committed_yet_stays_on() {
    let Some((store, client, address)) = with_endpoint().await else { return };
    let tenant = sandbox(1);
    let other = Store::connect(address, [1; 32]).await.unwrap();
    for event in [1, 2] {
        enqueue(&store, tenant, event).await;
    }
    let [accepted, refused] = lease(&store, tenant, 2, NOW).await.try_into().unwrap();
    // The second pause keeps the group of the success open.
    let first = other.pause_writes().await.unwrap();
    let mut success = Box::pin(other.settle(accepted, outcome(NOW, 200), RetryDecision::Delivered));
    assert!((&mut success).now_or_never().is_none());
    let mut second = Box::pin(other.pause_writes());
    assert!((&mut second).now_or_never().is_none());
    until("both are queued", async || other.stats().queued == 2).await;
    drop(first);
    let second = second.await.unwrap();
    let last_attempt = tokio::spawn({
        let store = store.clone();
        async move { store.settle(refused, outcome(NOW, 500), RetryDecision::GivenUp).await }
    });
    until_blocked(&client, 1, || last_attempt.is_finished()).await;
    drop(second);
    assert_eq!(success.await.unwrap(), Settled::Counted);
    assert_eq!(last_attempt.await.unwrap().unwrap(), Settled::Counted);
    assert!(store.endpoint(tenant).await.unwrap().unwrap().disabled.is_none());
}

/// Returns the first sandbox's endpoint with another URL.
fn moved_endpoint() -> Endpoint {
    Endpoint { url: "https://shop.example/other".to_owned(), ..endpoint(sandbox(1)) }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_order_waits_while_the_leases_of_a_changed_url_end() {
    let Some((store, client, _)) = with_endpoint().await else { return };
    let tenant = sandbox(1);
    enqueue(&store, tenant, 1).await;
    assert_eq!(lease(&store, tenant, 1, NOW).await.len(), 1);
    // All unsent events are read to find the leased ones, so the change waits for this lock.
    client.batch_execute("BEGIN; LOCK TABLE outbox").await.unwrap();
    let change = tokio::spawn({
        let store = store.clone();
        async move { store.set_endpoint(moved_endpoint(), &TEST_AUTHOR).await }
    });
    until_blocked(&client, 1, || change.is_finished()).await;
    assert_eq!(store.commit(order(2, 1)).await, CommitOutcome::Committed);
    assert!(!change.is_finished());
    client.batch_execute("COMMIT").await.unwrap();
    change.await.unwrap().unwrap();
    assert_eq!(lease(&store, tenant, 9, NOW).await.len(), 1, "it is sent to the new URL at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_a_previous_url_is_late_before_its_lease_ends() {
    let Some((store, ..)) = with_endpoint().await else { return };
    let tenant = sandbox(1);
    enqueue(&store, tenant, 1).await;
    let leased = lease(&store, tenant, 1, NOW).await.remove(0);
    let changed = moved_endpoint();
    store.write(async move |db| endpoints::set(db, &changed).await).await.unwrap();
    let settled = store.settle(leased, outcome(NOW, 410), RetryDecision::Gone).await;
    assert_eq!(settled.unwrap(), Settled::Late);
    assert!(store.endpoint(tenant).await.unwrap().unwrap().disabled.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_enqueued_during_a_reset_is_erased() {
    let Some((store, client, address)) = with_endpoint().await else { return };
    let tenant = sandbox(1);
    let other = Store::connect(address, [1; 32]).await.unwrap();
    enqueue(&store, tenant, 1).await;
    // The second pause keeps the event's group open.
    let first = store.pause_writes().await.unwrap();
    let mut event = Box::pin(enqueue(&store, tenant, 2));
    assert!((&mut event).now_or_never().is_none());
    let mut second = Box::pin(store.pause_writes());
    assert!((&mut second).now_or_never().is_none());
    drop(first);
    let second = second.await.unwrap();
    let reset = tokio::spawn(async move { other.reset(tenant).await.unwrap() });
    // The reset waits for the group.
    until_blocked(&client, 1, || reset.is_finished()).await;
    drop(second);
    event.await;
    assert_eq!(reset.await.unwrap().webhook_deliveries, 2);
    let has_events = "SELECT EXISTS (SELECT 1 FROM outbox)";
    let has_events = async || client.query_one(has_events, &[]).await.unwrap().get::<_, bool>(0);
    until("the events are erased", async || !has_events().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_order_waits_while_a_reset_counts_what_it_deletes() {
    let Some((store, client, _)) = store_and_client().await else { return };
    assert_eq!(store.commit(order(1, 1)).await, CommitOutcome::Committed);
    // The reset counts manifests too, so it waits for this lock.
    client.batch_execute("BEGIN; LOCK TABLE manifests").await.unwrap();
    let reset = tokio::spawn({
        let store = store.clone();
        async move { store.reset(sandbox(1)).await.unwrap() }
    });
    until_blocked(&client, 1, || false).await;
    assert_eq!(store.commit(order(2, 2)).await, CommitOutcome::Committed);
    assert!(!reset.is_finished());
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(reset.await.unwrap().parcels, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_of_login_failures_skips_one_that_is_being_counted() {
    let Some((store, client, address)) = store_and_client().await else { return };
    let old = "INSERT INTO login_failures SELECT decode(md5(n::text), 'hex'), 1, 0 \
         FROM generate_series(1, 1200) AS n; INSERT INTO login_networks SELECT counted_by, 0 \
         FROM login_failures";
    for table in ["login_failures", "login_networks"] {
        run_sql(&address, old);
        client.batch_execute("BEGIN").await.unwrap();
        client.batch_execute(&format!("SELECT FROM {table} LIMIT 1 FOR UPDATE")).await.unwrap();
        store.purge_sessions(NOW).await.unwrap();
        let count_rows = format!("SELECT count(*) FROM {table}");
        assert_eq!(client.query_one(&count_rows, &[]).await.unwrap().get::<_, i64>(0), 1);
        client.batch_execute("COMMIT").await.unwrap();
        store.purge_sessions(NOW).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_scans_delay_no_short_read_and_no_other_tenant() {
    let Some((store, ..)) = store_and_client().await else { return };
    let scans = READERS.scans;
    let (all_running, release) = (Arc::new(Barrier::new(scans + 1)), Arc::new(Semaphore::new(0)));
    let scan = |account| {
        let (all_running, release) = (Arc::clone(&all_running), Arc::clone(&release));
        let engine = engine(&store).clone();
        let waits = async move |_: &postgres::connection::Connection| {
            all_running.wait().await;
            Ok(release.acquire().await.is_ok())
        };
        tokio::spawn(async move { engine.scan(Some(sandbox(account)), waits).await })
    };
    // If one tenant had more than one of the connections, the last of the other tenants would never get one.
    let greedy: Vec<_> = (0..20).map(|_| scan(1)).collect();
    let other_tenants: Vec<_> = (2..=i64::try_from(scans).unwrap()).map(scan).collect();
    all_running.wait().await;
    // All connections for scans are busy. These calls read only a few rows, and so use other connections.
    engine(&store).measure_clock().await.unwrap();
    assert_eq!(store.commit(order(1, 1)).await, CommitOutcome::Committed);
    assert!(store.idempotency_record(&record(sandbox(1), 1).key).await.unwrap().is_some());
    drop((greedy, other_tenants));
    release.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_can_write_but_not_read_is_not_ready() {
    let Some((store, client, address)) = store_and_client().await else { return };
    store.measure_clock().await.unwrap();
    assert!(store.is_readable());
    let (_, name) = socket_and_name(&address);
    let allow_connections = |is_allowed| {
        run_sql_at_postgres(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS {is_allowed}"));
    };
    allow_connections(false);
    let end_readers = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND pid NOT IN (pg_backend_pid(), $1)";
    client.execute(end_readers, &[&writer_pid(&store).await]).await.unwrap();
    let is_ready = async || {
        // As the service does twice a second.
        let _skew = store.measure_clock().await;
        store.is_readable()
    };
    until("it is not ready", async || !is_ready().await).await;
    assert!(store.unavailable_reason().unwrap().contains("has answered no read"));
    allow_connections(true);
    until("it is ready again", is_ready).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_leased_too_late_for_their_server_are_free_at_once() {
    let Some((store, ..)) = with_endpoint().await else { return };
    let tenant = sandbox(1);
    enqueue(&store, tenant, 1).await;
    let pause = store.pause_writes().await.unwrap();
    let late = store.lease(vec![(tenant, 9)], NOW).await;
    assert!(matches!(late, Err(StoreError::Busy { .. })), "{late:?}");
    drop(pause);
    // The clock of the test stands still, so the lease does not end by itself.
    until("the event is free", async || !lease(&store, tenant, 9, NOW).await.is_empty()).await;
}
