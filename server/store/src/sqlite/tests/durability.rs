//! Guarantees of a database file beyond those of a store in memory: it outlives the process, serves one server and any
//! admin command, and never acknowledges a write that is not durable.

use std::{path::Path, pin::pin, time::Duration};

use futures_util::{FutureExt, future::join_all};
use rusqlite::Connection;
use tokio::time::timeout;

use super::{
    TestFile, commit_as_group,
    conformance::{NOW, SECRET, changes_to, create, empty_changes, move_parcel, row, sandbox},
};
use crate::test_util::hold_write_lock;
use crate::{
    CommitOutcome, ReadOnlyReason, Store, StoreError,
    sqlite::{connection, identity::IfEmpty},
    waiting,
};

fn number(number: u32) -> String {
    format!("SB-NUMBER-{number:04}")
}

/// Returns `true` if a parcel exists. A read from a file completes when it is first polled.
fn has_row(store: &Store, n: u32) -> bool {
    row(store, &number(n)).now_or_never().unwrap().is_some()
}

#[tokio::test]
async fn two_thousand_writers_share_commits() {
    let (test_file, store) = TestFile::with_store();
    let admin = hold_write_lock(&test_file.file);
    let all = (0..2_000).map(|n| store.commit(create(sandbox(1), &number(n), n)));
    let mut all = pin!(join_all(all));
    assert_eq!(all.as_mut().now_or_never(), None);
    admin.execute_batch("ROLLBACK").unwrap();
    assert!(all.await.iter().all(|answer| *answer == CommitOutcome::Committed));
    let stats = store.stats();
    assert_eq!(stats.changes, 2_000);
    assert!(stats.commits < 20, "{stats:?}");
    assert!((0..2_000).all(|n| has_row(&store, n)));
}

#[tokio::test]
async fn a_queued_write_completes_though_no_caller_waits() {
    let (test_file, store) = TestFile::with_store();
    for n in 0..20 {
        let _dropped = store.commit(create(sandbox(1), &number(n), n)).now_or_never();
    }
    store.close().await;
    let store = test_file.open();
    assert!((0..20).all(|n| has_row(&store, n)));
}

#[tokio::test]
async fn acknowledged_orders_survive_a_restart() {
    let (test_file, store) = TestFile::with_store();
    assert_eq!(store.commit(create(sandbox(1), &number(1), 1)).await, CommitOutcome::Committed);
    drop(store);
    // The thread releases the file a moment after the last clone is dropped.
    let store = loop {
        match Store::open(&test_file.file, [1; 32]) {
            Ok(store) => break store,
            Err(StoreError::InUse { .. }) => waiting::pause().await,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(row(&store, &number(1)).await.is_some());
    assert_eq!(store.secret(), SECRET, "the first secret stays");
}

#[tokio::test]
async fn database_files_are_readable_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let (test_file, store) = TestFile::with_store();
    store.account("default", "acc_1".to_owned(), NOW).await.unwrap();
    for end in ["", "-wal"] {
        let mut file = test_file.file.clone().into_os_string();
        file.push(end);
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o077, 0, "{end}");
    }
}

#[tokio::test]
async fn a_closed_store_refuses_writes() {
    let (_test_file, store) = TestFile::with_store();
    let clone = store.clone();
    store.close().await;
    assert_eq!(clone.commit(create(sandbox(1), &number(1), 1)).await, CommitOutcome::Broken);
    assert!(!clone.is_writable());
    assert_eq!(row(&clone, &number(1)).await, None);
}

#[tokio::test]
async fn admin_commands_and_the_server_see_each_other() {
    let (test_file, server) = TestFile::with_store();
    let admin = Store::open_for_admin(&test_file.file, [1; 32]).unwrap();
    assert_eq!(admin.secret(), SECRET);
    let account = admin.account("default", "acc_1".to_owned(), NOW).await.unwrap();
    assert!(!server.is_new().await.unwrap());
    assert_eq!(server.account("default", "acc_2".to_owned(), NOW).await.unwrap(), account);
    assert_eq!(server.commit(create(sandbox(1), &number(1), 1)).await, CommitOutcome::Committed);
    let taken = admin.commit(create(sandbox(1), &number(1), 2)).await;
    assert_eq!(taken, CommitOutcome::DuplicateTracking);
    assert_eq!(admin.commit(create(sandbox(1), &number(2), 2)).await, CommitOutcome::Committed);
    assert!(row(&server, &number(2)).await.is_some());
}

#[tokio::test]
async fn the_writer_waits_for_an_admin_command() {
    let (test_file, store) = TestFile::with_store();
    let admin = hold_write_lock(&test_file.file);
    let mut commit = pin!(store.commit(create(sandbox(1), &number(1), 1)));
    assert_eq!(commit.as_mut().now_or_never(), None);
    assert_eq!(row(&store, &number(1)).await, None, "readers do not wait");
    admin.execute_batch("ROLLBACK").unwrap();
    assert_eq!(commit.await, CommitOutcome::Committed);
}

#[tokio::test(start_paused = true)]
async fn a_caller_waits_five_seconds_and_the_write_still_completes() {
    let (test_file, store) = TestFile::with_store();
    let admin = hold_write_lock(&test_file.file);
    let commit = store.commit(create(sandbox(1), &number(1), 1));
    assert_eq!(timeout(Duration::from_secs(6), commit).await, Ok(CommitOutcome::Busy));
    let account = store.account("default", "acc_1".to_owned(), NOW).await;
    assert!(matches!(account, Err(StoreError::Busy { .. })), "{account:?}");
    admin.execute_batch("ROLLBACK").unwrap();
    store.close().await;
    assert!(row(&test_file.open(), &number(1)).await.is_some());
}

#[tokio::test]
async fn a_stuck_writer_does_not_answer() {
    let (_test_file, store) = TestFile::with_store();
    assert!(store.writer_answers().await);
    let (go_on, stuck) = std::sync::mpsc::channel::<()>();
    let mut write = pin!(store.call(move |_| Ok(stuck.recv().is_err())));
    assert!(write.as_mut().now_or_never().is_none());
    let mut answers = pin!(store.writer_answers());
    assert_eq!(answers.as_mut().now_or_never(), None);
    drop(go_on);
    assert!(answers.await && write.await.unwrap());
    store.clone().close().await;
    assert!(!store.writer_answers().await);
}

#[tokio::test]
async fn a_full_queue_refuses_at_once() {
    let (test_file, store) = TestFile::with_store();
    let admin = hold_write_lock(&test_file.file);
    let (mut refused, mut waiting) = (0, Vec::new());
    for _ in 0..5_000 {
        let mut commit = Box::pin(store.commit(empty_changes()));
        match commit.as_mut().now_or_never() {
            Some(answer) => {
                assert_eq!(answer, CommitOutcome::Full);
                refused += 1;
            }
            None => waiting.push(commit),
        }
    }
    // 4,096 wait, and up to 256 more are with the writer.
    assert!((5_000 - 4_096 - 256..=5_000 - 4_096).contains(&refused), "{refused}");
    admin.execute_batch("ROLLBACK").unwrap();
    assert!(join_all(waiting).await.iter().all(|answer| *answer == CommitOutcome::Committed));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_acknowledges_nothing_and_stops_writes() {
    let (test_file, store) = TestFile::with_store();
    assert_eq!(store.commit(create(sandbox(1), &number(0), 0)).await, CommitOutcome::Committed);
    let page_limit = |db: &Connection| {
        let pages: i64 = db.pragma_query_value(None, "page_count", |row| row.get(0))?;
        db.query_row(&format!("PRAGMA max_page_count = {}", pages + 4), [], |_| Ok(()))
    };
    store.call(page_limit).await.unwrap();
    let answers = join_all((1..200).map(|n| store.commit(create(sandbox(1), &number(n), n)))).await;
    assert!(answers.contains(&CommitOutcome::Broken));
    assert!(!store.is_writable());
    assert_eq!(store.unavailable_reason().unwrap(), "the database's disk is full");
    assert_eq!(store.commit(create(sandbox(1), &number(999), 999)).await, CommitOutcome::Broken);
    let expected: Vec<_> =
        answers.iter().map(|answer| *answer == CommitOutcome::Committed).collect();
    store.close().await;
    let store = test_file.open();
    assert!(row(&store, &number(0)).await.is_some());
    let stored: Vec<_> = (1..200).map(|n| has_row(&store, n)).collect();
    assert_eq!(stored, expected, "exactly the acknowledged orders are there");
}

#[test]
fn a_group_that_cannot_be_committed_fails_as_a_whole() {
    let test_file = TestFile::new();
    let (db, _) = connection::open_writer(&test_file.file, IfEmpty::Create, SECRET).unwrap();
    let pages: i64 = db.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    let page_limit = format!("PRAGMA max_page_count = {}", pages + 4);
    db.query_row(&page_limit, [], |_| Ok(())).unwrap();
    let mut group = vec![create(sandbox(1), &number(0), 0), create(sandbox(1), &number(0), 0)];
    group.extend((1..100).map(|n| create(sandbox(1), &number(n), n)));
    let answers = commit_as_group(&db, group);
    assert!(answers.iter().all(|answer| *answer == CommitOutcome::Broken), "the refused ones too");
    let rows: i64 = db.query_row("SELECT count(*) FROM parcels", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 0);
}

#[test]
fn a_newer_database_is_refused() {
    let test_file = TestFile::new();
    drop(Store::open_for_admin(&test_file.file, SECRET).unwrap());
    // A file from before 0.2 has no id.
    for pragma in ["user_version = 99", "application_id = 0"] {
        let db = Connection::open(&test_file.file).unwrap();
        db.execute_batch(&format!("PRAGMA {pragma}")).unwrap();
        drop(db);
        let refused = Store::open(&test_file.file, SECRET).unwrap_err();
        assert!(matches!(refused, StoreError::Newer { found: 99, .. }), "{pragma}");
        let text = refused.to_string();
        assert!(text.contains("schema 99") && text.contains("parcelo.db"), "{text}");
    }
}

#[test]
fn a_file_that_is_not_a_database_is_refused() {
    let test_file = TestFile::new();
    std::fs::write(&test_file.file, "not a database, but as long as one".repeat(200)).unwrap();
    assert!(matches!(Store::open(&test_file.file, SECRET), Err(StoreError::Foreign { .. })));
    let nowhere = test_file.file.join("nowhere.db");
    assert!(matches!(Store::open(&nowhere, SECRET), Err(StoreError::Open { .. })));
}

#[tokio::test]
async fn an_unreadable_row_is_reported_as_damaged() {
    let (test_file, store) = TestFile::with_store();
    let db = Connection::open(&test_file.file).unwrap();
    db.execute_batch(
        "INSERT INTO parcels SELECT 1, 1, 3, 1, 'SB-NUMBER-0001', zeroblob(16), 77, 0, 0, '', '', \
         'EC', 0, 1, 2, NULL, NULL, NULL, '{}', 1, NULL",
    )
    .unwrap();
    let number = parcelo_types::TrackingNumber::parse("SB-NUMBER-0001").unwrap();
    let found = store.parcel(parcelo_types::Environment::Sandbox, &number).await;
    assert!(matches!(found, Err(StoreError::Damaged { .. })), "{found:?}");
    let text = found.unwrap_err().to_string();
    assert!(!text.contains("SB-NUMBER"), "{text}");
}

/// Corrupts the page that holds these bytes, as a bad sector does.
fn corrupt_page_with(file: &Path, text: &[u8]) {
    const PAGE: usize = 4_096;
    let mut bytes = std::fs::read(file).unwrap();
    // A page that was split keeps its old content in its free space: the last one has the row.
    let at = bytes.windows(text.len()).rposition(|window| window == text).unwrap();
    let page = at / PAGE * PAGE;
    assert!(page > 0, "the first page belongs to all tables");
    bytes[page..page + PAGE].fill(0xA5);
    std::fs::write(file, bytes).unwrap();
}

#[tokio::test]
async fn a_damaged_page_affects_only_its_own_rows() {
    let (test_file, store) = TestFile::with_store();
    for n in 0..60 {
        assert_eq!(store.commit(create(sandbox(1), &number(n), n)).await, CommitOutcome::Committed);
    }
    let damaged = row(&store, &number(3)).await.unwrap();
    store.close().await;
    // The number directly followed by the id occurs in the row, and in no index.
    corrupt_page_with(&test_file.file, &[number(3).as_bytes(), &damaged.id.to_bytes()].concat());
    let store = test_file.open();
    let number_of = |n| parcelo_types::TrackingNumber::parse(&number(n)).unwrap();
    assert!(store.parcel(parcelo_types::Environment::Sandbox, &number_of(3)).await.is_err());
    assert!(row(&store, &number(59)).await.is_some());
    let query = parcelo_types::internal::check_list([("limit".into(), "100".into())]).unwrap();
    let (page, total) = store.list(sandbox(1), query).await.unwrap();
    assert_eq!(total, 60);
    assert!((40..60).contains(&page.len()), "{} of them", page.len());
    let ops = vec![move_parcel(&damaged, parcelo_domain::State::CustomsClearance, 1)];
    assert_eq!(store.commit(changes_to(&damaged, ops)).await, CommitOutcome::Broken);
    assert_eq!(store.read_only_reason(), None, "one damaged page does not stop all writes");
    assert_eq!(store.commit(create(sandbox(1), &number(60), 60)).await, CommitOutcome::Committed);
    store.check(parcelo_system::clock::monotonic_now());
    assert!(store.is_readable() && store.is_writable());
}

#[tokio::test]
async fn a_commit_into_a_deleted_file_is_not_acknowledged() {
    for end in ["", "-wal", "-shm"] {
        let (test_file, store) = TestFile::with_store();
        assert_eq!(store.commit(create(sandbox(1), &number(1), 1)).await, CommitOutcome::Committed);
        let mut file = test_file.file.clone().into_os_string();
        file.push(end);
        std::fs::remove_file(file).unwrap();
        let refused = store.commit(create(sandbox(1), &number(2), 2)).await;
        assert_eq!(refused, CommitOutcome::Broken, "{end}");
        assert_eq!(store.read_only_reason(), Some(ReadOnlyReason::Replaced), "{end}");
    }
}

#[tokio::test]
async fn a_second_server_is_refused_by_every_name_of_the_file() {
    let (test_file, store) = TestFile::with_store();
    let [hard, symbolic] = ["hard.db", "symbolic.db"].map(|name| test_file.beside(name));
    std::fs::hard_link(&test_file.file, &hard).unwrap();
    std::os::unix::fs::symlink(&test_file.file, &symbolic).unwrap();
    for is_lock_file_gone in [false, true] {
        for name in [&test_file.file, &hard, &symbolic] {
            let second = Store::open(name, SECRET);
            assert!(matches!(second, Err(StoreError::InUse { .. })), "{second:?}");
        }
        if !is_lock_file_gone {
            std::fs::remove_file(test_file.beside("parcelo.db.lock")).unwrap();
        }
    }
    assert_eq!(store.commit(create(sandbox(1), &number(1), 1)).await, CommitOutcome::Committed);
    store.close().await;
    test_file.open();
}

#[test]
fn nothing_in_the_server_process_releases_its_locks() {
    let (test_file, _store) = TestFile::with_store();
    // SQLite's own locks: byte ranges past the first gigabyte.
    let held = locks(&test_file.file);
    assert!(!held.is_empty() || !Path::new("/proc/locks").exists());
    drop(Store::open_for_admin(&test_file.file, SECRET).unwrap());
    let _refused = Store::open(&test_file.file, SECRET);
    crate::backup(&test_file.file, &test_file.file.with_file_name("copy.db")).unwrap();
    assert_eq!(locks(&test_file.file), held);
}

/// Returns this process's locks on a file, on systems that show them. They are read from `fdinfo`, because `/proc/locks`
/// can omit some while other locks come and go.
fn locks(file: &Path) -> Vec<String> {
    use std::os::unix::fs::MetadataExt;
    let id = |path: &Path| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    // Not opened again: closing it would itself release the locks.
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let ours = open.filter(|entry| id(&entry.path()) == id(file));
    let lock_info = ours.map(|entry| {
        let info = Path::new("/proc/self/fdinfo").join(entry.file_name());
        std::fs::read_to_string(info).unwrap_or_default()
    });
    let lock_info: String = lock_info.collect();
    let locks = lock_info.lines().filter(|line| line.contains("POSIX"));
    let mut locks: Vec<_> =
        locks.map(|line| line.split_once("POSIX").unwrap().1.to_owned()).collect();
    locks.sort();
    locks.dedup();
    locks
}
