//! Statements that are sent to PostgreSQL: their number in a group, and the list of all for `plans.rs`.

use futures_util::{FutureExt as _, future::join_all};
use parcelo_domain::{Changes, State, sample::TEST_AUTHOR};
use tokio::task::LocalSet;

use crate::postgres::{
    connection::Connector,
    generations::Generations,
    test_util::{
        cluster::{database, writer_pid},
        statements::STATEMENT_COUNTS,
    },
};
use crate::{
    CommitOutcome, Store,
    tests::conformance::{
        NOW, SECRET, changes_to, create, create_parcel, move_parcel, sandbox, webhooks::endpoint,
    },
};

/// Opens a store on a new database. Returns it with the process id of its writer's backend.
async fn store() -> Option<(Store, i32)> {
    let store = Store::connect(database()?, SECRET).await.unwrap();
    let writer = writer_pid(&store).await;
    Some((store, writer))
}

/// Returns the number of statements that the writer sends for these changes, in one group.
async fn count_statements((store, writer): &(Store, i32), changes: Vec<Changes>) -> usize {
    let sent = || STATEMENT_COUNTS.lock().unwrap()[writer];
    let pause = store.pause_writes().await.unwrap();
    let before = sent();
    let mut commits: Vec<_> =
        changes.into_iter().map(|changes| Box::pin(store.commit(changes))).collect();
    for commit in &mut commits {
        assert!(commit.now_or_never().is_none(), "it waits behind the pause");
    }
    drop(pause);
    for outcome in join_all(commits).await {
        assert_eq!(outcome, CommitOutcome::Committed);
    }
    // The commit of the pause itself always adds the same number.
    sent() - before
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_of_creates_takes_as_many_statements_as_one() {
    let Some(store) = store().await else { return };
    for with_webhook in [false, true] {
        if with_webhook {
            store.0.set_endpoint(endpoint(sandbox(1)), &TEST_AUTHOR).await.unwrap();
        }
        let mut counts = Vec::new();
        for (round, orders) in [(0_u32, 1_u32), (1, 64)] {
            let first = 1_000 * round + 10_000 * u32::from(with_webhook);
            let creates = (first..first + orders)
                .map(|number| create(sandbox(1), &format!("SB-MANY-{number:06}"), number));
            counts.push(count_statements(&store, creates.collect()).await);
        }
        assert_eq!(counts[0], counts[1], "with a webhook: {with_webhook}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_of_creates_does_not_read_the_parcels_of_a_new_database() {
    let Some(address) = database() else { return };
    let store = Store::connect(address.clone(), SECRET).await.unwrap();
    create_parcel(&store, sandbox(1), "SB-NEW-000001").await;
    let scans = async {
        let db = Connector::for_writer(&address).unwrap().connect().await.unwrap();
        db.run("BEGIN").await.unwrap();
        Generations::lock_current(&db, [sandbox(1)], &[]).await.unwrap();
        let sql = "SELECT (seq_scan + idx_scan)::bigint FROM pg_stat_xact_user_tables \
            WHERE relname = 'parcels'";
        let scans: i64 = db.value(sql, &[]).await.unwrap();
        db.run("COMMIT").await.unwrap();
        scans
    };
    assert_eq!(LocalSet::new().run_until(scans).await, 0);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_moves_in_one_commit_take_as_many_statements_as_one() {
    let Some(store) = store().await else { return };
    store.0.set_endpoint(endpoint(sandbox(1)), &TEST_AUTHOR).await.unwrap();
    let mut parcels = Vec::new();
    for number in 0..65 {
        parcels.push(create_parcel(&store.0, sandbox(1), &format!("SB-MOVE-{number:06}")).await);
    }
    let mut counts = Vec::new();
    for parcels in [&parcels[..1], &parcels[1..]] {
        let mut all = changes_to(&parcels[0], vec![]);
        all.expect.clear();
        for parcel in parcels {
            all.expect.push((parcel.key, parcel.version));
            all.ops.push(move_parcel(parcel, State::InTransit, 5));
        }
        counts.push(count_statements(&store, vec![all]).await);
    }
    assert_eq!(counts[0], counts[1]);
    let waiting = store.0.lease(vec![(sandbox(1), 200)], NOW.plus(60_000)).await.unwrap();
    assert_eq!(waiting.events.len(), 65, "the first event of each parcel is due, and no other");
}
