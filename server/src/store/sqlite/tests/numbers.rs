//! What of numbers and rows outlives a process: a restart, a new secret, a copy, files of an older schema.

use std::path::Path;

use parcelo::{CountryCode, Environment, TrackingNumber, rules::check_list};
use rusqlite::Connection;
use tempfile::TempDir;

use super::conformance::{NOW, SECRET, create, row, sandbox};
use crate::{
    domain::{Changes, Op, ParcelRow, ParcelRowId},
    store::{
        CommitOutcome, Store,
        sqlite::{migrations::MIGRATIONS, tests::begin_reset},
    },
    waiting::until,
};

fn open(folder: &TempDir) -> Store {
    Store::open(&folder.path().join("parcelo.db"), SECRET).unwrap()
}

/// An order with the number that its row, drawn now, makes; the number.
async fn generated(store: &Store, key: u32) -> (Changes, TrackingNumber) {
    let mut changes = create(sandbox(1), "ANOTHER-0001", key);
    let Op::InsertParcel(new) = &mut changes.ops[0] else { panic!() };
    new.row = store.next_parcel_row().await;
    let place = (Environment::Sandbox, CountryCode::EC);
    new.tracking_number = store.number_key().generate(place, new.row, new.id);
    let number = new.tracking_number.clone();
    (changes, number)
}

async fn made(store: &Store, key: u32) -> ParcelRow {
    let (changes, number) = generated(store, key).await;
    assert_eq!(store.commit(changes).await, CommitOutcome::Committed);
    row(store, number.as_str()).await.unwrap()
}

fn count(store: &Store, sql: &str) -> i64 {
    store.read(|db| db.query_row(sql, [], |row| row.get(0))).unwrap()
}

#[tokio::test]
async fn a_generated_number_is_in_no_index_and_a_given_one_is() {
    let store = Store::memory(SECRET).unwrap();
    let indexed = || count(&store, "SELECT count(*) FROM parcels WHERE number_is_indexed = 1");
    made(&store, 1).await;
    assert_eq!(indexed(), 0);
    let given = create(sandbox(1), "SB-SUCCESS-0001", 2);
    assert_eq!(store.commit(given).await, CommitOutcome::Committed);
    assert_eq!(indexed(), 1);
}

#[tokio::test]
async fn numbers_outlive_a_restart_a_new_secret_and_a_copy() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let made = made(&store, 1).await;
    let number = made.tracking_number.as_str();
    store.close().await;
    let file = folder.path().join("parcelo.db");
    let db = Connection::open(&file).unwrap();
    db.execute("UPDATE meta SET value = randomblob(32) WHERE name = 'secret'", []).unwrap();
    drop(db);
    let store = open(&folder);
    assert_ne!(store.secret(), SECRET);
    assert_eq!(row(&store, number).await.as_ref(), Some(&made));
    let copy = store.copy().unwrap();
    assert_eq!(row(&copy, number).await.as_ref(), Some(&made));
    #[cfg(feature = "server")]
    {
        let backup = folder.path().join("copy.db");
        crate::store::backup(&file, &backup).unwrap();
        let restored = Store::open(&backup, [1; 32]).unwrap();
        assert_eq!(row(&restored, number).await.as_ref(), Some(&made));
    }
}

#[tokio::test]
async fn after_a_restart_no_row_is_drawn_that_a_parcel_ever_had() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    made(&store, 1).await;
    let last = made(&store, 2).await.key;
    store.close().await;
    let store = open(&folder);
    assert_eq!(store.next_parcel_row().await, ParcelRowId(last.0 + 1));
    store.purge(NOW).await.unwrap();
    assert_eq!(count(&store, "SELECT count(*) FROM parcels"), 0);
    store.close().await;
    assert_eq!(open(&folder).next_parcel_row().await, ParcelRowId(last.0 + 1));
}

#[tokio::test]
async fn what_is_restored_draws_the_rows_that_were_drawn_before() {
    let store = Store::memory(SECRET).unwrap();
    // One that comes to nothing counts too.
    let _unused = store.next_parcel_row().await;
    let copy = store.copy().unwrap();
    let next = store.next_parcel_row().await;
    store.become_copy_of(&copy).unwrap();
    assert_eq!(store.next_parcel_row().await, next);
    assert_eq!(copy.next_parcel_row().await, next);
}

#[tokio::test]
async fn an_order_that_was_decided_before_a_reset_is_one_of_after_it() {
    let store = Store::memory(SECRET).unwrap();
    let (early, number) = generated(&store, 1).await;
    made(&store, 2).await;
    begin_reset(&store, sandbox(1)).await;
    assert_eq!(store.commit(early).await, CommitOutcome::Committed);
    store.resume_resets().await.unwrap();
    until("the rest is erased", async || count(&store, "SELECT count(*) FROM parcels") == 1).await;
    assert!(row(&store, number.as_str()).await.is_some());
    assert_eq!(store.list(sandbox(1), check_list([]).unwrap()).await.unwrap().1, 1);
}

/// A file as schema 14 left it: a generated number, a given one, orders with an id of the caller's and
/// without, and one that a disk has damaged.
fn older_file(file: &Path) {
    let db = Connection::open(file).unwrap();
    db.execute_batch(&MIGRATIONS[..14].concat()).unwrap();
    db.pragma_update(None, "user_version", 14).unwrap();
    db.execute("INSERT INTO meta VALUES ('secret', ?1)", [SECRET]).unwrap();
    let insert = "INSERT INTO parcels VALUES (?1, 1, 3, 1, ?2, zeroblob(16), 1, ?1, 0, '', '', 'EC', 0, 1, 2, \
                  NULL, NULL, NULL, ?3)";
    let parcels = [
        (3, "SBEC7K2M9QX4T8WD0", r#"{"externalOrderId":"SHOP-1"}"#),
        (7, "sb-Given-0001", r#"{"customerReference":"PO 7"}"#),
        (8, "SB-GIVEN-0002", r#"{"externalOrderId":"SHOP-2"}"#),
    ];
    for parcel in parcels {
        db.execute(insert, parcel).unwrap();
    }
    db.execute("INSERT INTO parcel_counts VALUES (3, 0, 1, 'EC', 3)", []).unwrap();
    drop(db);
    let mut bytes = std::fs::read(file).unwrap();
    let damaged = br#"{"externalOrderId":"SHOP-2"}"#;
    let at = bytes.windows(damaged.len()).position(|window| window == damaged).unwrap();
    bytes[at] = b'?';
    std::fs::write(file, bytes).unwrap();
}

#[tokio::test]
async fn what_a_file_of_schema_14_holds_is_found_and_stays_taken() {
    let folder = TempDir::new().unwrap();
    older_file(&folder.path().join("parcelo.db"));
    let store = open(&folder);
    for (number, key) in [("SBEC7K2M9QX4T8WD0", 3), ("sbec7k2m9qx4t8wd0", 3), ("SB-GIVEN-0001", 7)]
    {
        assert_eq!(row(&store, number).await.unwrap().key, ParcelRowId(key), "{number}");
        let again = Changes { idempotency_record: None, ..create(sandbox(2), number, 9) };
        let again = with_row(again, store.next_parcel_row().await);
        assert_eq!(store.commit(again).await, CommitOutcome::DuplicateTracking, "{number}");
    }
    let query = check_list([("externalOrderId".into(), "SHOP-1".into())]).unwrap();
    let (listed, total) = store.list(sandbox(1), query).await.unwrap();
    assert_eq!((listed[0].parcel.key, total), (ParcelRowId(3), 1));
    assert_eq!(listed[0].external_order_id.as_deref(), Some("SHOP-1"));
    let ids = "SELECT group_concat(id || ' ' || external_order_id) FROM parcels";
    let ids = store.read(|db| db.query_row(ids, [], |row| row.get::<_, String>(0)));
    assert_eq!(ids.unwrap(), "3 SHOP-1", "one has none, and one is damaged");
    assert!(made(&store, 1).await.key > ParcelRowId(8));
}

fn with_row(mut changes: Changes, row: ParcelRowId) -> Changes {
    for op in &mut changes.ops {
        if let Op::InsertParcel(new) = op {
            new.row = row;
        }
    }
    changes
}
