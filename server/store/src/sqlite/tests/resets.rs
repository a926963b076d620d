//! A reset begins a new generation. The data of the previous one is counted, and then erased page by page while other
//! writes continue.

use std::path::Path;

use futures_util::future::join_all;
use parcelo_domain::{
    CarrierException, CarrierReport, CarrierRowId, Changes, Millis, ParcelRow, Scan, State, Step,
    StoreOp, Tenant, credentials::CarrierScope, sample::TEST_AUTHOR,
};
use parcelo_types::{Awb, Environment, internal::check_list, model::Deleted};
use rusqlite::Connection;
use ulid::Ulid;

use super::{
    TestFile,
    conformance::{
        NOW, SECRET, apply, carriers::carrier_scan, commit, create, credential, empty_changes,
        event, manifest, move_parcel, order, row, sandbox, webhooks::endpoint,
    },
};
use crate::{
    CommitOutcome, Store,
    erase::add_counts,
    sqlite::{
        connection, identity,
        migrations::MIGRATIONS,
        tests::{begin_reset, erase_some},
    },
    waiting::until,
};

const NUMBER: &str = "SB-FIRST-0001";

async fn fill(store: &Store, tenant: Tenant, from: u32, orders: u32) {
    let all =
        (from..from + orders).map(|n| store.commit(create(tenant, &format!("SB-FILL-{n:06}"), n)));
    assert!(join_all(all).await.iter().all(|answer| *answer == CommitOutcome::Committed));
}

fn exception(parcel: &ParcelRow) -> StoreOp {
    let location = "Hub".to_owned();
    let scan = Scan { state: State::Delivered, at: NOW, location, description: None };
    let report =
        CarrierReport { carrier: CarrierRowId(1), event_id: "scan-2".to_owned(), code: None, scan };
    let (tenant, from) = (parcel.tenant, parcel.state);
    let exception = CarrierException { tenant, parcel: parcel.key, from, report, refused_at: NOW };
    StoreOp::LogCarrierException(Box::new(exception))
}

/// Returns operations that give a parcel a history, carriers' events and a manifest.
fn full_history(parcel: &ParcelRow, manifest_id: u128) -> Vec<StoreOp> {
    vec![
        move_parcel(parcel, State::InTransit, 0),
        carrier_scan(parcel, 1, "scan-1"),
        exception(parcel),
        manifest(parcel.tenant, vec![parcel.key], manifest_id),
    ]
}

/// Creates everything that a sandbox can have: an order with a due step, a history, a manifest, carriers' events,
/// delivered and undelivered webhooks.
async fn create_full_sandbox(store: &Store) -> ParcelRow {
    let key = credential("car", 1, Environment::Sandbox);
    store.insert_credential::<CarrierScope>(key, &TEST_AUTHOR).await.unwrap();
    store.set_endpoint(endpoint(sandbox(1)), &TEST_AUTHOR).await.unwrap();
    assert_eq!(store.commit(create(sandbox(1), NUMBER, 1)).await, CommitOutcome::Committed);
    let parcel = row(store, NUMBER).await.unwrap();
    apply(store, full_history(&parcel, 1)).await;
    let step = Step { index: 0, due: NOW };
    apply(store, vec![StoreOp::Schedule { parcel: parcel.key, step }]).await;
    row(store, NUMBER).await.unwrap()
}

/// Returns what a reset has counted in the sandbox's first generation.
async fn reset_counts(store: &Store) -> Deleted {
    store.count_once(sandbox(1).number()).await.unwrap()
}

/// Erases a page of a reset's data, of at most `rows` rows. Returns what was erased, and whether there is more.
async fn erase_page(store: &Store, rows: u64) -> (Deleted, bool) {
    let deleted = erase_some(store, sandbox(1), rows).await;
    (deleted, row_count(store, "ended_generations") > 0)
}

/// Counts the rows of the tables that a reset empties.
fn rows(store: &Store) -> Vec<(String, i64)> {
    let tables = [
        "parcels",
        "events",
        "idempotency",
        "manifests",
        "manifest_parcels",
        "carrier_events",
        "carrier_exceptions",
        "outbox",
        "webhook_attempts",
        "ended_generations",
    ];
    let count = |db: &Connection| {
        let count = |table: &&str| {
            let sql = format!("SELECT count(*) FROM {table}");
            Ok(((*table).to_owned(), db.query_row(&sql, [], |row| row.get(0))?))
        };
        tables.iter().map(count).filter(|row| !matches!(row, Ok((_, 0)))).collect()
    };
    store.read(count).unwrap()
}

fn expected_rows(rows: &[(&str, i64)]) -> Vec<(String, i64)> {
    rows.iter().map(|(table, rows)| ((*table).to_owned(), *rows)).collect()
}

async fn wait_until_erased(store: &Store) {
    let is_over = || rows(store).iter().all(|(table, _)| table != "ended_generations");
    until("the reset is finished", async || is_over()).await;
}

#[tokio::test]
async fn a_reset_hides_earlier_data_from_every_read_at_once() {
    let store = Store::memory(SECRET).unwrap();
    let parcel = create_full_sandbox(&store).await;
    let sent = store.lease(vec![(sandbox(1), 9)], NOW).await.unwrap().events;
    let sent = &sent[0].1;
    begin_reset(&store, sandbox(1)).await;

    let (number, key) =
        (&parcel.tracking_number, create(sandbox(1), NUMBER, 1).idempotency_record.unwrap().key);
    assert_eq!(store.parcel(Environment::Sandbox, number).await.unwrap(), None);
    assert!(store.parcel_with_order(Environment::Sandbox, number).await.unwrap().is_none());
    assert_eq!(store.idempotency_record(&key).await.unwrap(), None);
    let listed = store.list(sandbox(1), check_list([]).unwrap()).await.unwrap();
    assert_eq!((listed.0.len(), listed.1), (0, 0));
    let filtered = check_list([("country".into(), "EC".into())]).unwrap();
    assert_eq!(store.list(sandbox(1), filtered).await.unwrap().1, 0);
    assert_eq!(store.activity(sandbox(1), 0).await.unwrap(), []);
    assert_eq!(store.creations().await.unwrap(), []);
    assert_eq!(store.due(NOW, 9).await.unwrap(), []);
    assert_eq!(store.due_for_tenant(sandbox(1), NOW, 9).await.unwrap(), []);
    assert_eq!(store.next_due(Millis(0)).await.unwrap(), None);
    let awb = Awb::parse("176-12345675").unwrap();
    let inputs = store.manifest_inputs(sandbox(1), &awb, &[NUMBER.to_owned()]).await.unwrap();
    assert!(inputs.known.is_none() && matches!(inputs.found[..], [Ok(None)]));
    assert!(store.manifest(sandbox(1), Ulid::from_parts(1, 1)).await.unwrap().is_none());
    assert!(!store.has_carrier_event(CarrierRowId(1), "scan-1").await.unwrap());
    assert_eq!(store.carrier_exceptions(sandbox(1), 9).await.unwrap(), []);

    assert!(store.deliveries(sandbox(1), 9).await.unwrap().is_empty());
    assert!(!store.has_missed(sandbox(1)).await.unwrap());
    assert!(!store.has_event(sandbox(1), sent.attempt.event).await.unwrap());
    assert!(store.payload(sent).await.unwrap().is_none());

    let expect = vec![(parcel.key, parcel.version)];
    let ops = vec![move_parcel(&parcel, State::InTransit, 0)];
    let late = store.commit(Changes { expect, ops, ..empty_changes() }).await;
    assert_eq!(late, CommitOutcome::VersionConflict, "a decision about deleted parcels");
}

#[tokio::test]
async fn numbers_keys_and_air_waybills_are_free_during_a_reset() {
    let store = Store::memory(SECRET).unwrap();
    let old = create_full_sandbox(&store).await;
    let before = row_count(&store, "outbox");
    begin_reset(&store, sandbox(1)).await;
    // Another account reuses the number, and another order of this account reuses the key.
    let theirs = Changes { idempotency_record: None, ..create(sandbox(2), NUMBER, 9) };
    assert_eq!(store.commit(theirs).await, CommitOutcome::Committed);
    commit(&store, create(sandbox(1), "SB-SECOND-0001", 1)).await;
    let new = row(&store, "SB-SECOND-0001").await.unwrap();
    apply(&store, full_history(&new, 2)).await;
    assert!(row(&store, NUMBER).await.unwrap().key > old.key);
    let total = reset_counts(&store).await;
    let (deleted, is_more) = erase_page(&store, u64::MAX).await;
    assert!(!is_more);
    let expected = Deleted::default()
        .with_parcels(1)
        .with_labels(1)
        .with_manifests(1)
        .with_tracking_events(3)
        .with_idempotency_keys(1)
        .with_webhook_deliveries(before.unsigned_abs());
    assert_eq!((deleted, total), (expected, expected), "as it was when the reset began");
    let deliveries = store.deliveries(sandbox(1), 99).await.unwrap().len();
    assert!(deliveries > 0, "later events are sent");
    let remaining = expected_rows(&[
        ("parcels", 2),
        ("events", 1),
        ("idempotency", 1),
        ("manifests", 1),
        ("manifest_parcels", 1),
        ("carrier_events", 1),
        ("carrier_exceptions", 1),
        ("outbox", i64::try_from(deliveries).unwrap()),
    ]);
    assert_eq!(rows(&store), remaining, "only later rows stay");
    assert!(row(&store, NUMBER).await.is_some() && row(&store, "SB-SECOND-0001").await.is_some());
    assert_eq!(store.list(sandbox(1), check_list([]).unwrap()).await.unwrap().1, 1);
    assert!(store.has_carrier_event(CarrierRowId(1), "scan-1").await.unwrap());
    assert_eq!(store.carrier_exceptions(sandbox(1), 9).await.unwrap().len(), 1);
}

fn row_count(store: &Store, table: &str) -> i64 {
    rows(store).iter().find(|(name, _)| name == table).map_or(0, |(_, rows)| *rows)
}

#[tokio::test]
async fn pages_are_bounded_and_delete_all_counted_rows() {
    let store = Store::memory(SECRET).unwrap();
    let parcel = create_full_sandbox(&store).await;
    for n in 0..60 {
        let now = row(&store, NUMBER).await.unwrap();
        let event = event(&now, State::InTransit, 0);
        apply(&store, vec![StoreOp::AddEvent { parcel: parcel.key, event }]).await;
        fill(&store, sandbox(1), n + 10, 1).await;
    }
    let changed = || {
        let sql = "SELECT total_changes()";
        store.read(|db| db.query_row(sql, [], |row| row.get::<_, i64>(0))).unwrap()
    };
    begin_reset(&store, sandbox(1)).await;
    let all = reset_counts(&store).await;
    assert_eq!((all.parcels, all.tracking_events, all.idempotency_keys), (61, 183, 61));
    let (mut pages, mut erased) = (0, Deleted::default());
    loop {
        let before = changed();
        let (deleted, is_more) = erase_page(&store, 50).await;
        // In addition to its rows, a page records its highest parcel and deletes all terms of its last one.
        assert!(changed() - before <= 50 + 2 + 8);
        (pages, erased) = (pages + 1, add_counts(erased, deleted));
        if !is_more {
            break assert_eq!(erased, all);
        }
    }
    assert!((4..30).contains(&pages), "{pages}");
    assert_eq!(rows(&store), []);
}

#[tokio::test]
async fn a_reset_goes_on_after_a_restart() {
    let (test_file, store) = TestFile::with_store();
    fill(&store, sandbox(1), 0, 300).await;
    begin_reset(&store, sandbox(1)).await;
    erase_page(&store, 100).await;
    assert!(!rows(&store).is_empty());
    store.close().await;
    let store = test_file.open();
    assert_eq!(row(&store, "SB-FILL-000299").await, None, "the parcels stay deleted");
    store.resume_resets().await.unwrap();
    wait_until_erased(&store).await;
    assert_eq!(rows(&store), []);
}

#[tokio::test]
async fn a_reset_continues_after_its_caller_is_dropped() {
    let (_test_file, store) = TestFile::with_store();
    fill(&store, sandbox(1), 0, 300).await;
    let mut reset = Box::pin(store.reset(sandbox(1)));
    assert!(futures_util::FutureExt::now_or_never(&mut reset).is_none());
    drop(reset);
    until("erasure begins", async || row(&store, "SB-FILL-000000").await.is_none()).await;
    wait_until_erased(&store).await;
    assert_eq!(rows(&store), []);
}

#[tokio::test]
async fn a_repeated_reset_joins_the_running_one() {
    let (_test_file, store) = TestFile::with_store();
    fill(&store, sandbox(1), 0, 500).await;
    let deleted = join_all((0..3).map(|_| store.reset(sandbox(1)))).await;
    let numbers: Vec<_> = deleted.iter().map(|one| one.as_ref().unwrap().parcels).collect();
    assert_eq!(numbers, [500, 500, 500]);
    assert_eq!(store.reset(sandbox(1)).await.unwrap(), Deleted::default());
}

#[tokio::test]
async fn resets_are_answered_while_nothing_is_erased_yet() {
    let (_test_file, store) = TestFile::with_store();
    fill(&store, sandbox(1), 0, 2_100).await;
    fill(&store, sandbox(2), 2_100, 10).await;
    let lock = store.sqlite().unwrap().0.state.mass_writes.lock().await;
    assert_eq!(store.reset(sandbox(1)).await.unwrap().parcels, 2_100);
    assert_eq!(store.reset(sandbox(2)).await.unwrap().parcels, 10);
    assert_eq!(row_count(&store, "parcels"), 2_110);
    drop(lock);
    wait_until_erased(&store).await;
    assert_eq!(rows(&store), []);
}

#[tokio::test]
async fn counted_rows_are_erased_while_another_reset_still_counts() {
    let (_test_file, store) = TestFile::with_store();
    // Like a request that never finishes counting.
    let counting = store.active_resets().add_request(sandbox(1));
    fill(&store, sandbox(1), 0, 300).await;
    assert_eq!(store.reset(sandbox(1)).await.unwrap().parcels, 300);
    fill(&store, sandbox(1), 300, 5).await;
    let lock = counting.lock().await;
    let other = tokio::spawn({
        let store = store.clone();
        async move { store.reset(sandbox(1)).await.unwrap().parcels }
    });
    until("the first is erased", async || row_count(&store, "parcels") == 5).await;
    drop(lock);
    drop(counting);
    assert_eq!(other.await.unwrap(), 5);
    wait_until_erased(&store).await;
    assert_eq!(rows(&store), []);
}

#[tokio::test]
async fn the_log_is_truncated_once_no_reader_uses_it() {
    let (test_file, store) = TestFile::with_store();
    let log = connection::wal_path(&test_file.file);
    fill(&store, sandbox(1), 0, 100).await;
    let reader = Connection::open(&test_file.file).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM parcels;").unwrap();
    assert_eq!(store.reset(sandbox(1)).await.unwrap().parcels, 100);
    wait_until_erased(&store).await;
    store.truncate_log().await;
    assert!(contains_text(&log, "Ana P"), "a reader may still need it");
    drop(reader);
    until("it is tried again", async || {
        store.truncate_log().await;
        std::fs::metadata(&log).unwrap().len() == 0
    })
    .await;
    assert!(!contains_text(&test_file.file, "Ana P"));
    assert_eq!(store.commit(create(sandbox(1), NUMBER, 1)).await, CommitOutcome::Committed);
}

fn contains_text(file: &Path, words: &str) -> bool {
    let bytes = std::fs::read(file).unwrap();
    bytes.windows(words.len()).any(|window| window == words.as_bytes())
}

#[tokio::test]
async fn a_purge_subtracts_only_parcels_that_no_reset_deletes() {
    let store = Store::memory(SECRET).unwrap();
    fill(&store, sandbox(1), 0, 3).await;
    begin_reset(&store, sandbox(1)).await;
    fill(&store, sandbox(1), 10, 2).await;
    let total = async || store.list(sandbox(1), check_list([]).unwrap()).await.unwrap().1;
    assert_eq!(total().await, 2);
    assert_eq!(store.purge(NOW).await.unwrap().parcels, 2);
    let counts = "SELECT sum(total) FROM parcel_counts";
    let counts: i64 = store.read(|db| db.query_row(counts, [], |row| row.get(0))).unwrap();
    assert_eq!((total().await, counts), (0, 3), "the purge subtracts only its own two parcels");
    fill(&store, sandbox(1), 20, 1).await;
    assert_eq!(erase_page(&store, u64::MAX).await.0.parcels, 3);
    assert_eq!(total().await, 1);
}

/// Creates a file of schema 23 in the middle of a reset: two parcels, one of which no caller sees any more, each with
/// its record, its event and its manifest.
fn create_half_reset_file(file: &Path) {
    let db = Connection::open(file).unwrap();
    db.execute_batch(&MIGRATIONS[..23].concat()).unwrap();
    db.pragma_update(None, "user_version", 23).unwrap();
    identity::mark_as_ours(&db).unwrap();
    let secrets = "INSERT INTO meta VALUES ('secret', ?1), ('number key', randomblob(32))";
    db.execute(secrets, [SECRET]).unwrap();
    let order = serde_json::to_string(&order("key-1")).unwrap();
    for row in 1..=2 {
        let parcel = "INSERT INTO parcels (id, version, tenant, environment, number, public_id, state, created_at, \
             updated_at, origin, destination, country, promised_day, label_version, last_sequence, order_json) \
             VALUES (?1, 1, 3, 1, 'SB-HALF-00000' || ?1, zeroblob(16), 2, ?1, ?1, '', '', 'EC', 0, 1, 2, ?2)";
        db.execute(parcel, (row, &order)).unwrap();
        db.execute_batch(&format!(
            "INSERT INTO events VALUES ({row}, 3, 5, 1, 'Hub', NULL); \
             INSERT INTO manifests VALUES ({row}, 3, '176-1234567{row}', x'{row:032x}', 1, x'7b7d'); \
             INSERT INTO idempotency VALUES ({row}, x'{row:032x}', 3, 1, x'', x''); \
             INSERT INTO outbox (id, tenant, event_id, kind, happened_at, created_at, state, due, after_lease) \
             VALUES ({row}, 3, x'{row:032x}', 0, 1, 1, 1, 1, 0);"
        ))
        .unwrap();
    }
    db.execute_batch(
        "INSERT INTO parcel_counts VALUES (3, 0, 2, 'EC', 1); \
         DELETE FROM outbox_counts; INSERT INTO outbox_counts VALUES (3, 0, 1); \
         INSERT INTO resets (tenant, parcel, manifest, idempotency, outbox) VALUES (3, 1, 1, 1, 1);",
    )
    .unwrap();
}

#[tokio::test]
async fn a_half_done_reset_of_schema_23_is_completed() {
    let test_file = TestFile::new();
    create_half_reset_file(&test_file.file);
    let store = test_file.open();
    assert_eq!(row(&store, "SB-HALF-000001").await, None);
    let remaining = async || {
        let listed = store.list(sandbox(1), check_list([]).unwrap()).await.unwrap();
        (listed.0.len(), listed.1, store.deliveries(sandbox(1), 9).await.unwrap().len())
    };
    assert_eq!(remaining().await, (1, 1, 1));
    assert_eq!(store.backlogs().await.unwrap()[0].events, 1);
    assert_eq!(reset_counts(&store).await.parcels, 1);
    store.resume_resets().await.unwrap();
    wait_until_erased(&store).await;
    let kept = ["parcels", "events", "idempotency", "manifests", "outbox"].map(|table| (table, 1));
    assert_eq!(rows(&store), expected_rows(&kept));
    assert_eq!(remaining().await, (1, 1, 1));
    assert_eq!(store.reset(sandbox(1)).await.unwrap().parcels, 1);
}
