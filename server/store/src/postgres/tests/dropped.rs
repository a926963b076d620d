//! Callers that disconnect at any moment: each of their writes is done as a whole or not at all, and every connection
//! becomes idle again.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{future::join_all, poll};
use parcelo_domain::sample::TEST_AUTHOR;
use parcelo_types::internal::ListQuery;
use tokio::time::timeout;

use crate::postgres::test_util::cluster::{empty_database, new_store, query};
use crate::{
    CommitOutcome, Store,
    postgres::{self, call, connection::Connection},
    tests::conformance::{NOW, SECRET, create, record, row, sandbox, webhooks::endpoint},
};

const CLIENTS: u32 = 20;
const CALLS: u32 = 500;
/// Maximum number of polls of an answer before its caller disconnects.
const MAX_POLLS: u32 = 12;

/// Maximum time of a test, enough for a slow machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(300);

/// Polls a call this many times, and drops it.
async fn drop_after<T>(polls: u32, call: impl Future<Output = T>) {
    let mut call = pin!(call);
    for _ in 0..polls {
        if poll!(call.as_mut()).is_ready() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

async fn client(store: Store, number: u32) {
    let mut random = fastrand::Rng::with_seed(u64::from(number));
    for call in (0..CALLS).map(|call| number * CALLS + call) {
        let (polls, tracking_number) = (random.u32(0..MAX_POLLS), format!("SB-GONE-{call:06}"));
        match call % 10 {
            0..4 => {
                drop_after(polls, store.commit(create(sandbox(1), &tracking_number, call))).await;
            }
            4..6 => {
                drop_after(polls, store.idempotency_record(&record(sandbox(1), call - 1).key))
                    .await;
            }
            6..9 => drop_after(polls, store.list(sandbox(1), ListQuery::default())).await,
            _ => drop_after(polls, store.lease(vec![(sandbox(1), 3)], NOW)).await,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: `.ci/prove postgres` runs it"]
async fn ten_thousand_dropped_callers_leave_every_connection_idle() {
    let Some((store, address)) = new_store().await else { return };
    store.set_endpoint(endpoint(sandbox(1)), &TEST_AUTHOR).await.unwrap();
    let clients = (0..CLIENTS).map(|number| tokio::spawn(client(store.clone(), number)));
    for client in join_all(clients.collect::<Vec<_>>()).await {
        client.unwrap();
    }
    let last = async {
        // Until earlier writes are done, the queue may be full, or the store busy.
        let last = create(sandbox(1), "SB-GONE-LAST", CLIENTS * CALLS);
        while matches!(
            store.commit(last.clone()).await,
            CommitOutcome::Full | CommitOutcome::Busy | CommitOutcome::Unreachable
        ) {
            tokio::task::yield_now().await;
        }
    };
    timeout(TEST_TIMEOUT, last).await.unwrap();
    assert!(row(&store, "SB-GONE-LAST").await.is_some());
    let other_connections = "FROM pg_stat_activity WHERE datname = current_database() \
         AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
    let become_idle = async {
        while query(&address, &format!("SELECT count(*) {other_connections} AND state <> 'idle'"))
            != "0"
        {}
    };
    timeout(TEST_TIMEOUT, become_idle).await.expect("every connection is idle");
    let connections: u32 =
        query(&address, &format!("SELECT count(*) {other_connections}")).parse().unwrap();
    assert!(connections <= 8, "{connections}: one writes, one shares limits, and six read");
    let counted = query(&address, "SELECT sum(total) FROM all_counts");
    assert_eq!(counted, query(&address, "SELECT count(*) FROM parcels"));
    assert_eq!(counted, query(&address, "SELECT count(*) FROM idempotency"));
    assert_eq!(counted, query(&address, "SELECT count(*) FROM outbox"));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: `.ci/prove postgres` runs it"]
async fn reads_of_dropped_callers_are_skipped() {
    let Some(address) = empty_database() else { return };
    let store = postgres::Store::connect(address, SECRET, postgres::READERS).await.unwrap();
    let executed = Arc::new(AtomicUsize::new(0));
    for _ in 0..100 {
        let executed = Arc::clone(&executed);
        let (read, caller) = call::new(async move |_: &Connection| {
            executed.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        drop(caller);
        assert!(store.0.readers.push(read));
    }
    // Reads are taken from the queue in order, so all those were taken before this one.
    store.read(async |_db| Ok(())).await.unwrap();
    assert_eq!(executed.load(Ordering::Relaxed), 0);
}
