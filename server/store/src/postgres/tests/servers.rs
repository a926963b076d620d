//! Several servers on one database: two servers give every guarantee of a single one.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures_util::future::join_all;
use parcelo_domain::{
    Changes, State,
    sample::TEST_AUTHOR,
    webhooks::{LEASE_MILLIS, RetryDecision},
};
use tokio::sync::Barrier;

use crate::postgres::test_util::cluster::{
    commit_until_known, database, empty_database, new_store, query, run_sql,
    set_connections_allowed, two_servers, writer_pid,
};
use crate::{
    CommitOutcome, Engine, Store, StoreError,
    postgres::{Address, address::UnsafeSettings},
    tests::conformance::{
        NOW, SECRET, changes_to, create, create_parcel, move_parcel, row, sandbox,
        webhooks::{endpoint, enqueue, lease, outcome},
    },
    waiting::until,
};

#[tokio::test(flavor = "multi_thread")]
async fn sequences_behind_their_tables_are_advanced() {
    let Some((store, address)) = new_store().await else { return };
    store.account("shop", "acc_1".to_owned(), NOW).await.unwrap();
    let parcel = create_parcel(&store, sandbox(1), "SB-FIRST-0001").await;
    store.close().await;
    // As logical replication copies a database: rows, and no sequences.
    run_sql(&address, "ALTER SEQUENCE parcel_rows RESTART; ALTER SEQUENCE accounts_id_seq RESTART");
    let store = Store::connect(address, SECRET).await.unwrap();
    assert!(create_parcel(&store, sandbox(1), "SB-NEXT-00001").await.key > parcel.key);
    store.account("other", "acc_2".to_owned(), NOW).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_started_together_create_one_schema_and_secret() {
    let Some(address) = database() else { return };
    let starts = (1..=4).map(|number| Store::connect(address.clone(), [number; 32]));
    let stores: Vec<_> = join_all(starts).await.into_iter().map(Result::unwrap).collect();
    assert!(stores.iter().all(|store| store.secret() == stores[0].secret()));
    let claims = join_all(stores.iter().map(Store::claim_new)).await;
    assert_eq!(claims.into_iter().filter(|claim| *claim.as_ref().unwrap()).count(), 1);
    let accounts = stores
        .iter()
        .zip(1..)
        .map(|(store, number): (_, u8)| store.account("default", format!("acc_{number}"), NOW));
    let accounts: Vec<_> = join_all(accounts).await.into_iter().map(Result::unwrap).collect();
    assert!(accounts.iter().all(|account| *account == accounts[0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_on_two_servers_creates_one_parcel() {
    let Some(stores) = two_servers().await else { return };
    for round in 0..10 {
        let barrier = Arc::new(Barrier::new(64));
        let tasks = (0..64).map(|place| {
            let (store, barrier) = (stores[place % 2].clone(), Arc::clone(&barrier));
            let changes = create(sandbox(1), &format!("SB-ROUND-{round:04}"), round);
            tokio::spawn(async move {
                barrier.wait().await;
                commit(&store, changes).await
            })
        });
        let answers: Vec<_> =
            join_all(tasks.collect::<Vec<_>>()).await.into_iter().map(Result::unwrap).collect();
        let first = answers.iter().filter(|(outcome, _)| *outcome == CommitOutcome::Committed);
        let is_replay =
            |outcome: &CommitOutcome| matches!(outcome, CommitOutcome::IdempotencyTaken(_));
        let replays = answers.iter().filter(|(outcome, _)| is_replay(outcome)).count();
        // The caller that created the parcel may have been answered too late. Its repeated request then got a replay.
        let was_late = answers.iter().any(|(outcome, late)| *late && is_replay(outcome));
        let first = first.count();
        assert!(first == 1 || first == 0 && was_late, "{answers:?}");
        assert_eq!(first + replays, 64, "{answers:?}");
    }
}

/// Commits changes, again under their key until the outcome is known, as callers do. Returns the outcome, and `true` if
/// the first answer came too late, as some do on a slow machine.
async fn commit(store: &Store, changes: Changes) -> (CommitOutcome, bool) {
    let mut outcome = store.commit(changes.clone()).await;
    let is_late = outcome == CommitOutcome::Busy;
    while outcome == CommitOutcome::Busy {
        outcome = store.commit(changes.clone()).await;
    }
    (outcome, is_late)
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_in_opposite_orders_on_two_servers_never_deadlock() {
    let Some(stores) = two_servers().await else { return };
    stores[0].set_endpoint(endpoint(sandbox(1)), &TEST_AUTHOR).await.unwrap();
    let all = (0..400_u32).map(|number| {
        // The same numbers in opposite orders, under different keys.
        let place = if number < 200 { number } else { 399 - number };
        let changes = create(sandbox(1), &format!("SB-CROSS-{place:04}"), number);
        let store = stores[usize::from(number >= 200)].clone();
        tokio::spawn(async move {
            match commit(&store, changes).await {
                (CommitOutcome::IdempotencyTaken(_), true) => CommitOutcome::Committed,
                (outcome, _) => outcome,
            }
        })
    });
    let answers = join_all(all.collect::<Vec<_>>()).await;
    let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
    let count = |outcome| answers.iter().filter(|answer| **answer == outcome).count();
    assert_eq!(count(CommitOutcome::Committed), 200);
    assert_eq!(count(CommitOutcome::DuplicateTracking), 200);
    let events = stores[1].deliveries(sandbox(1), 1_000).await.unwrap();
    assert_eq!(events.len(), 200, "one event for each order");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_event_is_leased_by_two_servers() {
    let Some(stores) = two_servers().await else { return };
    let tenant = sandbox(1);
    stores[0].set_endpoint(endpoint(tenant), &TEST_AUTHOR).await.unwrap();
    for event in 0..40 {
        enqueue(&stores[0], tenant, event).await;
    }
    let rounds = (0..8).map(|round| {
        let store = stores[round % 2].clone();
        tokio::spawn(async move { lease(&store, tenant, 7, NOW).await })
    });
    let leased = join_all(rounds.collect::<Vec<_>>()).await;
    let mut events: Vec<_> =
        leased.into_iter().flat_map(Result::unwrap).map(|lease| lease.attempt.event).collect();
    let all = events.len();
    events.sort_unstable();
    events.dedup();
    assert_eq!(events.len(), all, "none twice");
    while !lease(&stores[1], tenant, 9, NOW).await.is_empty() {}
    // A server that starts beside another one takes none of its leases.
    stores[1].end_leases(NOW.plus(1)).await.unwrap();
    let theirs = lease(&stores[1], tenant, 99, NOW.plus(1)).await.len();
    assert!(theirs < 40, "{theirs}");
    assert_eq!(lease(&stores[1], tenant, 99, NOW.plus(LEASE_MILLIS)).await.len(), 40 - theirs);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_enqueued_while_its_predecessor_is_settled_is_sent() {
    let Some(stores) = two_servers().await else { return };
    let tenant = sandbox(1);
    stores[0].set_endpoint(endpoint(tenant), &TEST_AUTHOR).await.unwrap();
    for number in 0..40 {
        let number = format!("SB-SKEW-{number:05}");
        let parcel = create_parcel(&stores[0], tenant, &number).await;
        let first = lease(&stores[0], tenant, 1, NOW).await.remove(0);
        let (barrier, change) = (
            Arc::new(Barrier::new(2)),
            changes_to(&parcel, vec![move_parcel(&parcel, State::InTransit, 5)]),
        );
        let (store, settling_store) = (stores[0].clone(), stores[1].clone());
        let other = Arc::clone(&barrier);
        let commit = tokio::spawn(async move {
            other.wait().await;
            store.commit(change).await
        });
        barrier.wait().await;
        let delivered = RetryDecision::Delivered;
        settling_store.settle(first, outcome(NOW.plus(1), 200), delivered).await.unwrap();
        assert_eq!(commit.await.unwrap(), CommitOutcome::Committed);
        let next = lease(&stores[1], tenant, 9, NOW.plus(9)).await;
        assert_eq!(next.len(), 1, "{number}: it waits for an event that is delivered");
        for lease in next {
            stores[1].settle(lease, outcome(NOW.plus(9), 200), delivered).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn terminated_connections_neither_lose_nor_repeat_writes() {
    let Some((store, address)) = new_store().await else { return };
    let (mut committed, mut unknown) = (0, 0);
    for round in 0..12_u32 {
        let connection = writer_pid(&store).await;
        let writes = (0..40_u32).map(|place| {
            let number = round * 40 + place;
            let changes = create(sandbox(1), &format!("SB-CUT-{number:06}"), number);
            let store = store.clone();
            tokio::spawn(async move { store.commit(changes).await })
        });
        let writes: Vec<_> = writes.collect();
        run_sql(&address, &format!("SELECT pg_terminate_backend({connection})"));
        for (place, answer) in (0_u32..).zip(join_all(writes).await) {
            let number = round * 40 + place;
            let exists = async || row(&store, &format!("SB-CUT-{number:06}")).await.is_some();
            match answer.unwrap() {
                CommitOutcome::Committed => {
                    committed += 1;
                    assert!(exists().await, "{number} was acknowledged");
                }
                CommitOutcome::Busy | CommitOutcome::Unreachable | CommitOutcome::Unknown => {
                    unknown += 1;
                    // The caller repeats the same request under the same key.
                    let again = create(sandbox(1), &format!("SB-CUT-{number:06}"), number);
                    let outcome = commit_until_known(&store, again).await;
                    let is_done = matches!(
                        outcome,
                        CommitOutcome::Committed | CommitOutcome::IdempotencyTaken(_)
                    );
                    assert!(is_done, "{outcome:?}");
                    assert!(exists().await);
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(committed + unknown, 480);
    let activity = store.activity(sandbox(1), 0).await.unwrap();
    assert_eq!(activity.iter().map(|day| day.parcels).sum::<u64>(), 480, "counted once each");
    assert!(store.is_writable());
    // The writer may be replacing the connection that was ended last.
    wait_until_readable(&store, true).await;
}

/// Waits until the database is readable (`true`) or unreadable (`false`) for a server.
async fn wait_until_readable(store: &Store, expected: bool) {
    until("its readiness has changed", async || store.is_readable() == expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_its_database_is_not_ready_until_it_is_back() {
    let Some((store, address)) = new_store().await else { return };
    wait_until_readable(&store, true).await;
    set_connections_allowed(&address, false);
    wait_until_readable(&store, false).await;
    let refused = store.account("default", "acc_1".to_owned(), NOW).await;
    assert!(matches!(refused, Err(StoreError::Unreachable { .. })), "{refused:?}");
    assert!(store.read_only_reason().is_none(), "the store waits for it");
    set_connections_allowed(&address, true);
    wait_until_readable(&store, true).await;
    store.account("default", "acc_1".to_owned(), NOW).await.unwrap();
    assert!(!store.is_new().await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_server_notices_a_lost_database() {
    let Some((store, address)) = new_store().await else { return };
    let (writes, is_over) = (store.clone(), Arc::new(AtomicBool::new(false)));
    let should_stop = Arc::clone(&is_over);
    let stream = tokio::spawn(async move {
        for number in 0.. {
            if should_stop.load(Ordering::Relaxed) {
                break;
            }
            writes.commit(create(sandbox(1), &format!("SB-STREAM-{number:06}"), number)).await;
        }
    });
    set_connections_allowed(&address, false);
    wait_until_readable(&store, false).await;
    is_over.store(true, Ordering::Relaxed);
    stream.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_waits_without_limit_for_a_migration_by_another() {
    let Some(address) = empty_database() else { return };
    // Longer than any other lock is waited for, like a migration that creates an index on a large table.
    let migration = "BEGIN; SELECT pg_advisory_xact_lock(x'0070617263656C6F'::bigint); \
         SELECT pg_sleep(4); COMMIT";
    let other = address.clone();
    let migration_task = tokio::task::spawn_blocking(move || run_sql(&other, migration));
    let has_lock = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    // If the migration is over before the first check, the start does not have to wait.
    until("the migration has begun", async || {
        query(&address, has_lock) != "0" || migration_task.is_finished()
    })
    .await;
    Store::connect(address, SECRET).await.unwrap();
    migration_task.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_lose_orders_are_refused() {
    let Some(address) = database() else { return };
    let strict = Address { unsafe_settings: UnsafeSettings::Refuse, ..address.clone() };
    let refused = Store::connect(strict, SECRET).await.unwrap_err().to_string();
    assert!(refused.contains("fsync") && refused.contains("turn it on"), "{refused}");
    // A provider such as Neon turns this setting off by design.
    assert!(refused.contains("unsafe_settings=managed"), "{refused}");
    let managed = Address { unsafe_settings: UnsafeSettings::Managed, ..address };
    let store = Store::connect(managed, SECRET).await.unwrap();
    // The cluster of the tests has it off.
    let Engine::Postgres(engine) = &store.0 else { unreachable!("a store on PostgreSQL") };
    let setting = "SELECT current_setting('synchronous_commit')";
    let setting = engine.call(async move |db| db.value::<String>(setting, &[]).await).await;
    assert_eq!(setting.unwrap(), "on");
}
