//! What creates in production cost while a sandbox of 300,000 parcels is reset beside them, by ten requests at once: the
//! same load before the resets and during them, in one run.
//!
//! `cargo bench -p parcelo-server --bench erasing [-- PARCELS]` prints a table for docs/operations.md.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a benchmark fails loudly, reads the clock and prints"
)]

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rusqlite::Connection;
use serde_json::Value;
use tokio::task::JoinSet;

const SERVER: &str = env!("CARGO_BIN_EXE_parcelo-server");
const CLIENTS: usize = 8;
const RESETS: usize = 10;
const BEFORE: Duration = Duration::from_secs(10);
const ORDER: &str = r#"{"idempotencyKey":"bench-NAME","sender":{"fullName":"Ana Ruiz","phone":"+13055550100","address":{"line1":"8400 NW 25th St","city":"Miami","state":"FL","zipCode":"33122","country":"US"}},"receiver":{"fullName":"Luis Paredes","phone":"+593991234567","nationalId":"1714307103","idType":"cedula","address":{"line1":"Av. Amazonas N34-451","city":"Quito","province":"Pichincha","zipCode":"170515","country":"EC"}},"parcelDetails":{"weightKg":1.25,"declaredValue":45.50},"customsInfo":{"description":"Cotton shirts","hsCode":"610910"}}"#;

/// A server that is killed when the measurement is over.
struct Server(Child, Value);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn main() {
    let parcels = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(300_000);
    tokio::runtime::Runtime::new().unwrap().block_on(measure(parcels));
}

async fn measure(parcels: u32) {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("parcelo.db");
    let server = start(&database, folder.path());
    let [live, test] = ["production", "sandbox"].map(|environment| new_key(&database, environment));
    let address = |server: &Server, name: &str| server.1[name].as_str().unwrap().to_owned();
    create(&reqwest::Client::new(), &address(&server, "sandbox"), &test, "template").await;
    // A server draws the rows of its parcels from memory: no one may add others beside it.
    drop(server);
    multiply(&database, parcels);
    let server = start(&database, folder.path());
    let [production, sandbox] = ["production", "sandbox"].map(|name| address(&server, name));

    let stop = Arc::new(AtomicBool::new(false));
    let load = tokio::spawn(load((production, live), Arc::clone(&stop)));
    tokio::time::sleep(BEFORE).await;
    let begun = Instant::now();
    let mut resets = JoinSet::new();
    for _ in 0..RESETS {
        let reset = reqwest::Client::new().post(format!("{sandbox}/api/v1/sandbox/reset"));
        let reset = reset.header("x-api-key", &test).send();
        resets.spawn(async move { reset.await.unwrap().error_for_status().unwrap().text().await });
    }
    let bodies = resets.join_all().await;
    let answered = begun.elapsed();
    while is_under_way(&database) {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let erased = begun.elapsed();
    stop.store(true, Ordering::Relaxed);
    let all = load.await.unwrap();
    let (during, before): (Vec<_>, Vec<_>) = all.into_iter().partition(|(at, _)| *at >= begun);
    println!("| creates in production, {CLIENTS} clients | orders/s | p50 ms | p99 ms | max ms |");
    println!("|---|---|---|---|---|");
    row("without", &before, BEFORE);
    row(&format!("during {RESETS} resets of {parcels} parcels"), &during, erased);
    let body = bodies.into_iter().next().unwrap().unwrap();
    println!("\nThe resets: answered after {answered:.1?}, erased after {erased:.1?}: {body}");
}

fn row(what: &str, all: &[(Instant, Duration)], over: Duration) {
    let mut times: Vec<_> = all.iter().map(|(_, took)| took.as_secs_f64() * 1_000.0).collect();
    times.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let rate = times.len() as f64 / over.as_secs_f64();
    println!("| {what} | {rate:.0} | {:.1} | {:.1} | {:.1} |", at(0.5), at(0.99), at(1.0));
}

/// Orders by several clients, one after the other, until it is time to stop: when each began and
/// how long it took.
async fn load((url, key): (String, String), stop: Arc<AtomicBool>) -> Vec<(Instant, Duration)> {
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let (url, key, stop) = (url.clone(), key.clone(), Arc::clone(&stop));
        clients.spawn(async move {
            let (client, mut all) = (reqwest::Client::new(), Vec::new());
            while !stop.load(Ordering::Relaxed) {
                let begun = Instant::now();
                create(&client, &url, &key, &format!("{number}-{}", all.len())).await;
                all.push((begun, begun.elapsed()));
            }
            all
        });
    }
    clients.join_all().await.into_iter().flatten().collect()
}

async fn create(client: &reqwest::Client, url: &str, key: &str, name: &str) {
    let request = client.post(format!("{url}/api/v1/orders/create")).header("x-api-key", key);
    let request = request.header("content-type", "application/json");
    let answer = request.body(ORDER.replace("NAME", name)).send().await.unwrap();
    assert_eq!(answer.status(), 201, "{}", answer.text().await.unwrap());
}

fn new_key(database: &Path, environment: &str) -> String {
    let mut command = Command::new(SERVER);
    command.args(["keys", "create", "--json", "--name", "Bench", "--countries", "*"]);
    command.args(["--environment", environment, "--database"]);
    let output = command.arg(format!("sqlite:{}", database.display())).output().unwrap();
    let made: Value = serde_json::from_slice(&output.stdout).unwrap();
    made["key"].as_str().unwrap().to_owned()
}

fn start(database: &Path, folder: &Path) -> Server {
    let ready: PathBuf = folder.join("ready.json");
    let mut command = Command::new(SERVER);
    command.args(["serve", "--production-rate-limit", "1000000", "--database"]);
    command.arg(format!("sqlite:{}", database.display())).arg("--ready-file").arg(&ready);
    for listener in ["--listen", "--sandbox-listen", "--admin-listen"] {
        command.args([listener, "127.0.0.1:0"]);
    }
    let _old = std::fs::remove_file(&ready);
    let child = command.env("PARCELO_LOG", "warn").stdout(Stdio::null()).spawn().unwrap();
    while !ready.exists() {
        std::thread::yield_now();
    }
    let addresses = serde_json::from_slice(&std::fs::read(&ready).unwrap()).unwrap();
    Server(child, addresses)
}

/// As many sandbox parcels as wanted, each with two events and its idempotency record, like the one
/// that is there.
fn multiply(database: &Path, parcels: u32) {
    let db = Connection::open(database).unwrap();
    db.execute_batch(&format!(
        "CREATE TEMP TABLE numbers AS WITH RECURSIVE n(i) AS \
           (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {parcels}) SELECT i FROM n;
         CREATE TEMP TABLE copies AS SELECT * FROM main.parcels;
         BEGIN;
         INSERT INTO parcels (id, version, tenant, environment, number, public_id, state, created_at,
           updated_at, origin, destination, country, promised_day, label_version, last_sequence, order_json)
         SELECT id + i, 1, tenant, environment, printf('SB-%012d', i), randomblob(16), state,
           created_at, updated_at, origin, destination, country, promised_day, 1, 4, order_json
           FROM copies, numbers;
         INSERT INTO events SELECT id + i, 3, 5, created_at, destination, NULL FROM copies, numbers;
         INSERT INTO events SELECT id + i, 4, 5, created_at, destination, NULL FROM copies, numbers;
         CREATE TEMP TABLE records AS SELECT * FROM main.idempotency;
         INSERT INTO idempotency (key, tenant, first_seen, fingerprint, body)
         SELECT randomblob(16), tenant, first_seen, fingerprint, body FROM records, numbers;
         COMMIT; PRAGMA wal_checkpoint(PASSIVE);"
    ))
    .unwrap();
}

fn is_under_way(database: &Path) -> bool {
    let db = Connection::open(database).unwrap();
    db.query_row("SELECT EXISTS (SELECT 1 FROM ended_generations)", [], |row| row.get(0)).unwrap()
}
