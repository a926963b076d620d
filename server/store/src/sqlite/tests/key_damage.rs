//! Damage to the lists of idempotency keys in a file and to their records, as a disk does it: bits, lost and misplaced
//! pages, missing rows. No key gets a second record. A start mends the lists, and fails only if nothing sound has a key.

use std::{fs, path::Path};

use futures_util::future::join_all;
use parcelo_domain::{IdempotencyRecord, idempotency::LIFETIME_MILLIS};
use rusqlite::Connection;
use tempfile::TempDir;

use super::{
    conformance::{NOW, SECRET, file, record, sandbox},
    key_index::{count, key_counts, key_taken, record_only, spill, write_record, write_records},
};
use crate::{
    CommitOutcome, Store, StoreError,
    sqlite::{connection, identity::IfEmpty, key_chunks, key_index::KeyIndex, key_runs, records},
};

const PAGE: usize = 4_096;

/// Returns a file with a dozen chunks of keys.
async fn file_with_chunks() -> (Store, TempDir) {
    let (store, folder) = file();
    write_records(&store, 0..3_000).await;
    (store, folder)
}

/// Writes the records of [`file_with_chunks`] again. Returns the number of those that are refused because of damage; all
/// others are known.
async fn count_refused(store: &Store) -> usize {
    let mut refused = 0;
    for number in 0..3_000 {
        match write_record(store, number).await {
            CommitOutcome::Broken => refused += 1,
            again => assert_eq!(again, key_taken(number), "{number}"),
        }
    }
    refused
}

/// Returns a file with two runs of keys.
async fn file_with_runs() -> (Store, TempDir) {
    let (store, folder) = file();
    write_records(&store, 0..1_000).await;
    spill(&store, 999).await;
    write_records(&store, 1_000..1_700).await;
    spill(&store, 600).await;
    assert_eq!(count(&store, "count(*) FROM key_runs"), 2);
    assert!(key_counts(&store).0 < 600);
    (store, folder)
}

/// Damages a file while no server runs, and checks that no key gets a second record, at this start or the next.
async fn assert_no_second_record(
    name: &str,
    (store, folder): (Store, TempDir),
    damage: impl FnOnce(&Path),
) {
    let path = folder.path().join("parcelo.db");
    let records = u32::try_from(count(&store, "count(*) FROM idempotency")).unwrap();
    store.close().await;
    damage(&path);
    for start in 1..=2 {
        let store = Store::open(&path, SECRET).unwrap();
        for number in 0..records {
            let again = write_record(&store, number).await;
            assert_eq!(again, key_taken(number), "{name}, start {start}: {number}");
        }
        let is_mended = store.read(|db| {
            let chunks = key_chunks::chunks_after((db, 0), i64::MAX, &mut |_, _| {})?;
            Ok(chunks.is_sound && key_runs::are_sound(db)?)
        });
        assert!(is_mended.unwrap(), "{name}, start {start}");
        store.close().await;
    }
}

fn change(path: &Path, sql: &str) {
    assert!(Connection::open(path).unwrap().execute(sql, []).unwrap() > 0, "{sql}");
}

/// Overwrites one leaf of a table, given by its index, with a copy of another leaf or with zeros.
fn overwrite(path: &Path, table: &str, (leaf, source): (usize, Option<usize>)) {
    overwrite_leaf(path, (table, leaf), source.map(|source| (table, source)));
}

/// Overwrites a leaf like [`overwrite`], perhaps with one of another table.
fn overwrite_leaf(path: &Path, place: (&str, usize), source: Option<(&str, usize)>) {
    let mut bytes = fs::read(path).unwrap();
    let at = |(table, leaf): (&str, usize)| {
        let leaves = leaves(&bytes, root_page(path, table));
        (leaves[leaf.min(leaves.len() - 1)] - 1) * PAGE
    };
    let new = source.map(at).map_or_else(|| vec![0; PAGE], |at| bytes[at..at + PAGE].to_vec());
    let place = at(place);
    bytes[place..place + PAGE].copy_from_slice(&new);
    fs::write(path, bytes).unwrap();
}

/// Moves each of these leaves of the records to the place of the next one, and the last to that of the first.
fn rotate_leaves(path: &Path, places: &[usize]) {
    let old = fs::read(path).unwrap();
    let leaves = leaves(&old, root_page(path, "idempotency"));
    let mut new = old.clone();
    for (from, to) in places.iter().zip(places.iter().cycle().skip(1)) {
        let [from, to] = [*from, *to].map(|leaf| (leaves[leaf] - 1) * PAGE);
        new[to..to + PAGE].copy_from_slice(&old[from..from + PAGE]);
    }
    fs::write(path, new).unwrap();
}

fn root_page(path: &Path, table: &str) -> usize {
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    let db = Connection::open(path).unwrap();
    db.query_row(root, [table], |row| row.get::<_, u32>(0)).unwrap() as usize
}

/// Returns the numbers of a page and of those below it.
fn pages(bytes: &[u8], top: usize) -> Vec<usize> {
    let page = &bytes[(top - 1) * PAGE..top * PAGE];
    let number = |at: usize| u32::from_be_bytes(page[at..at + 4].try_into().unwrap()) as usize;
    let mut all = vec![top];
    // The inner pages of tables, without row ids and with them.
    if [2, 5].contains(&page[0]) {
        let cells = usize::from(u16::from_be_bytes([page[3], page[4]]));
        let cell = |n: usize| usize::from(u16::from_be_bytes([page[12 + 2 * n], page[13 + 2 * n]]));
        let children = (0..cells).map(|n| number(cell(n))).chain([number(8)]);
        all.extend(children.flat_map(|child| pages(bytes, child)));
    }
    all
}

/// Returns the numbers of the leaves below a page.
fn leaves(bytes: &[u8], top: usize) -> Vec<usize> {
    let mut leaves = pages(bytes, top);
    leaves.retain(|page| [10, 13].contains(&bytes[(page - 1) * PAGE]));
    leaves
}

#[tokio::test]
async fn damaged_key_chunks_cause_no_second_record_and_no_failure() {
    let bit =
        "UPDATE key_chunks SET keys = CAST(x'FF' || substr(keys, 2) AS BLOB) WHERE up_to = 768";
    let sector = "UPDATE key_chunks SET keys = CAST(zeroblob(512) || substr(keys, 513) AS BLOB) WHERE up_to = 768";
    let other = "UPDATE key_chunks SET keys = (SELECT keys FROM key_chunks WHERE up_to = 256) WHERE up_to = 768";
    let delete_chunk = "DELETE FROM key_chunks WHERE up_to = 768";
    let first_gone = "DELETE FROM key_chunks WHERE up_to = 256";
    let cut = "UPDATE key_chunks SET keys = substr(keys, 1, 1000)";
    let empty = "UPDATE key_chunks SET keys = x''";
    let too_far = "UPDATE key_chunks SET up_to = up_to + 100000 WHERE up_to = (SELECT max(up_to) FROM key_chunks)";
    for sql in [bit, sector, other, delete_chunk, first_gone, cut, empty, too_far] {
        assert_no_second_record(sql, file_with_chunks().await, |path| change(path, sql)).await;
    }
    let last = usize::MAX;
    let zeros = [(0, None), (1, None), (last, None)];
    for leaves in zeros.into_iter().chain([(1, Some(0)), (last, Some(0)), (0, Some(last))]) {
        let name = format!("the leaf and its new content: {leaves:?}");
        let damage = |path: &Path| overwrite(path, "key_chunks", leaves);
        assert_no_second_record(&name, file_with_chunks().await, damage).await;
    }
}

#[tokio::test]
async fn damaged_runs_of_keys_cause_no_second_record_and_no_failure() {
    let other_key = "UPDATE run_keys SET key = x'FFFFFFFFFF' WHERE id = 17";
    let other_row = "UPDATE run_keys SET id = 100017 WHERE id = 17";
    let other_run = "UPDATE run_keys SET run = run + 1 WHERE id = 17";
    let key_gone = "DELETE FROM run_keys WHERE id = 17";
    let first_gone = "DELETE FROM key_runs WHERE up_to = (SELECT min(up_to) FROM key_runs)";
    let last_gone = "DELETE FROM key_runs WHERE up_to = (SELECT max(up_to) FROM key_runs)";
    let too_far =
        "UPDATE key_runs SET up_to = up_to + 64 WHERE up_to = (SELECT max(up_to) FROM key_runs)";
    let too_late = "UPDATE key_runs SET after = after + 64";
    for sql in [other_key, other_row, other_run, key_gone, first_gone, last_gone, too_far, too_late]
    {
        assert_no_second_record(sql, file_with_runs().await, |path| change(path, sql)).await;
    }
    let last = usize::MAX;
    for (table, leaves) in [
        ("run_keys", (0, None)),
        ("run_keys", (last, None)),
        ("run_keys", (1, Some(0))),
        ("key_runs", (0, None)),
    ] {
        let name = format!("{table}, the leaf and its new content: {leaves:?}");
        let damage = |path: &Path| overwrite(path, table, leaves);
        assert_no_second_record(&name, file_with_runs().await, damage).await;
    }
}

#[tokio::test]
async fn keys_that_fill_the_memory_again_are_spilled_again() {
    let (store, folder) = file_with_runs().await;
    let path = folder.path().join("parcelo.db");
    store.close().await;
    overwrite(&path, "run_keys", (0, None));
    let store = Store::open(&path, SECRET).unwrap();
    assert_eq!(key_counts(&store), (1_700, 0));
    spill(&store, 600).await;
    assert!(key_counts(&store).0 < 600);
    for number in 0..1_700 {
        assert_eq!(write_record(&store, number).await, key_taken(number), "{number}");
    }
}

#[tokio::test]
async fn no_flipped_bit_of_chunks_and_runs_hides_a_key() {
    let (store, folder) = file();
    write_records(&store, 0..600).await;
    spill(&store, 599).await;
    store.close().await;
    let path = folder.path().join("parcelo.db");
    let tables = ["key_chunks", "key_runs", "run_keys"];
    let sound = fs::read(&path).unwrap();
    let pages: Vec<_> =
        tables.into_iter().flat_map(|table| pages(&sound, root_page(&path, table))).collect();
    assert!(pages.len() > 6, "{pages:?}");
    let mut rng = fastrand::Rng::with_seed(1);
    for (page, nth) in pages.into_iter().flat_map(|page| (0..24).map(move |nth| (page, nth))) {
        // Every third position is in the page's header or the places of its rows.
        let within = if nth % 3 == 0 { rng.usize(..64) } else { rng.usize(..PAGE) };
        let (at, bit) = ((page - 1) * PAGE + within, rng.u32(..8));
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("parcelo.db");
        let mut damaged = sound.clone();
        damaged[at] ^= 1 << bit;
        fs::write(&path, damaged).unwrap();
        let (mut db, _) = connection::open_writer(&path, IfEmpty::Refuse, SECRET).unwrap();
        let keys = KeyIndex::from_file(&mut db).unwrap();
        for number in 0..600 {
            let record = record(sandbox(1), number);
            let found = records::find(&db, &keys, &record.key).unwrap();
            assert!(
                found.is_some_and(|(_, found)| found == record),
                "page {page}, byte {within}, bit {bit}: {number}"
            );
        }
    }
}

/// Overwrites a leaf of the records while no server runs, and checks that a start succeeds, that no key gets a second
/// record, and that only the keys of that leaf are refused.
async fn assert_only_lost_keys_are_refused(
    (store, folder): (Store, TempDir),
    (leaf, source): (usize, Option<(&str, usize)>),
    records: Vec<IdempotencyRecord>,
) {
    let name = format!("the leaf and its new content: {leaf}, {source:?}");
    let path = folder.path().join("parcelo.db");
    store.close().await;
    overwrite_leaf(&path, ("idempotency", leaf), source);
    let store = Store::open(&path, SECRET).unwrap();
    let forgotten = store.sqlite().unwrap().forget_deleted_keys().await;
    assert_eq!(forgotten.is_err(), leaf == 0, "{name}: the oldest record is not known");
    let mut refused = 0;
    for record in records {
        let read = store.idempotency_record(&record.key).await;
        match store.commit(record_only(record.clone())).await {
            CommitOutcome::Broken => {
                assert!(read.is_err(), "{name}: {read:?}");
                refused += 1;
            }
            again => assert_eq!(again, CommitOutcome::IdempotencyTaken(record), "{name}"),
        }
    }
    assert!((1..100).contains(&refused), "{name}: {refused} keys");
    assert_eq!(write_record(&store, 1_000_000).await, CommitOutcome::Committed, "{name}");
}

#[tokio::test]
async fn a_damaged_page_of_records_stops_no_start_if_the_chunks_have_its_keys() {
    let last = usize::MAX;
    let records = || (0..3_000).map(|number| record(sandbox(1), number)).collect();
    for (leaf, source) in [
        (0, None),
        (30, None),
        (0, Some(("idempotency", 1))),
        (0, Some(("idempotency", last))),
        (1, Some(("idempotency", 0))),
        (30, Some(("idempotency", 10))),
        (30, Some(("idempotency", 29))),
        (30, Some(("idempotency", 31))),
        (30, Some(("idempotency", last))),
        (30, Some(("key_chunks", 0))),
        (30, Some(("key_chunks", last))),
    ] {
        let file = file_with_chunks().await;
        assert_only_lost_keys_are_refused(file, (leaf, source), records()).await;
    }
}

#[tokio::test]
async fn pages_of_records_that_changed_places_cause_no_second_record() {
    for places in [&[30, 10][..], &[30, 31], &[0, 20], &[5, 10, 20], &[20, 10, 5]] {
        let (store, folder) = file_with_chunks().await;
        let path = folder.path().join("parcelo.db");
        store.close().await;
        rotate_leaves(&path, places);
        let store = Store::open(&path, SECRET).unwrap();
        let refused = count_refused(&store).await;
        assert!((1..300).contains(&refused), "{places:?}: {refused} keys");
    }
}

#[tokio::test]
async fn a_key_of_another_length_is_not_free() {
    let (store, folder) = file_with_chunks().await;
    store.close().await;
    let path = folder.path().join("parcelo.db");
    let longer = "UPDATE idempotency SET key = CAST(key || x'00' AS BLOB) WHERE id = 100";
    change(&path, longer);
    let store = Store::open(&path, SECRET).unwrap();
    assert_eq!(count_refused(&store).await, 1);
}

#[tokio::test]
async fn a_damaged_page_of_the_oldest_records_stops_no_start_after_a_purge() {
    for source in [None, Some(("idempotency", 3))] {
        let (store, folder) = file();
        write_records(&store, 0..600).await;
        let first_seen = NOW.plus(1);
        let late = (600..1_600)
            .map(|number| IdempotencyRecord { first_seen, ..record(sandbox(1), number) });
        let late: Vec<_> = late.collect();
        let commits = late.iter().map(|record| store.commit(record_only(record.clone())));
        let outcomes = join_all(commits).await;
        assert!(outcomes.iter().all(|outcome| *outcome == CommitOutcome::Committed));
        assert_eq!(store.purge_records(NOW.plus(LIFETIME_MILLIS)).await.unwrap(), 600);
        assert_eq!(count(&store, "min(after) FROM key_chunks"), 512, "older chunks are gone");
        assert_only_lost_keys_are_refused((store, folder), (0, source), late).await;
    }
}

#[tokio::test]
async fn a_start_is_refused_if_no_sound_list_has_the_keys_of_a_damaged_page() {
    let last = usize::MAX;
    for (records, damage) in [
        // Up to 255 records are in no chunk yet.
        (200, (0, None)),
        (200, (1, None)),
        (200, (last, None)),
        (200, (0, Some(1))),
        (200, (1, Some(0))),
        (200, (last, Some(0))),
        (3_000, (last, None)),
        (3_000, (last, Some(0))),
        // All are in chunks, but the table ends before them: an id would be used again.
        (768, (last, Some(0))),
    ] {
        let (store, folder) = file();
        write_records(&store, 0..records).await;
        store.close().await;
        let path = folder.path().join("parcelo.db");
        overwrite(&path, "idempotency", damage);
        let mut refused = Store::open(&path, SECRET).unwrap_err();
        // The note in the lock file may find it first.
        if let StoreError::LostRecords { note, .. } = &refused {
            fs::remove_file(note).unwrap();
            refused = Store::open(&path, SECRET).unwrap_err();
        }
        assert!(
            matches!(&refused, StoreError::Unsuitable { reason, .. } if reason.contains("restore a backup")),
            "{records} records, {damage:?}: {refused}"
        );
    }
}

#[tokio::test]
async fn a_start_is_refused_if_both_the_records_and_their_chunks_are_damaged() {
    let (store, folder) = file_with_chunks().await;
    store.close().await;
    let path = folder.path().join("parcelo.db");
    change(&path, "DELETE FROM key_chunks WHERE up_to = 256");
    overwrite(&path, "idempotency", (0, None));
    let refused = Store::open(&path, SECRET).unwrap_err();
    assert!(matches!(refused, StoreError::Unsuitable { .. }), "{refused}");
}
