//! Resets of sandboxes: a write of one server during another's reset belongs entirely to the old or the new generation,
//! and is counted once by the resets' answers.

use std::env;

use futures_util::future::join_all;
use parcelo_domain::{State, idempotency::LIFETIME_MILLIS};
use parcelo_types::model::Deleted;

use crate::postgres::test_util::cluster::{
    client, commit_until_known, query, run_sql, store_and_client, two_servers, until_blocked,
    with_endpoint,
};
use crate::{
    CommitOutcome, Store,
    tests::conformance::{
        NOW, changes_to, create, create_parcel, move_parcel, row, sandbox, webhooks::enqueue,
    },
    waiting::until,
};

/// Default number of resets in the race; the variable overrides it.
const RACES: u32 = 100;
const RACES_VARIABLE: &str = "PARCELO_RESET_RACES";

/// Ends a sandbox's current generation, as the first step of a reset does.
const END_GENERATION: &str = "WITH next AS (UPDATE generations SET current = current + 4294967296 WHERE home = 3 \
     RETURNING current) INSERT INTO ended_generations (number) SELECT current - 4294967296 FROM next";

async fn commit(store: &Store, number: &str, key: u32) {
    let outcome = commit_until_known(store, create(sandbox(1), number, key)).await;
    let is_done = matches!(outcome, CommitOutcome::Committed | CommitOutcome::IdempotencyTaken(_));
    assert!(is_done, "{number}: {outcome:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_after_a_reset_on_any_server_are_of_the_new_generation() {
    let Some([one, other]) = two_servers().await else { return };
    let races = env::var(RACES_VARIABLE).map_or(RACES, |races| races.parse().unwrap());
    let mut deleted = 0;
    for race in 0..races {
        let first = 1_000 + 100 * race;
        commit(&other, "SB-BEFORE-0001", 1).await;
        // On both servers, in the old generation or the new one.
        let concurrent_orders = (first..first + 8).map(|key| {
            let store = if key % 2 == 0 { &one } else { &other };
            async move { commit(store, &format!("SB-BESIDE-{key:06}"), key).await }
        });
        let (reset, _) = tokio::join!(one.reset(sandbox(1)), join_all(concurrent_orders));
        deleted += reset.unwrap().parcels;
        // Under a number and a key that the old generation may still have.
        commit(&other, "SB-BEFORE-0001", 1).await;
        assert!(row(&one, "SB-BEFORE-0001").await.is_some(), "race {race}");
        deleted += one.reset(sandbox(1)).await.unwrap().parcels;
        assert!(row(&other, "SB-BEFORE-0001").await.is_none(), "race {race}");
    }
    assert_eq!(deleted, u64::from(races) * 10, "each order is counted once");
    assert!(other.activity(sandbox(1), 0).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_that_join_an_uncounted_reset_return_its_counts() {
    let Some((one, client, address)) = with_endpoint().await else { return };
    let other = Store::connect(address.clone(), [1; 32]).await.unwrap();
    for key in 0..30 {
        commit(&one, &format!("SB-JOINED-{key:04}"), key).await;
    }
    let parcel = row(&one, "SB-JOINED-0001").await.unwrap();
    let change = changes_to(&parcel, vec![move_parcel(&parcel, State::InTransit, 5)]);
    assert_eq!(one.commit(change).await, CommitOutcome::Committed);
    enqueue(&one, sandbox(1), 1).await;
    // A reset counts manifests too, so it waits for this lock.
    client.batch_execute("BEGIN; LOCK TABLE manifests").await.unwrap();
    let resets = (0..10).map(|place| {
        let store = if place % 2 == 0 { one.clone() } else { other.clone() };
        tokio::spawn(async move { store.reset(sandbox(1)).await.unwrap() })
    });
    let resets: Vec<_> = resets.collect();
    let begun = "SELECT count(*) FROM ended_generations";
    until("all have begun", async || query(&address, begun) == "10").await;
    client.batch_execute("COMMIT").await.unwrap();
    let all = Deleted::default()
        .with_parcels(30)
        .with_labels(30)
        .with_tracking_events(61)
        .with_idempotency_keys(30)
        .with_webhook_deliveries(32);
    for reset in join_all(resets).await {
        assert_eq!(reset.unwrap(), all);
    }
    assert_eq!(one.reset(sandbox(1)).await.unwrap(), Deleted::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_one_millisecond_are_counted_once() {
    let Some((store, _, address)) = store_and_client().await else { return };
    commit(&store, "SB-COUNTED-0001", 1).await;
    // Several pages of counting, each of which ends within a millisecond.
    let keys = "INSERT INTO idempotency (key, tenant, first_seen, fingerprint, body) \
         SELECT decode(md5(g::text), 'hex'), 3, g / 6, '', '' FROM generate_series(1, 40) AS g";
    run_sql(&address, keys);
    assert_eq!(store.reset(sandbox(1)).await.unwrap().idempotency_keys, 41);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_writes_a_random_page_of_one_index_of_keys_only() {
    let Some((_store, _, address)) = store_and_client().await else { return };
    let by_key = "SELECT indexname FROM pg_indexes \
         WHERE tablename = 'idempotency' AND indexdef ~ '\\mkey\\M'";
    assert_eq!(query(&address, by_key), "idempotency_pkey");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_of_an_ended_generation_is_free_and_still_counted() {
    let Some((store, _, address)) = store_and_client().await else { return };
    for key in 0..3 {
        commit(&store, "SB-FREE-000001", key).await;
        let taken = store.commit(create(sandbox(2), "sb-free-000001", 9)).await;
        assert_eq!(taken, CommitOutcome::DuplicateTracking);
        run_sql(&address, END_GENERATION);
        assert!(row(&store, "SB-FREE-000001").await.is_none());
    }
    commit(&store, "SB-FREE-000001", 3).await;
    let deleted = store.reset(sandbox(1)).await.unwrap();
    assert_eq!((deleted.parcels, deleted.idempotency_keys), (4, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_during_a_reset_keeps_rows_the_reset_counts() {
    let Some((store, other, address)) = with_endpoint().await else { return };
    let watcher = client(&address).await;
    for (key, number) in (0..3).zip(["SB-PURGED-0001", "SB-PURGED-0002", "SB-PURGED-0003"]) {
        commit(&store, number, key).await;
        other.batch_execute(&format!("BEGIN; {END_GENERATION}")).await.unwrap();
        let store = store.clone();
        let later = NOW.plus(LIFETIME_MILLIS);
        let purge = tokio::spawn(async move {
            match key {
                0 => store.purge_records(later).await.unwrap(),
                1 => store.purge_outbox(later).await.unwrap().try_into().unwrap(),
                _ => store.purge(later).await.unwrap().parcels,
            }
        });
        until_blocked(&watcher, 1, || purge.is_finished()).await;
        other.batch_execute("COMMIT").await.unwrap();
        assert_eq!(purge.await.unwrap(), 0, "{number}");
    }
    let deleted = store.reset(sandbox(1)).await.unwrap();
    assert_eq!((deleted.parcels, deleted.idempotency_keys, deleted.webhook_deliveries), (3, 3, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_settled_during_erasure_is_erased_too() {
    let Some((store, other, address)) = with_endpoint().await else { return };
    create_parcel(&store, sandbox(1), "SB-DONE-000001").await;
    // As another server settles it, which moves it to another partition.
    let settles = "BEGIN; UPDATE outbox SET state = 2, due = NULL; \
         INSERT INTO webhook_attempts (outbox, number, at, millis) SELECT id, 1, 0, 0 FROM outbox";
    other.batch_execute(settles).await.unwrap();
    assert_eq!(store.reset(sandbox(1)).await.unwrap().webhook_deliveries, 1);
    let watcher = client(&address).await;
    until_blocked(&watcher, 1, || false).await;
    other.batch_execute("COMMIT").await.unwrap();
    let remaining = "SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM webhook_attempts) \
         + (SELECT count(*) FROM parcels) + (SELECT count(*) FROM all_counts)";
    until("nothing remains", async || query(&address, remaining) == "0").await;
}
