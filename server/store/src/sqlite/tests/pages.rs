//! Mass writes run in pages, with other writes in between, and erased data leaves no trace on the disk.

use std::path::Path;

use futures_util::{FutureExt, future::join_all};
use parcelo_domain::{Changes, Event, Millis, NewManifest, State, StoreOp, Tenant};
use parcelo_types::Awb;
use ulid::Ulid;

use super::{
    TestFile,
    conformance::{NOW, SECRET, apply, create, row, sandbox},
};
use crate::{CommitOutcome, Pause, Store, waiting::until};

async fn commit_all(store: &Store, all: impl Iterator<Item = Changes>) {
    let answers = join_all(all.map(|changes| store.commit(changes))).await;
    assert!(answers.iter().all(|answer| *answer == CommitOutcome::Committed));
}

async fn fill(store: &Store, tenant: Tenant, orders: u32) {
    commit_all(store, (0..orders).map(|n| create(tenant, &format!("SB-FILL-{n:06}"), n))).await;
}

#[tokio::test]
async fn orders_are_committed_while_a_large_reset_is_under_way() {
    let (_test_file, store) = TestFile::with_store();
    fill(&store, sandbox(1), 3_000).await;
    let mut pause = store.pause_writes().await.unwrap();
    let mut reset = Box::pin(store.reset(sandbox(1)));
    assert!((&mut reset).now_or_never().is_none());
    let mut before = None;
    let parcels = "SELECT count(*) FROM parcels WHERE tenant = 3";
    let parcels = || store.read(|db| db.query_row(parcels, [], |row| row.get::<_, i64>(0)));
    // 3,000 parcels and 3,000 records are at least 6 pages. Between two pauses there is room for one page, and for an
    // order, which is committed with the second.
    for number in 0..5 {
        let order = create(sandbox(2), &format!("SB-OTHER-{number:06}"), 10_000 + number);
        let mut order = Box::pin(store.commit(order));
        assert!((&mut order).now_or_never().is_none());
        pause = next_pause(&store, pause).await;
        if let Some(before) = before.replace(order) {
            assert_eq!(before.await, CommitOutcome::Committed);
        }
        assert!(parcels().unwrap() > 0, "{number}");
    }
    drop(pause);
    assert_eq!(reset.await.unwrap().parcels, 3_000);
}

/// Lets the store do the queued writes, and pauses it again.
async fn next_pause(store: &Store, pause: Pause) -> Pause {
    let mut next = Box::pin(store.pause_writes());
    assert!((&mut next).now_or_never().is_none());
    // Let the pause enter the queue.
    tokio::task::yield_now().await;
    drop(pause);
    next.await.unwrap()
}

#[tokio::test]
async fn purges_go_in_pages_of_at_most_a_thousand_rows() {
    let (_test_file, store) = TestFile::with_store();
    fill(&store, sandbox(1), 2_100).await;
    let mut before = store.stats().commits;
    let mut pages = || {
        let commits = store.stats().commits - before;
        before += commits;
        commits
    };
    assert_eq!(store.purge_records(NOW.plus(30 * Millis::DAY)).await.unwrap(), 2_100);
    assert!(pages() >= 3);
    assert_eq!(store.purge(NOW).await.unwrap().parcels, 2_100);
    assert!(pages() >= 7, "a parcel counts as at least three rows: itself and two events");
}

/// Returns a random-looking number, so that all tenants' rows are mixed in every index.
fn scattered_number(n: u32) -> String {
    format!("SB-{:08X}", n.wrapping_mul(0x9E37_79B1))
}

/// The words that mark the data of each owner.
const OWNERS: [&str; 3] = ["ZANAHORIA", "PEREJIL", "CALABAZA"];

/// Creates orders for the owners in turn, each with its owner's marker in every text column.
async fn create_marked_orders(store: &Store, owners: &[&str], orders: u32) {
    let count = u32::try_from(owners.len()).unwrap();
    let mut all = Vec::new();
    for n in 0..orders {
        let owner = owners[(n % count) as usize];
        let tenant = sandbox(1 + i64::from(n % count));
        let mut changes = create(tenant, &scattered_number(n), n);
        let Some(StoreOp::InsertParcel(parcel)) = changes.ops.first_mut() else { unreachable!() };
        let mut order: serde_json::Value = serde_json::from_str(&parcel.order).unwrap();
        // Some orders are longer than a page of the database.
        let name =
            format!("{owner}-{n} ").repeat(if n % 40 == 0 { 600 } else { 1 + n as usize % 9 });
        order["receiver"]["fullName"] = name.clone().into();
        order["externalOrderId"] = format!("{owner}/{n}").into();
        parcel.order = order.to_string();
        parcel.external_order_id = Some(format!("{owner}/{n}"));
        parcel.origin = format!("{owner}, US");
        changes.idempotency_record.as_mut().unwrap().body = name.into_bytes();
        all.push(changes);
    }
    commit_all(store, all.into_iter()).await;
    for n in (0..orders).step_by(2) {
        let owner = owners[(n % count) as usize];
        let parcel = row(store, &scattered_number(n)).await.unwrap();
        let event = Event {
            sequence: 3,
            state: State::InTransit,
            at: NOW,
            location: format!("{owner}, EC"),
            description: Some(owner.repeat(1 + n as usize % 5)),
        };
        let mut ops = vec![StoreOp::Move { parcel: parcel.key, event }];
        if n < 2 * count {
            ops.push(StoreOp::InsertManifest(Box::new(NewManifest {
                id: Ulid::from_parts(1, u128::from(n)),
                tenant: parcel.tenant,
                awb: Awb::parse("176-12345675").unwrap(),
                submitted_at: NOW,
                document: owner.repeat(900).into_bytes(),
                parcels: vec![parcel.key],
            })));
        }
        apply(store, ops).await;
    }
}

fn count(file: &Path, words: &str) -> usize {
    let bytes = std::fs::read(file).unwrap_or_default();
    bytes.windows(words.len()).filter(|window| *window == words.as_bytes()).count()
}

/// Waits until the server has truncated its log after an erasure, at the latest at its next check.
async fn wait_until_truncated(test_file: &TestFile, store: &Store) {
    until("no one reads from the log", async || {
        store.truncate_log().await;
        std::fs::metadata(test_file.beside("parcelo.db-wal")).unwrap().len() == 0
    })
    .await;
}

/// Returns the number of occurrences of an owner's marker in a database, its log and a backup of it.
fn count_occurrences(test_file: &TestFile, owner: &str) -> [usize; 3] {
    let copy = test_file.beside(&format!("copy-of-{owner}.db"));
    crate::backup(&test_file.beside("parcelo.db"), &copy).unwrap();
    [test_file.beside("parcelo.db"), test_file.beside("parcelo.db-wal"), copy]
        .map(|file| count(&file, owner))
}

#[tokio::test]
async fn erased_data_is_in_no_file_and_no_backup() {
    let [owner, ..] = OWNERS;
    let (test_file, store) = TestFile::with_store();
    for is_purge in [false, true] {
        create_marked_orders(&store, &[owner], 600).await;
        if is_purge {
            assert_eq!(store.purge(NOW).await.unwrap().parcels, 600);
        } else {
            assert_eq!(store.reset(sandbox(1)).await.unwrap().parcels, 600);
        }
        wait_until_truncated(&test_file, &store).await;
        assert_eq!(count_occurrences(&test_file, owner), [0; 3]);
        std::fs::remove_file(test_file.beside(&format!("copy-of-{owner}.db"))).unwrap();
    }
}

/// `SQLite` may leave a copy of a row between the remaining ones when it defragments a page. Later rows overwrite it,
/// and so does `vacuum`.
#[tokio::test]
async fn a_vacuum_removes_remaining_copies_of_erased_rows() {
    let (test_file, store) = TestFile::with_store();
    create_marked_orders(&store, &OWNERS, 900).await;
    let [first, second, third] = OWNERS;
    for tenant in 1..=2 {
        assert_eq!(store.reset(sandbox(tenant)).await.unwrap().parcels, 300);
    }
    wait_until_truncated(&test_file, &store).await;
    for owner in [first, second] {
        let [file, log, backup] = count_occurrences(&test_file, owner);
        // Of 600 rows. The number depends on where commits have begun and ended.
        assert!(file <= 30 && log == 0 && backup <= 30, "{owner}: {file} {log} {backup}");
    }
    store.close().await;
    Store::lock_for_vacuum(&test_file.beside("parcelo.db"), SECRET).unwrap().run().unwrap();
    assert_eq!([first, second].map(|owner| count(&test_file.beside("parcelo.db"), owner)), [0; 2]);
    assert!(count(&test_file.beside("parcelo.db"), third) > 600, "the third owner's rows stay");
}
