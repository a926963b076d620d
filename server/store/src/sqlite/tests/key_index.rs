//! Idempotency keys: each has one record, although rollbacks, other processes, restarts, purges and copies change the
//! map of keys in memory.

use std::path::Path;

use futures_util::future::join_all;
use parcelo_domain::{Changes, IdempotencyRecord, RecordKey, idempotency::LIFETIME_MILLIS};
use rusqlite::Connection;
use tempfile::TempDir;

use super::{
    begin_reset,
    conformance::{NOW, SECRET, create, create_parcel, empty_changes, file, record, sandbox},
    erase_some,
};
use crate::{
    CommitOutcome, Store, StoreError,
    sqlite::{
        apply, connection, file_lock,
        identity::IfEmpty,
        key_chunks,
        key_index::KeyIndex,
        migrations::{self, MIGRATIONS, schema},
        pending::Pending,
        records,
    },
    waiting::until,
};

pub(super) fn record_only(record: IdempotencyRecord) -> Changes {
    Changes { idempotency_record: Some(record), ..empty_changes() }
}

/// Writes a record under the key of this number.
pub(super) async fn write_record(store: &Store, number: u32) -> CommitOutcome {
    store.commit(record_only(record(sandbox(1), number))).await
}

pub(super) async fn write_records(store: &Store, numbers: std::ops::Range<u32>) {
    let all = join_all(numbers.map(|number| write_record(store, number))).await;
    assert!(all.iter().all(|outcome| *outcome == CommitOutcome::Committed));
}

pub(super) fn key_taken(number: u32) -> CommitOutcome {
    CommitOutcome::IdempotencyTaken(record(sandbox(1), number))
}

/// Opens the file as another process does.
fn open_again(folder: &TempDir) -> Store {
    Store::open_for_admin(&folder.path().join("parcelo.db"), SECRET).unwrap()
}

/// Returns the number of keys in memory, and the last row that is in a run on the disk.
pub(super) fn key_counts(store: &Store) -> (usize, i64) {
    let keys = store.sqlite().unwrap().keys();
    (keys.len(), keys.last_run())
}

pub(super) async fn spill(store: &Store, max: usize) {
    store.sqlite().unwrap().spill_keys(max).await.unwrap();
}

pub(super) fn count(store: &Store, expression: &str) -> i64 {
    store.read(|db| db.query_row(&format!("SELECT {expression}"), [], |row| row.get(0))).unwrap()
}

#[tokio::test]
async fn processes_on_one_file_keep_one_record_of_each_key() {
    let (server, folder) = file();
    let second = open_again(&folder);
    assert_eq!(write_record(&server, 1).await, CommitOutcome::Committed);
    assert_eq!(write_record(&second, 1).await, key_taken(1), "known after the first read");
    assert_eq!(write_record(&second, 2).await, CommitOutcome::Committed);
    assert_eq!(write_record(&server, 2).await, key_taken(2), "written by the other process");
    assert_eq!(write_record(&server, 3).await, CommitOutcome::Committed);
    assert_eq!(write_record(&second, 3).await, key_taken(3));

    // The server takes an id for a record and rolls it back; the other process then takes the same.
    create_parcel(&server, sandbox(1), "SB-TAKEN-0001").await;
    let refused = server.commit(create(sandbox(1), "SB-TAKEN-0001", 9)).await;
    assert_eq!(refused, CommitOutcome::DuplicateTracking);
    assert_eq!(write_record(&second, 4).await, CommitOutcome::Committed);
    assert_eq!(write_record(&server, 4).await, key_taken(4));

    // When the table is empty, its ids continue, in a new process too.
    assert_eq!(second.purge_records(NOW.plus(LIFETIME_MILLIS)).await.unwrap(), 4);
    let other = open_again(&folder);
    assert_eq!(write_record(&other, 5).await, CommitOutcome::Committed);
    assert_eq!(write_record(&server, 5).await, key_taken(5));
    assert_eq!(write_record(&server, 1).await, CommitOutcome::Committed);
    assert_eq!(write_record(&second, 1).await, key_taken(1));
}

#[tokio::test]
async fn a_process_sees_keys_written_by_another_process() {
    let (server, folder) = file();
    let second = open_again(&folder);
    write_records(&second, 0..10).await;
    write_records(&server, 10..1_000).await;
    for number in 0..1_000 {
        assert_eq!(write_record(&second, number).await, key_taken(number), "{number}");
    }
}

#[test]
fn a_key_is_seen_after_its_commit_and_free_after_a_rollback() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("parcelo.db");
    let (db, _) = connection::open_writer(&file, IfEmpty::Create, SECRET).unwrap();
    let (reader, keys) = (connection::open_reader(&file).unwrap(), KeyIndex::new());
    let record = record(sandbox(1), 1);
    let apply = || {
        let mut changes = record_only(record.clone());
        apply::apply(&db, &keys, &mut changes, &mut Pending::default()).unwrap().0
    };
    let seen = || records::find(&reader, &keys, &record.key).unwrap();
    for end in ["ROLLBACK", "ROLLBACK TO one; COMMIT"] {
        db.execute_batch("BEGIN IMMEDIATE; SAVEPOINT one").unwrap();
        assert_eq!(apply(), CommitOutcome::Committed);
        assert_eq!(apply(), CommitOutcome::IdempotencyTaken(record.clone()), "its group sees it");
        assert_eq!(seen(), None);
        db.execute_batch(end).unwrap();
        assert_eq!(seen(), None);
    }
    // Another process uses the id that was rolled back, and this one does not know its key yet.
    let insert = "INSERT INTO idempotency VALUES (2, zeroblob(16), 1, 0, zeroblob(32), x'')";
    assert_eq!(Connection::open(&file).unwrap().execute(insert, []).unwrap(), 1);
    assert_eq!(seen(), None);
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(apply(), CommitOutcome::Committed);
    assert_eq!(seen(), None);
    db.execute_batch("COMMIT").unwrap();
    assert_eq!(seen().unwrap().1, record);
}

#[tokio::test]
async fn a_start_loads_all_keys_with_few_record_reads() {
    let (store, folder) = file();
    write_records(&store, 0..1_000).await;
    store.close().await;
    let store = Store::open(&folder.path().join("parcelo.db"), SECRET).unwrap();
    let unchunked = "count(*) FROM idempotency WHERE id > (SELECT max(up_to) FROM key_chunks)";
    assert!(count(&store, unchunked) < key_chunks::ROWS_PER_CHUNK);
    for number in 0..1_000 {
        assert_eq!(write_record(&store, number).await, key_taken(number), "{number}");
    }
    write_records(&store, 1_000..1_300).await;
    let one = store.idempotency_record(&record(sandbox(1), 1_299).key).await.unwrap();
    assert_eq!(one, Some(record(sandbox(1), 1_299)));
}

#[tokio::test]
async fn keys_with_equal_prefixes_have_separate_records() {
    for store in [file().0, Store::memory(SECRET).unwrap()] {
        let with_equal_prefixes = [1, 2, 3].map(|last| {
            let mut key = [7; 16];
            key[15] = last;
            IdempotencyRecord { key: RecordKey(key), body: vec![last], ..record(sandbox(1), 1) }
        });
        for record in &with_equal_prefixes {
            assert_eq!(store.idempotency_record(&record.key).await.unwrap(), None);
            assert_eq!(store.commit(record_only(record.clone())).await, CommitOutcome::Committed);
        }
        for record in with_equal_prefixes {
            assert_eq!(store.idempotency_record(&record.key).await.unwrap(), Some(record.clone()));
            let again = store.commit(record_only(record.clone())).await;
            assert_eq!(again, CommitOutcome::IdempotencyTaken(record));
        }
    }
}

#[tokio::test]
async fn a_new_key_costs_no_read_and_a_known_one_costs_one() {
    for (store, _folder) in [file(), (Store::memory(SECRET).unwrap(), TempDir::new().unwrap())] {
        write_records(&store, 0..300).await;
        let before = store.stats().reads;
        for number in 300..600 {
            let found = store.idempotency_record(&record(sandbox(1), number).key).await.unwrap();
            assert_eq!(found, None);
        }
        assert_eq!(store.stats().reads, before);
        assert!(store.idempotency_record(&record(sandbox(1), 7).key).await.unwrap().is_some());
        assert_eq!(store.stats().reads, before + 1);
    }
}

#[tokio::test]
async fn a_copy_has_the_keys_of_its_source_and_no_others() {
    let store = Store::memory(SECRET).unwrap();
    write_records(&store, 0..300).await;
    let copy = store.copy().unwrap();
    assert_eq!(write_record(&copy, 1).await, key_taken(1));
    assert_eq!(write_record(&copy, 300).await, CommitOutcome::Committed);
    assert_eq!(store.idempotency_record(&record(sandbox(1), 300).key).await.unwrap(), None);
    write_records(&store, 301..400).await;
    store.become_copy_of(&copy).unwrap();
    assert_eq!(write_record(&store, 300).await, key_taken(300));
    let found = store.idempotency_record(&record(sandbox(1), 5).key).await.unwrap();
    assert_eq!(found, Some(record(sandbox(1), 5)));
    assert_eq!(key_counts(&store).0, 301);
    write_records(&store, 301..400).await;
    assert_eq!(write_record(&store, 301).await, key_taken(301));
}

#[tokio::test]
async fn keys_that_a_reset_or_a_purge_deletes_are_forgotten_and_free() {
    for (store, _folder) in [file(), (Store::memory(SECRET).unwrap(), TempDir::new().unwrap())] {
        for end in ["reset", "purge", "reset_all"] {
            store.account("default", "acc_1".to_owned(), NOW).await.unwrap();
            write_records(&store, 0..600).await;
            assert!(count(&store, "count(*) FROM key_chunks") >= 2, "{end}");
            match end {
                "reset" => drop(store.reset(sandbox(1)).await.unwrap()),
                "purge" => drop(store.purge_records(NOW.plus(LIFETIME_MILLIS)).await.unwrap()),
                _ => drop(store.reset_all().await.unwrap()),
            }
            assert_eq!(store.idempotency_record(&record(sandbox(1), 7).key).await.unwrap(), None);
            until(end, async || {
                key_counts(&store).0 == 0
                    && count(&store, "count(*) FROM idempotency") == 0
                    && count(&store, "count(*) FROM key_chunks") == 0
            })
            .await;
        }
    }
}

#[tokio::test]
async fn keys_of_erased_rows_between_others_are_free() {
    let (store, _folder) = file();
    let tenants = [sandbox(1), sandbox(2)];
    let all = (0..300).flat_map(|number| tenants.map(|tenant| record(tenant, number)));
    let outcomes = join_all(all.map(|record| store.commit(record_only(record)))).await;
    assert!(outcomes.iter().all(|outcome| *outcome == CommitOutcome::Committed));
    begin_reset(&store, sandbox(2)).await;
    for _ in ["before the rows are erased", "after it"] {
        let found = store.idempotency_record(&record(sandbox(2), 7).key).await.unwrap();
        assert_eq!(found, None);
        erase_some(&store, sandbox(2), u64::MAX).await;
    }
    assert_eq!(count(&store, "count(*) FROM idempotency"), 300);
    for number in 0..300 {
        assert_eq!(write_record(&store, number).await, key_taken(number), "{number}");
        let again = store.commit(record_only(record(sandbox(2), number))).await;
        assert_eq!(again, CommitOutcome::Committed, "{number}");
    }
}

#[tokio::test]
async fn a_purge_leaves_the_keys_of_living_records() {
    let (store, folder) = file();
    write_records(&store, 0..600).await;
    let late = |number| IdempotencyRecord { first_seen: NOW.plus(1), ..record(sandbox(1), number) };
    for number in 600..900 {
        assert_eq!(store.commit(record_only(late(number))).await, CommitOutcome::Committed);
    }
    assert_eq!(store.purge_records(NOW.plus(LIFETIME_MILLIS)).await.unwrap(), 600);
    assert_eq!(key_counts(&store).0, 300);
    store.close().await;
    let store = Store::open(&folder.path().join("parcelo.db"), SECRET).unwrap();
    for number in 600..900 {
        let again = store.commit(record_only(record(sandbox(1), number))).await;
        assert_eq!(again, CommitOutcome::IdempotencyTaken(late(number)), "{number}");
    }
    write_records(&store, 0..600).await;
}

#[tokio::test]
async fn keys_spilled_to_disk_are_still_found() {
    let (store, folder) = file();
    write_records(&store, 0..1_000).await;
    spill(&store, 1_000).await;
    assert_eq!(key_counts(&store), (1_000, 0), "not yet too many");
    let second = open_again(&folder);
    write_records(&second, 1_000..1_010).await;
    spill(&store, 999).await;
    write_records(&store, 1_010..1_700).await;
    spill(&store, 600).await;
    assert_eq!(count(&store, "count(*) FROM key_runs"), 2);
    assert!(key_counts(&store).0 < 600, "{}", key_counts(&store).0);
    store.close().await;
    let store = Store::open(&folder.path().join("parcelo.db"), SECRET).unwrap();
    assert!(key_counts(&store).0 < 600, "they stay on the disk");
    for number in 0..1_700 {
        let known = store.idempotency_record(&record(sandbox(1), number).key).await.unwrap();
        assert_eq!(known, Some(record(sandbox(1), number)));
        for one in [&store, &second] {
            assert_eq!(write_record(one, number).await, key_taken(number), "{number}");
        }
    }
    write_records(&store, 1_700..1_710).await;

    assert_eq!(store.purge_records(NOW.plus(LIFETIME_MILLIS)).await.unwrap(), 1_710);
    let left = "(SELECT count(*) FROM key_runs) + (SELECT count(*) FROM run_keys)";
    assert_eq!((count(&store, left), key_counts(&store)), (0, (0, 0)));
    write_records(&store, 0..10).await;
    assert_eq!(write_record(&second, 9).await, key_taken(9));
}

#[tokio::test]
async fn an_unfinished_run_is_rewritten_and_only_then_used() {
    let (store, folder) = file();
    write_records(&store, 0..600).await;
    spill(&store, 599).await;
    let unfinished = "DELETE FROM key_runs; DELETE FROM run_keys WHERE key >= x'0000000100'";
    store.call(move |db| db.execute_batch(unfinished)).await.unwrap();
    store.close().await;
    let store = Store::open(&folder.path().join("parcelo.db"), SECRET).unwrap();
    assert_eq!(key_counts(&store), (600, 0));
    spill(&store, 599).await;
    for number in 0..600 {
        assert_eq!(write_record(&store, number).await, key_taken(number), "{number}");
    }
}

#[tokio::test]
async fn chunks_are_written_while_another_process_writes() {
    let (store, folder) = file();
    let second = open_again(&folder);
    for round in 0..8 {
        write_records(&store, round * 201..round * 201 + 200).await;
        write_records(&second, round * 201 + 200..round * 201 + 201).await;
    }
    let unchunked = "(SELECT max(id) FROM idempotency) - (SELECT max(up_to) FROM key_chunks)";
    assert!(
        count(&store, unchunked) < 2 * key_chunks::ROWS_PER_CHUNK,
        "a start reads the records after them"
    );
}

#[tokio::test]
async fn a_command_upgrades_no_file_that_an_older_server_uses() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("old.db");
    drop(create_schema_14_file(&path));
    let server = file_lock::lock(&path).unwrap();
    let refused = Store::open_for_admin(&path, SECRET).unwrap_err();
    assert!(matches!(&refused, StoreError::UpgradeInUse { file } if *file == path), "{refused}");
    assert_eq!(schema(&Connection::open(&path).unwrap()).unwrap(), 14);
    drop(server);
    let store = Store::open_for_admin(&path, SECRET).unwrap();
    assert_eq!(store.read(schema).unwrap(), migrations::known());
}

#[test]
fn a_backup_keeps_the_schema_version_of_its_database() {
    let folder = TempDir::new().unwrap();
    let [path, copy] = ["old.db", "copy.db"].map(|name| folder.path().join(name));
    drop(create_schema_14_file(&path));
    crate::backup(&path, &copy).unwrap();
    for file in [&path, &copy] {
        assert_eq!(schema(&Connection::open(file).unwrap()).unwrap(), 14, "{}", file.display());
    }
}

fn create_schema_14_file(path: &Path) -> Connection {
    let db = Connection::open(path).unwrap();
    db.execute_batch(&MIGRATIONS[..14].concat()).unwrap();
    db.pragma_update(None, "user_version", 14).unwrap();
    db.execute("INSERT INTO meta VALUES ('secret', ?1)", [SECRET]).unwrap();
    db
}

#[tokio::test]
async fn an_upgrade_moves_keys_from_the_old_index() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("old.db");
    let db = create_schema_14_file(&path);
    for number in 0..600 {
        let old = record(sandbox(1), number);
        let insert = "INSERT INTO idempotency (key, tenant, first_seen, fingerprint, body) \
                      VALUES (?1, ?2, ?3, ?4, ?5)";
        let row = (old.key.0, old.tenant.number(), old.first_seen.0, old.fingerprint, old.body);
        db.execute(insert, row).unwrap();
    }
    // A reset that was under way hides one row of a tenant, and others that were deleted already.
    let reset = "INSERT INTO resets (tenant, parcel, manifest, idempotency, outbox) VALUES (?1, 0, 0, ?2, 0)";
    db.execute(reset, (sandbox(2).number(), 700)).unwrap();
    drop(db);
    let store = Store::open(&path, SECRET).unwrap();
    assert_eq!(store.read(schema).unwrap(), migrations::known());
    assert_eq!(count(&store, "count(*) FROM sqlite_schema WHERE name = 'idempotency_key'"), 0);
    assert_eq!(count(&store, "max(up_to) FROM key_chunks"), 600, "read once, at the first start");
    for number in 0..600 {
        assert_eq!(write_record(&store, number).await, key_taken(number), "{number}");
    }
    assert_eq!(write_record(&store, 600).await, CommitOutcome::Committed);
    assert_eq!(count(&store, "max(id) FROM idempotency"), 701, "a reset's hidden id is not reused");
    assert_eq!(write_record(&store, 600).await, key_taken(600));
}

#[tokio::test]
async fn an_upgrade_writes_runs_without_checksums_again() {
    let (store, folder) = file();
    let path = folder.path().join("parcelo.db");
    write_records(&store, 0..600).await;
    spill(&store, 599).await;
    let last = key_counts(&store).1;
    store.close().await;
    let schema_28 = format!(
        "DROP TABLE key_runs; CREATE TABLE key_runs (up_to INTEGER PRIMARY KEY) STRICT; \
         INSERT INTO key_runs VALUES ({last}); \
         ALTER TABLE last_record DROP COLUMN purged_to; PRAGMA user_version = 28"
    );
    Connection::open(&path).unwrap().execute_batch(&schema_28).unwrap();
    let store = Store::open(&path, SECRET).unwrap();
    assert_eq!(store.read(schema).unwrap(), migrations::known());
    assert_eq!(key_counts(&store), (600, 0), "read from the chunks");
    spill(&store, 599).await;
    assert_eq!(key_counts(&store).1, last);
    for number in 0..600 {
        assert_eq!(write_record(&store, number).await, key_taken(number), "{number}");
    }
}

#[tokio::test]
async fn a_write_fails_if_the_key_map_cannot_be_filled() {
    let store = Store::memory(SECRET).unwrap();
    write_records(&store, 0..300).await;
    let copy = store.copy().unwrap();
    let damage = "UPDATE idempotency SET key = x'00' WHERE id = 299";
    copy.call(move |db| db.execute(damage, [])).await.unwrap();
    assert_eq!(write_record(&copy, 1).await, CommitOutcome::Broken);
    let repair = "DELETE FROM idempotency WHERE id = 299";
    copy.call(move |db| db.execute(repair, [])).await.unwrap();
    assert_eq!(write_record(&copy, 1).await, key_taken(1));
    assert_eq!(write_record(&copy, 298).await, CommitOutcome::Committed);
}
