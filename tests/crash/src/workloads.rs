//! The workloads of the recorded service.

use std::{fs, path::Path, process::Command};

use fastrand::Rng;
use parcelo_server::internals::Store;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::{
    disk::Event,
    facts::{self, Reader},
    recording::{DATABASE, Expected, Recording, Run, put},
    server::{self, EmbeddedServer, Post},
    syscalls,
};

const HOUR: i64 = 3_600_000;
const LOG: &str = "parcelo.db-wal";
/// Bytes of a page in the log, with its header.
const LOGGED_PAGE: u64 = 4_096 + 24;
/// Number of pages shortly before the store checkpoints a log, which it does at 10,000.
const NEARLY_MOVED: u64 = 9_950;
/// Number of migrations that the file of the upgrade has.
const OLD_SCHEMA: usize = 10;

/// Records a database that is created, serves its first orders, is closed, and opened again.
pub fn first_start(folder: &Path) -> Run {
    let mut run = Recording::start("a first start", folder, None);
    run.open();
    run.set_up();
    for _ in 0..3 {
        run.create(1);
    }
    run.create(5);
    run.close();
    run.open();
    run.create(1);
    run.finish()
}

/// Records every kind of write, with a checkpoint in the middle.
pub fn busy_day(folder: &Path) -> Run {
    let mut run = Recording::start("a busy day", folder, None);
    run.open();
    run.set_up();
    everything(&mut run);
    run.checkpoint("PASSIVE");
    for size in [1, 1, 4] {
        run.create(size);
    }
    run.checkpoint("TRUNCATE");
    run.create(1);
    run.reset();
    run.create(2);
    run.finish()
}

/// Executes each kind of write at least once.
fn everything(run: &mut Recording) {
    for _ in 0..3 {
        run.create(1);
    }
    run.create(12);
    let numbers: Vec<_> = (0..5).map(|nth| run.number(nth)).collect();
    run.post(&post(
        "/api/v1/orders/void",
        &json!({"idempotencyKey": "void-0001", "trackingNumbers": [numbers[0]], "reason": "Wrong"}),
    ));
    run.post(&post(
        &format!("/api/v1/labels/{}/reprint", numbers[1]),
        &json!({"idempotencyKey": "reprint-0001", "reason": "Smudged"}),
    ));
    run.post(&post(
        "/api/v1/manifests/submit",
        &json!({
            "idempotencyKey": "manifest-0001", "awbNumber": "176-12345675",
            "trackingNumbers": numbers[2..4],
        }),
    ));
    let at = HOUR / 2;
    run.job(|server| server.set_clock(at));
    let event = json!({
        "eventId": "scan-1", "trackingNumber": numbers[4], "status": "IN_TRANSIT",
        "occurredAt": server::time(at), "location": "Miami, US",
    });
    let scan = post("/carrier/v1/events", &json!({ "events": [event] }));
    run.post_without_key(&Post { header: "x-carrier-key", ..scan });
    run.job(|server| server.take_steps(100 * HOUR));
    run.job(|server| server.deliver(3));
    run.assert_facts(&["history of", "reprint of", "manifest ", "under ", "scan ", "delivered "]);
}

/// Records the restore of a backup of a server with 250 orders. The orders that follow complete the 256 with which the
/// list of keys gets its first chunk.
pub fn restored_backup(folder: &Path, binary: &Path) -> Run {
    let original = tempfile::tempdir_in(folder.parent().unwrap()).unwrap();
    let mut made = Recording::start("the original", original.path(), None);
    made.open();
    made.set_up();
    for _ in 0..10 {
        made.create(25);
    }
    let (from, to) = (made.file(), folder.join(DATABASE));
    let mut backup = Command::new(binary);
    backup.arg("backup").arg("--database").arg(format!("sqlite:{}", from.display())).arg(&to);
    let output = backup.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let made = made.finish();
    let before = every_tenth(&made);
    let mut run = Recording::start("a restored backup", folder, None).after(&made, before);
    run.open();
    for size in [1, 3, 8] {
        run.create(size);
    }
    run.checkpoint("PASSIVE");
    run.create(1);
    let chunks = Reader::open(&run.file()).and_then(|reader| reader.key_chunks());
    assert_eq!(chunks, Ok(1), "the list of keys has no new chunk");
    run.finish()
}

/// Records a server whose log has become so long that the store's own thread checkpoints it while orders come in.
pub fn long_log(folder: &Path) -> Run {
    let original = tempfile::tempdir_in(folder.parent().unwrap()).unwrap();
    let mut made = Recording::start("the original", original.path(), None);
    made.open();
    made.set_up();
    made.keeps_facts = false;
    let log = original.path().join(LOG);
    while fs::metadata(&log).unwrap().len() < NEARLY_MOVED * LOGGED_PAGE {
        made.create(1);
    }
    // The files as `kill -9` leaves them: closing would empty the log.
    let files = syscalls::read_folder(original.path());
    let expected = facts::read(&made.file());
    let made = made.finish();
    put(folder, &files);
    let before = Expected { facts: expected, ..every_tenth(&made) };
    let mut run = Recording::start("a long log", folder, None).after(&made, before);
    run.open();
    run.keeps_facts = false;
    let salts = |folder: &Path| fs::read(folder.join(LOG)).map(|log| log[16..24].to_vec()).unwrap();
    let before = salts(folder);
    while salts(folder) == before {
        run.create(1);
    }
    run.create(1);
    run.finish()
}

/// Records `parcelo-server vacuum` on a file that has free pages after a reset.
pub fn vacuum(folder: &Path) -> Run {
    let original = tempfile::tempdir_in(folder.parent().unwrap()).unwrap();
    let mut made = Recording::start("the original", original.path(), None);
    made.open();
    made.set_up();
    made.create(60);
    made.reset();
    made.create(12);
    let made = made.finish();
    put(folder, &syscalls::read_folder(original.path()));
    let before = expected_after(&made);
    let mut run = Recording::start("a vacuum", folder, None).after(&made, before);
    let file = Store::to_vacuum(&run.file(), [0; 32]).unwrap();
    file.run().unwrap();
    run.open();
    run.create(1);
    run.finish()
}

/// Records a server that starts on a file of an older version and upgrades it.
pub fn upgrade(folder: &Path) -> Run {
    let file = folder.join(DATABASE);
    old_database(&file);
    let base = syscalls::read_folder(folder);
    // An interrupted upgrade must end with the same rows as an uninterrupted one.
    let server = EmbeddedServer::open(&file, 1).unwrap();
    let facts = facts::read(&file);
    server.close();
    put(folder, &base);
    let parcels = facts.iter().filter(|fact| fact.starts_with("parcel ")).count();
    let before = Expected { parcels, facts, ..Expected::default() };
    let mut run = Recording::start("an upgrade", folder, None).expecting(before);
    run.open();
    run.set_up();
    run.create(2);
    run.finish()
}

fn old_database(file: &Path) {
    let migrations =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../server/src/store/sqlite/migrations");
    let mut migrations: Vec<_> =
        fs::read_dir(migrations).unwrap().map(|entry| entry.unwrap().path()).collect();
    migrations.sort();
    let db = Connection::open(file).unwrap();
    for migration in &migrations[..OLD_SCHEMA] {
        db.execute_batch(&fs::read_to_string(migration).unwrap()).unwrap();
    }
    db.execute_batch(include_str!("old_schema.sql")).unwrap();
}

/// Returns the expectations after a run.
fn expected_after(made: &Run) -> Expected {
    let mut expected = Expected::default();
    for event in &made.events {
        if let Event::Mark(mark) = event {
            expected.observe(mark, &made.requests);
        }
    }
    expected
}

/// Returns the expectations with every tenth request. The facts have them all, and repeating each request on every
/// image would take most of the time.
fn every_tenth(made: &Run) -> Expected {
    let mut expected = expected_after(made);
    let is_tenth = |at: &usize| at.is_multiple_of(10);
    let creates = |at: &&usize| made.requests[**at].what.creates();
    let all = expected.sent.iter().filter(creates).count();
    expected.sent.retain(is_tenth);
    expected.acknowledged.retain(is_tenth);
    expected.parcels = all - expected.sent.iter().filter(creates).count();
    expected
}

/// Records a restart after a crash: the service recovers, answers the requests that were in flight, and accepts others.
pub fn recovery(folder: &Path, crashed: (&Run, Expected), rng: &mut Rng) -> Run {
    let (crashed, expected) = crashed;
    let in_flight: Vec<_> =
        expected.sent.iter().filter(|at| !expected.acknowledged.contains(at)).copied().collect();
    let mut run = Recording::start("a recovery", folder, None).after(crashed, expected);
    run.open();
    for at in in_flight {
        run.repeat(at);
    }
    run.create(2);
    if rng.bool() {
        run.checkpoint("PASSIVE");
    }
    run.create(1);
    run.finish()
}

fn post(path: &str, body: &Value) -> Post {
    Post { path: path.to_owned(), header: "x-api-key", body: body.to_string() }
}
