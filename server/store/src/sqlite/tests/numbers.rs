//! Numbers and ids survive a restart, a new secret, a copy, and an upgrade from an older schema.

use std::path::Path;

use parcelo_domain::{Changes, ParcelRowId};
use parcelo_types::internal::check_list;
use rusqlite::Connection;

use super::{
    TestFile,
    conformance::{NOW, SECRET, create, create_parcel, order, row, sandbox},
};
use crate::{
    CommitOutcome, Store,
    sqlite::{identity, migrations::MIGRATIONS, tests::begin_reset},
    waiting::until,
};

fn count(store: &Store, sql: &str) -> i64 {
    store.read(|db| db.query_row(sql, [], |row| row.get(0))).unwrap()
}

#[tokio::test]
async fn numbers_outlive_a_restart_a_new_secret_and_a_copy() {
    let test_file = TestFile::new();
    let store = test_file.open();
    let created = create_parcel(&store, sandbox(1), "SB-FIRST-0001").await;
    let number = created.tracking_number.as_str();
    store.close().await;
    let db = Connection::open(&test_file.file).unwrap();
    db.execute("UPDATE meta SET value = randomblob(32) WHERE name = 'secret'", []).unwrap();
    drop(db);
    let store = test_file.open();
    assert_ne!(store.secret(), SECRET);
    assert_eq!(row(&store, number).await.as_ref(), Some(&created));
    let copy = store.copy().unwrap();
    assert_eq!(row(&copy, number).await.as_ref(), Some(&created));
    {
        let backup = test_file.beside("copy.db");
        crate::backup(&test_file.file, &backup).unwrap();
        let restored = Store::open(&backup, [1; 32]).unwrap();
        assert_eq!(row(&restored, number).await.as_ref(), Some(&created));
    }
}

#[tokio::test]
async fn a_restart_reuses_no_parcel_id() {
    let test_file = TestFile::new();
    let store = test_file.open();
    let last = create_parcel(&store, sandbox(1), "SB-FIRST-0001").await.key;
    store.purge(NOW).await.unwrap();
    assert_eq!(count(&store, "SELECT count(*) FROM parcels"), 0);
    store.close().await;
    let next = create_parcel(&test_file.open(), sandbox(1), "SB-FIRST-0001").await.key;
    assert_eq!(next, ParcelRowId(last.0 + 1));
}

#[tokio::test]
async fn an_order_decided_before_a_reset_joins_the_new_generation() {
    let store = Store::memory(SECRET).unwrap();
    let early = create(sandbox(1), "SB-EARLY-0001", 1);
    create_parcel(&store, sandbox(1), "SB-FIRST-0001").await;
    begin_reset(&store, sandbox(1)).await;
    assert_eq!(store.commit(early).await, CommitOutcome::Committed);
    store.resume_resets().await.unwrap();
    until("the rest is erased", async || count(&store, "SELECT count(*) FROM parcels") == 1).await;
    assert!(row(&store, "SB-EARLY-0001").await.is_some());
    assert_eq!(store.list(sandbox(1), check_list([]).unwrap()).await.unwrap().1, 1);
}

/// Creates a file of schema 24: a generated number that is in no index, a given one, and the same two again in a
/// generation that has ended.
fn create_schema_24_file(file: &Path) {
    let db = Connection::open(file).unwrap();
    db.execute_batch(&MIGRATIONS[..24].concat()).unwrap();
    db.pragma_update(None, "user_version", 24).unwrap();
    identity::mark_as_ours(&db).unwrap();
    db.execute("INSERT INTO meta VALUES ('secret', ?1), ('number key', randomblob(32))", [SECRET])
        .unwrap();
    db.execute_batch(
        "INSERT INTO generations VALUES (3, 4294967299); INSERT INTO ended_generations (number) VALUES (3);",
    )
    .unwrap();
    let order = serde_json::to_string(&order("key-1")).unwrap();
    let current = 4_294_967_299_i64;
    let parcels = [
        (1, 3, "SBEC7K2M9QX4T8WD0", 0),
        (2, 3, "SB-GIVEN-0001", 0),
        (3, current, "SBEC7K2M9QX4T8WD0", 0),
        (4, current, "SB-GIVEN-0001", 1),
        (5, 5, "SBEC7K2M9QX4T8WD1", 0),
    ];
    for (id, tenant, number, is_indexed) in parcels {
        let insert = "INSERT INTO parcels (id, version, tenant, environment, number, public_id, state, created_at, \
             updated_at, origin, destination, country, promised_day, label_version, last_sequence, order_json, \
             number_is_indexed) \
             VALUES (?1, 1, ?2, 1, ?3, zeroblob(16), 2, ?1, ?1, '', '', 'EC', 0, 1, 2, ?4, ?5)";
        db.execute(insert, (id, tenant, number, &order, is_indexed)).unwrap();
    }
}

#[tokio::test]
async fn an_upgrade_merges_all_numbers_into_one_index() {
    let test_file = TestFile::new();
    create_schema_24_file(&test_file.file);
    let store = test_file.open();
    for (number, key) in [("sbec7k2m9qx4t8wd0", 3), ("SB-GIVEN-0001", 4), ("SBEC7K2M9QX4T8WD1", 5)]
    {
        assert_eq!(row(&store, number).await.unwrap().key, ParcelRowId(key), "{number}");
        let again = Changes { idempotency_record: None, ..create(sandbox(7), number, 9) };
        assert_eq!(store.commit(again).await, CommitOutcome::DuplicateTracking, "{number}");
    }
    assert_eq!(create_parcel(&store, sandbox(1), "SB-FIRST-0001").await.key, ParcelRowId(6));
    // The rest of the ended generation is erased as usual.
    store.resume_resets().await.unwrap();
    until("it is erased", async || count(&store, "SELECT min(id) FROM parcels") == 3).await;
}

/// Creates a file of schema 14: a generated number, a given one, orders with and without an external id, and a damaged
/// order.
fn create_schema_14_file(file: &Path) {
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
async fn numbers_of_a_file_of_schema_14_are_found_and_stay_taken() {
    let test_file = TestFile::new();
    create_schema_14_file(&test_file.file);
    let store = test_file.open();
    for (number, key) in [("SBEC7K2M9QX4T8WD0", 3), ("sbec7k2m9qx4t8wd0", 3), ("SB-GIVEN-0001", 7)]
    {
        assert_eq!(row(&store, number).await.unwrap().key, ParcelRowId(key), "{number}");
        let again = Changes { idempotency_record: None, ..create(sandbox(2), number, 9) };
        assert_eq!(store.commit(again).await, CommitOutcome::DuplicateTracking, "{number}");
    }
    let query = check_list([("externalOrderId".into(), "SHOP-1".into())]).unwrap();
    let (listed, total) = store.list(sandbox(1), query).await.unwrap();
    assert_eq!((listed[0].parcel.key, total), (ParcelRowId(3), 1));
    assert_eq!(listed[0].external_order_id.as_deref(), Some("SHOP-1"));
    let ids = "SELECT group_concat(id || ' ' || external_order_id) FROM parcels";
    let ids = store.read(|db| db.query_row(ids, [], |row| row.get::<_, String>(0)));
    assert_eq!(ids.unwrap(), "3 SHOP-1", "one has none, and one is damaged");
    assert_eq!(create_parcel(&store, sandbox(1), "SB-FIRST-0001").await.key, ParcelRowId(9));
}
