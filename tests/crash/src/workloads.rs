//! The workloads of the recorded service.

use std::{fs, path::Path, sync::Arc};

use fastrand::Rng;
use parcelo_server::internals::Store;
use rusqlite::Connection;
use serde_json::json;

use crate::{
    disk::{Expectations, Image, RecordedRun},
    facts::Reader,
    recording::{DATABASE, Recording, write_image},
    server::Server,
    syscalls,
};

const HOUR: i64 = 3_600_000;
/// Bytes of a write-ahead log that the store will soon checkpoint, which it does at 10,000 pages. Each page has a
/// header of 24 bytes.
const LOG_BYTES_BEFORE_CHECKPOINT: u64 = 9_950 * (4_096 + 24);
/// Number of migrations that the older version had.
const OLD_MIGRATIONS: usize = 10;

/// Starts a recording of a service on a new database, with an API key and a webhook endpoint.
fn start(folder: &Path) -> Recording {
    let mut recording = Recording::start(folder, None, Expectations::default());
    recording.open();
    recording.set_up();
    recording
}

/// Records a service that creates its database, accepts its first orders, is closed, and is opened again.
pub fn first_start(folder: &Path) -> RecordedRun {
    let mut recording = start(folder);
    for size in [1, 1, 1, 5] {
        recording.create(size);
    }
    recording.close();
    recording.open();
    recording.create(1);
    recording.finish()
}

/// Records every kind of write, with checkpoints and a reset.
pub fn busy_day(folder: &Path) -> RecordedRun {
    let mut recording = start(folder);
    for size in [1, 1, 1, 12] {
        recording.create(size);
    }
    let tracking_numbers = recording.tracking_numbers();
    let void = json!({
        "idempotencyKey": "void-0001", "trackingNumbers": [tracking_numbers[0]], "reason": "Wrong",
    });
    recording.post("/api/v1/orders/void", void.to_string());
    let reprint = json!({ "idempotencyKey": "reprint-0001", "reason": "Smudged" });
    recording.post(&format!("/api/v1/labels/{}/reprint", tracking_numbers[1]), reprint.to_string());
    let manifest = json!({
        "idempotencyKey": "manifest-0001", "awbNumber": "176-12345675",
        "trackingNumbers": tracking_numbers[2..4],
    });
    recording.post("/api/v1/manifests/submit", manifest.to_string());
    recording.run_task(|server| server.take_steps(100 * HOUR));
    recording.run_task(|server| server.deliver(3));
    recording.assert_facts(&["history of", "reprint of", "manifest ", "under ", "delivered "]);
    recording.checkpoint("PASSIVE");
    for size in [1, 1, 4] {
        recording.create(size);
    }
    recording.checkpoint("TRUNCATE");
    recording.create(1);
    recording.reset();
    recording.create(2);
    recording.finish()
}

/// Records `parcelo-server vacuum` on a file that has free pages after a reset.
pub fn vacuum(folder: &Path) -> RecordedRun {
    let mut recording = start(folder);
    recording.create(60);
    recording.reset();
    recording.create(12);
    recording.close();
    recording.restart_log();
    Store::lock_for_vacuum(&recording.file(), [0; 32]).unwrap().run().unwrap();
    recording.open();
    recording.create(1);
    recording.finish()
}

/// Records a server that starts on a file of an older version and upgrades it. The file has more than 256
/// idempotency keys, so the list of keys gets its first chunk.
pub fn upgrade(folder: &Path) -> RecordedRun {
    let file = folder.join(DATABASE);
    create_old_database(&file);
    let base = syscalls::read_folder(folder);
    // An interrupted upgrade must end with the same rows as an uninterrupted one.
    let server = Server::open(&file, 1).unwrap();
    let reader = Reader::open(&file).unwrap();
    let (parcels, facts) = (reader.count_parcels().unwrap(), Arc::new(reader.facts().unwrap()));
    assert_ne!(reader.count_key_chunks(), Ok(0));
    drop(reader);
    server.close();
    write_image(folder, &base);
    let mut recording =
        Recording::start(folder, None, Expectations { parcels, facts, ..Expectations::default() });
    recording.open();
    recording.set_up();
    recording.create(2);
    recording.finish()
}

/// Creates a database as the older version left it.
fn create_old_database(file: &Path) {
    let migrations =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../server/store/src/sqlite/migrations");
    let mut migrations: Vec<_> =
        fs::read_dir(migrations).unwrap().map(|entry| entry.unwrap().path()).collect();
    migrations.sort();
    let db = Connection::open(file).unwrap();
    for migration in &migrations[..OLD_MIGRATIONS] {
        db.execute_batch(&fs::read_to_string(migration).unwrap()).unwrap();
    }
    db.execute_batch(include_str!("old_schema.sql")).unwrap();
}

/// Records a server whose write-ahead log has become so long that the store's own thread checkpoints it while orders
/// come in.
pub fn long_log(folder: &Path) -> RecordedRun {
    let mut recording = start(folder);
    recording.create(3);
    let log = folder.join("parcelo.db-wal");
    let ballast = Connection::open(recording.file()).unwrap();
    ballast
        .execute_batch(
            "PRAGMA wal_autocheckpoint = 0; INSERT INTO meta VALUES ('ballast', zeroblob(100000))",
        )
        .unwrap();
    while fs::metadata(&log).unwrap().len() < LOG_BYTES_BEFORE_CHECKPOINT {
        ballast
            .execute_batch("UPDATE meta SET value = randomblob(100000) WHERE name = 'ballast'")
            .unwrap();
    }
    drop(ballast);
    recording.restart_log();
    // The salts in the header change once the checkpointed log is written from its beginning again.
    let salts = || fs::read(&log).unwrap()[16..24].to_vec();
    let before = salts();
    while salts() == before {
        recording.create(1);
    }
    recording.create(1);
    recording.finish()
}

/// Records a restart on the files that a crash has left: the service recovers, answers the requests that were in
/// flight and are sent again, and accepts new orders.
pub fn recovery(
    folder: &Path,
    crashed: (&RecordedRun, &Expectations, &Image),
    rng: &mut Rng,
) -> RecordedRun {
    let (run, expected, image) = crashed;
    write_image(folder, image);
    let in_flight = expected.requests.iter().filter(|(_, answered)| !**answered);
    let in_flight: Vec<_> = in_flight.map(|(at, _)| *at).collect();
    let mut recording = Recording::after(run, expected, folder);
    recording.open();
    recording.send(in_flight.into_iter());
    recording.create(2);
    if rng.bool() {
        recording.checkpoint("PASSIVE");
    }
    recording.create(1);
    recording.finish()
}
