//! The workloads of the recorded service.

use std::{fs, path::Path, sync::Arc};

use fastrand::Rng;
use parcelo_server::internals::Store;
use rusqlite::Connection;
use serde_json::json;

use crate::{
    disk::{Expectations, Image, Run},
    facts::Reader,
    recording::{DATABASE, Recording, write_image},
    server::Server,
    syscalls,
};

const HOUR: i64 = 3_600_000;
/// Bytes of a log that the store will soon checkpoint, which it does at 10,000 pages; each has a header.
const NEARLY_CHECKPOINTED: u64 = 9_950 * (4_096 + 24);
/// Number of migrations that the file of the upgrade has.
const OLD_SCHEMA: usize = 10;

fn start(folder: &Path) -> Recording {
    let mut run = Recording::start(folder, None, Expectations::default());
    run.open();
    run.set_up();
    run
}

/// Records a database that is created, serves its first orders, is closed, and opened again.
pub fn first_start(folder: &Path) -> Run {
    let mut run = start(folder);
    for size in [1, 1, 1, 5] {
        run.create(size);
    }
    run.close();
    run.open();
    run.create(1);
    run.finish()
}

/// Records every kind of write, with checkpoints and a reset.
pub fn busy_day(folder: &Path) -> Run {
    let mut run = start(folder);
    for size in [1, 1, 1, 12] {
        run.create(size);
    }
    let numbers = run.numbers();
    let void = json!({
        "idempotencyKey": "void-0001", "trackingNumbers": [numbers[0]], "reason": "Wrong",
    });
    run.post("/api/v1/orders/void", void.to_string());
    let reprint = json!({ "idempotencyKey": "reprint-0001", "reason": "Smudged" });
    run.post(&format!("/api/v1/labels/{}/reprint", numbers[1]), reprint.to_string());
    let manifest = json!({
        "idempotencyKey": "manifest-0001", "awbNumber": "176-12345675",
        "trackingNumbers": numbers[2..4],
    });
    run.post("/api/v1/manifests/submit", manifest.to_string());
    run.run_task(|server| server.take_steps(100 * HOUR));
    run.run_task(|server| server.deliver(3));
    run.assert_facts(&["history of", "reprint of", "manifest ", "under ", "delivered "]);
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

/// Records `parcelo-server vacuum` on a file that has free pages after a reset.
pub fn vacuum(folder: &Path) -> Run {
    let mut run = start(folder);
    run.create(60);
    run.reset();
    run.create(12);
    run.close();
    run.restart_log();
    Store::lock_for_vacuum(&run.file(), [0; 32]).unwrap().run().unwrap();
    run.open();
    run.create(1);
    run.finish()
}

/// Records a server that starts on a file of an older version and upgrades it. The file has more than 256 keys, so the
/// list of keys gets its first chunk.
pub fn upgrade(folder: &Path) -> Run {
    let file = folder.join(DATABASE);
    old_database(&file);
    let base = syscalls::read_folder(folder);
    // An interrupted upgrade must end with the same rows as an uninterrupted one.
    let server = Server::open(&file, 1).unwrap();
    let reader = Reader::open(&file).unwrap();
    let (parcels, facts) = (reader.parcels().unwrap(), Arc::new(reader.facts().unwrap()));
    assert_ne!(reader.key_chunks(), Ok(0));
    drop(reader);
    server.close();
    write_image(folder, &base);
    let mut run =
        Recording::start(folder, None, Expectations { parcels, facts, ..Expectations::default() });
    run.open();
    run.set_up();
    run.create(2);
    run.finish()
}

fn old_database(file: &Path) {
    let migrations =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../server/store/src/sqlite/migrations");
    let mut migrations: Vec<_> =
        fs::read_dir(migrations).unwrap().map(|entry| entry.unwrap().path()).collect();
    migrations.sort();
    let db = Connection::open(file).unwrap();
    for migration in &migrations[..OLD_SCHEMA] {
        db.execute_batch(&fs::read_to_string(migration).unwrap()).unwrap();
    }
    db.execute_batch(include_str!("old_schema.sql")).unwrap();
}

/// Records a server whose log has become so long that the store's own thread checkpoints it while orders come in.
pub fn long_log(folder: &Path) -> Run {
    let mut run = start(folder);
    run.create(3);
    let log = folder.join("parcelo.db-wal");
    let ballast = Connection::open(run.file()).unwrap();
    ballast
        .execute_batch(
            "PRAGMA wal_autocheckpoint = 0; INSERT INTO meta VALUES ('ballast', zeroblob(100000))",
        )
        .unwrap();
    while fs::metadata(&log).unwrap().len() < NEARLY_CHECKPOINTED {
        ballast
            .execute_batch("UPDATE meta SET value = randomblob(100000) WHERE name = 'ballast'")
            .unwrap();
    }
    drop(ballast);
    run.restart_log();
    // The salts change once the log begins again.
    let salts = || fs::read(&log).unwrap()[16..24].to_vec();
    let before = salts();
    while salts() == before {
        run.create(1);
    }
    run.create(1);
    run.finish()
}

/// Records a restart on the files that a crash has left: the service recovers, answers the requests that were in
/// flight, and accepts others.
pub fn recovery(folder: &Path, crashed: (&Run, &Expectations, &Image), rng: &mut Rng) -> Run {
    let (run, expected, image) = crashed;
    write_image(folder, image);
    let in_flight = expected.requests.iter().filter(|(_, answered)| !**answered);
    let in_flight: Vec<_> = in_flight.map(|(at, _)| *at).collect();
    let mut run = Recording::after(run, expected, folder);
    run.open();
    run.send(in_flight.into_iter());
    run.create(2);
    if rng.bool() {
        run.checkpoint("PASSIVE");
    }
    run.create(1);
    run.finish()
}
