//! Races between servers: one server acts between two statements of another one. An open transaction of the test
//! represents the other server.

use futures_util::{FutureExt as _, future::join_all};
use parcelo_domain::{IdempotencyRecord, StoreOp, idempotency::LIFETIME_MILLIS};
use parcelo_types::internal::ListQuery;

use crate::postgres::test_util::cluster::{store_and_client, until_blocked};
use crate::{
    CommitOutcome, Engine, Store,
    tests::conformance::{NOW, changes_to, commit, create, create_parcel, row, sandbox},
    waiting::{until, wait_for_value},
};

fn record_of(number: &str, key: u32) -> IdempotencyRecord {
    create(sandbox(1), number, key).idempotency_record.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_keeps_a_record_that_is_being_renewed() {
    let Some((store, client, _)) = store_and_client().await else { return };
    commit(&store, create(sandbox(1), "SB-PURGED-0001", 1)).await;
    let later = NOW.plus(LIFETIME_MILLIS);
    // As another server's group does it, before its commit.
    client.batch_execute("BEGIN").await.unwrap();
    let renewed = client.execute("UPDATE idempotency SET first_seen = $1", &[&later.0]).await;
    assert_eq!(renewed.unwrap(), 1);
    let purge = tokio::spawn(async move { (store.purge_records(later).await.unwrap(), store) });
    until_blocked(&client, 1, || purge.is_finished()).await;
    client.batch_execute("COMMIT").await.unwrap();
    let (purged, store) = purge.await.unwrap();
    assert_eq!(purged, 0, "the renewed record is valid when it is checked again");
    let remaining: i64 =
        client.query_one("SELECT count(*) FROM idempotency", &[]).await.unwrap().get(0);
    assert_eq!(remaining, 1);
    assert_eq!(store.purge_records(later.plus(LIFETIME_MILLIS)).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_waits_for_an_open_group_and_counts_all_of_it() {
    let Some((store, client, address)) = store_and_client().await else { return };
    let other = Store::connect(address, [1; 32]).await.unwrap();
    // The group is not the first to write for the sandbox, so it does not insert the row in `generations`.
    create_parcel(&store, sandbox(1), "SB-OPEN-0000").await;
    // The second pause keeps the order's group open.
    let first = store.pause_writes().await.unwrap();
    let mut order = Box::pin(store.commit(create(sandbox(1), "SB-OPEN-0001", 1)));
    assert!((&mut order).now_or_never().is_none());
    let mut second = Box::pin(store.pause_writes());
    assert!((&mut second).now_or_never().is_none());
    drop(first);
    let second = second.await.unwrap();
    let reset = tokio::spawn(async move { other.reset(sandbox(1)).await.unwrap() });
    until_blocked(&client, 1, || reset.is_finished()).await;
    drop(second);
    assert_eq!(order.await, CommitOutcome::Committed);
    assert_eq!(reset.await.unwrap().parcels, 2, "it counts orders acknowledged before it");
    assert!(row(&store, "SB-OPEN-0001").await.is_none());
    assert_eq!(store.idempotency_record(&record_of("SB-OPEN-0001", 1).key).await.unwrap(), None);
    let count_rows = "SELECT (SELECT count(*) FROM parcels) + (SELECT count(*) FROM idempotency)";
    let count = async || client.query_one(count_rows, &[]).await.unwrap().get::<_, i64>(0);
    until("nothing is left", async || count().await == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_row_fails_only_the_write_that_needs_it() {
    let Some((store, client, _)) = store_and_client().await else { return };
    let parcel = create_parcel(&store, sandbox(1), "SB-LOCKED-0001").await;
    client.batch_execute("BEGIN; SELECT 1 FROM parcels FOR UPDATE").await.unwrap();
    let pause = store.pause_writes().await.unwrap();
    let reprint = changes_to(&parcel, vec![StoreOp::Reprint { parcel: parcel.key, at: NOW }]);
    let mut writes = vec![Box::pin(store.commit(reprint.clone()))];
    for number in 0..3 {
        let order = create(sandbox(1), &format!("SB-BESIDE-{number:04}"), 10 + number);
        writes.push(Box::pin(store.commit(order)));
    }
    for write in &mut writes {
        assert!(write.now_or_never().is_none());
    }
    drop(pause);
    let outcomes = join_all(writes).await;
    let [locked, orders @ ..] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert_eq!(*locked, CommitOutcome::Busy, "it may be tried again");
    for (number, order) in orders.iter().enumerate() {
        // A caller waits for 5 s, of which the first write's two waits take 3 s: on a slow machine it may have gone.
        assert!(matches!(order, CommitOutcome::Committed | CommitOutcome::Busy), "{order:?}");
        let number = format!("SB-BESIDE-{number:04}");
        until("it is written", async || row(&store, &number).await.is_some()).await;
    }
    client.batch_execute("COMMIT").await.unwrap();
    // The first try may have been carried out after its caller was answered.
    let again = store.commit(reprint).await;
    let is_expected = matches!(again, CommitOutcome::Committed | CommitOutcome::VersionConflict);
    assert!(is_expected, "{again:?}");
    let label_version = row(&store, "SB-LOCKED-0001").await.unwrap().label_version;
    assert_eq!(label_version, parcel.label_version + 1, "reprinted once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_order_is_left_out_of_lists_and_hides_no_other() {
    let Some((store, client, _)) = store_and_client().await else { return };
    for number in ["SB-SOUND-0001", "SB-BROKEN-0001", "SB-SOUND-0002"] {
        create_parcel(&store, sandbox(1), number).await;
    }
    let damage = "UPDATE orders SET order_json = '{' \
         FROM parcels WHERE id = parcel AND number = 'SB-BROKEN-0001'";
    assert_eq!(client.execute(damage, &[]).await.unwrap(), 1);
    let (listed, total) = store.list(sandbox(1), ListQuery::default()).await.unwrap();
    assert_eq!((listed.len(), total), (2, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_counts_only_data_since_the_previous_reset() {
    let Some((store, client, _)) = store_and_client().await else { return };
    create_parcel(&store, sandbox(1), "SB-COUNTED-0001").await;
    // While someone has it locked, it cannot be erased.
    client.batch_execute("BEGIN; SELECT FROM parcels FOR UPDATE").await.unwrap();
    assert_eq!(store.reset(sandbox(1)).await.unwrap().parcels, 1);
    assert_eq!(store.reset(sandbox(1)).await.unwrap().parcels, 0, "it was deleted before");
    client.batch_execute("COMMIT").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_became_read_only_is_replaced() {
    let Some((store, ..)) = store_and_client().await else { return };
    let order = |number, key| create(sandbox(1), number, key);
    assert_eq!(store.commit(order("SB-BEFORE-0001", 1)).await, CommitOutcome::Committed);
    // As after a demotion in place: the session goes on, and cannot write any more.
    let demote = "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY";
    let Engine::Postgres(engine) = &store.0 else { unreachable!("a store on PostgreSQL") };
    engine.call(async move |db| db.run(demote).await).await.unwrap();
    assert_eq!(store.commit(order("SB-AFTER-0002", 2)).await, CommitOutcome::Unreachable);
    let outcome = wait_for_value("it is connected again", async || {
        let outcome = store.commit(order("SB-AFTER-0003", 3)).await;
        (outcome != CommitOutcome::Unreachable).then_some(outcome)
    });
    assert_eq!(outcome.await, CommitOutcome::Committed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_deletes_a_parcel_with_rows_that_others_just_changed() {
    let Some((store, client, _)) = store_and_client().await else { return };
    create_parcel(&store, sandbox(1), "SB-PURGED-0001").await;
    let insert = "INSERT INTO mails (parcel, sequence, recipient, kind, created_at) \
         SELECT id, 3, 0, 0, 0 FROM parcels; \
         INSERT INTO carrier_events (carrier, event_id, parcel, sequence) \
         SELECT 1, 'evt-1', id, 3 FROM parcels";
    client.batch_execute(insert).await.unwrap();
    // Two other servers: one settles the e-mail, and one accepts the carrier event again for another parcel.
    let change = "BEGIN; UPDATE mails SET attempts = attempts + 1; \
         UPDATE carrier_events SET parcel = parcel + 1000";
    client.batch_execute(change).await.unwrap();
    let purge = tokio::spawn(async move { store.purge(NOW).await.unwrap() });
    until_blocked(&client, 1, || purge.is_finished()).await;
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(purge.await.unwrap().parcels, 1);
    let remaining = "SELECT (SELECT count(*) FROM mails), (SELECT count(*) FROM carrier_events)";
    let remaining = client.query_one(remaining, &[]).await.unwrap();
    assert_eq!((remaining.get::<_, i64>(0), remaining.get::<_, i64>(1)), (0, 1));
}
