//! Latency of a search in an account of 1,000,000 parcels, measured by an HTTP client. The client sends one request
//! after the other: by number, by reference and by name.
//!
//! `cargo bench -p parcelo-server --bench search [-- PARCELS]` prints a table, for a file and for PostgreSQL if that is
//! installed. The parcels are inserted directly into the database, so the server has to index them first; the run
//! prints how long that took. It fails if a p99 exceeds 20 ms.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
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
    process::{Child, Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use rusqlite::{Connection, params};
use serde_json::Value;
use tokio_postgres::{Client, NoTls};
use url::form_urlencoded::byte_serialize;

#[path = "../tests/cluster/mod.rs"]
mod cluster;
use cluster::Cluster;

const SERVER: &str = env!("CARGO_BIN_EXE_parcelo-server");
/// Number of searches of each kind.
const SEARCHES: usize = 500;
/// Maximum p99 in milliseconds.
const MAX_P99_MILLIS: f64 = 20.0;
const ORDER: &str = r#"{"idempotencyKey":"bench-search","sender":{"fullName":"Ana Ruiz","phone":"+13055550100","address":{"line1":"8400 NW 25th St","city":"Miami","state":"FL","zipCode":"33122","country":"US"}},"receiver":{"fullName":"Luis Paredes","phone":"+593991234567","nationalId":"1714307103","idType":"cedula","address":{"line1":"Av. Amazonas N34-451","city":"Quito","province":"Pichincha","zipCode":"170515","country":"EC"}},"parcelDetails":{"weightKg":1.25,"declaredValue":45.50},"customsInfo":{"description":"Cotton shirts","hsCode":"610910"}}"#;
/// Given names; each belongs to one receiver in twenty.
const GIVEN_NAMES: [&str; 20] = [
    "María", "José", "Luis", "Ana", "Carlos", "Rosa", "Juan", "Carmen", "Jorge", "Lucía", "Pedro",
    "Elena", "Miguel", "Sofía", "Andrés", "Paola", "Diego", "Inés", "Raúl", "Zoë",
];

/// A server that is killed when the measurement is over.
struct Server(Child, Value);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn main() -> ExitCode {
    let parcels = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(1_000_000);
    let folder = tempfile::tempdir().unwrap();
    let file = Database::File(folder.path().join("parcelo.db"));
    let databases = [Some(file), Database::start_postgres()].into_iter().flatten();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut is_fast = true;
    for database in databases {
        is_fast &= runtime.block_on(measure_database(&database, folder.path(), parcels));
    }
    if is_fast { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn measure_database(database: &Database, folder: &Path, parcels: u64) -> bool {
    let key = new_key(database);
    let server = start_server(database, folder);
    let client = reqwest::Client::new();
    let created = client
        .post(format!("{}/api/v1/orders/create", address(&server)))
        .header("x-api-key", &key)
        .header("content-type", "application/json")
        .body(ORDER)
        .send()
        .await
        .unwrap();
    assert_eq!(created.status(), 201);
    drop(server);
    database.insert_parcels(parcels).await;
    let begun = Instant::now();
    let server = start_server(database, folder);
    while database.is_indexing() {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    println!(
        "\n{}: {parcels} parcels were added to the index in {:.1?}.\n",
        database.name(),
        begun.elapsed()
    );
    database.vacuum();
    println!("| search | found | p50 ms | p99 ms | max ms |\n|---|---|---|---|---|");
    let mut is_fast = true;
    for (what, text) in SEARCH_KINDS {
        is_fast &=
            measure_search_kind(&client, (&address(&server), &key), what, |n| text(n % parcels))
                .await;
    }
    is_fast
}

type SearchKind = (&'static str, fn(u64) -> String);

const SEARCH_KINDS: [SearchKind; 8] = [
    ("a whole number", tracking_number),
    ("the beginning of a number", |n| tracking_number(n)[..9].to_owned()),
    ("the end of a number", |n| tracking_number(n)[8..].to_owned()),
    ("the beginning of a reference", |n| reference(n)[..6].to_owned()),
    ("the end of a reference", |n| reference(n)[3..].to_owned()),
    ("a surname", |n| surname(n)),
    ("a whole name", receiver_name),
    ("a given name", |n| GIVEN_NAMES[(n % 20) as usize].to_owned()),
];

/// Maps each number to another one, so that tracking numbers are not in the order of creation.
const fn permute(n: u64) -> u64 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24
}

fn tracking_number(n: u64) -> String {
    format!("EC{:012X}", permute(n))
}

fn reference(n: u64) -> String {
    format!("PO-{:08}", permute(n) % 100_000_000)
}

/// Returns one of 4,000 surnames.
fn surname(n: u64) -> String {
    const SYLLABLES: [&str; 16] = [
        "ba", "co", "de", "fi", "go", "hu", "ja", "le", "mo", "ná", "pe", "qui", "ro", "sal", "ta",
        "vi",
    ];
    let drawn = permute(n) % 4_000;
    let at = |place: u32| SYLLABLES[(drawn >> (4 * place) & 15) as usize];
    format!("{}{}{}z", at(0), at(1), at(2))
}

async fn measure_search_kind(
    client: &reqwest::Client,
    (url, key): (&str, &str),
    what: &str,
    text: impl Fn(u64) -> String,
) -> bool {
    let (mut times, mut found) = (Vec::new(), 0);
    for n in 0..SEARCHES as u64 {
        let text: String = byte_serialize(text(n * 7_919 + 1).as_bytes()).collect();
        let request = client.get(format!("{url}/api/v1/parcels?search={text}"));
        let request = request.header("x-api-key", key);
        let begun = Instant::now();
        let answer = request.send().await.unwrap();
        let body: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
        times.push(begun.elapsed().as_secs_f64() * 1_000.0);
        let total = body["meta"]["total"].as_u64().unwrap();
        assert!(total > 0 || body["meta"]["isPartial"] == true, "{body}");
        found += total;
    }
    times.sort_unstable_by(f64::total_cmp);
    let percentile = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let found = found as f64 / SEARCHES as f64;
    println!(
        "| {what} | {found:.0} | {:.1} | {:.1} | {:.1} |",
        percentile(0.5),
        percentile(0.99),
        percentile(1.0)
    );
    percentile(0.99) <= MAX_P99_MILLIS
}

fn address(server: &Server) -> String {
    server.1["production"].as_str().unwrap().to_owned()
}

fn new_key(database: &Database) -> String {
    let mut command = Command::new(SERVER);
    command.args(["keys", "create", "--json", "--name", "Bench", "--countries", "*"]);
    command.args(["--environment", "production", "--database"]);
    let output = command.arg(database.url()).output().unwrap();
    let created: Value = serde_json::from_slice(&output.stdout).unwrap();
    created["key"].as_str().unwrap().to_owned()
}

fn start_server(database: &Database, folder: &Path) -> Server {
    let ready = folder.join("ready.json");
    let mut command = Command::new(SERVER);
    command.args(["serve", "--production-rate-limit", "1000000", "--database"]);
    command.arg(database.url()).arg("--ready-file").arg(&ready);
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

enum Database {
    File(PathBuf),
    /// A database in a cluster that is started for this run.
    Postgres(Cluster, String),
}

impl Database {
    fn start_postgres() -> Option<Self> {
        let cluster = Cluster::start(&[])?;
        let name = cluster.create_database();
        Some(Self::Postgres(cluster, name))
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::File(_) => "SQLite",
            Self::Postgres(..) => "PostgreSQL",
        }
    }

    fn url(&self) -> String {
        match self {
            Self::File(path) => format!("sqlite:{}", path.display()),
            Self::Postgres(cluster, name) => cluster.url(name),
        }
    }

    /// Inserts this many copies of the existing parcel, each created a second later and with its own number, reference
    /// and receiver. None is in the index, as after an upgrade.
    async fn insert_parcels(&self, parcels: u64) {
        match self {
            Self::File(path) => insert_into_sqlite(path, parcels),
            Self::Postgres(cluster, name) => {
                let config = format!("host={} user=parcelo dbname={name}", cluster.folder());
                let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
                tokio::spawn(connection);
                insert_into_postgres(&client, parcels).await;
            }
        }
    }

    /// Vacuums the index's tables. A million rows have left the queue, so autovacuum would run during the measurement.
    fn vacuum(&self) {
        if let Self::Postgres(cluster, name) = self {
            for table in ["term_queue", "term_runs", "term_pieces"] {
                cluster.query(name, &format!("VACUUM (ANALYZE) {table}"));
            }
        }
    }

    fn is_indexing(&self) -> bool {
        match self {
            Self::File(path) => {
                let sql = "SELECT (SELECT next FROM term_sweep) + 500 < (SELECT max(id) FROM parcels) \
                     OR EXISTS (SELECT 1 FROM term_runs WHERE NOT is_live)";
                Connection::open(path).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
            }
            Self::Postgres(cluster, name) => {
                let sql = "SELECT (SELECT count(*) FROM term_queue) > 500 \
                     OR EXISTS (SELECT FROM term_runs WHERE NOT is_live)";
                cluster.query(name, sql) == "t"
            }
        }
    }
}

fn receiver_name(n: u64) -> String {
    format!("{} {}", GIVEN_NAMES[(n % 20) as usize], surname(n))
}

fn insert_into_sqlite(database: &Path, parcels: u64) {
    let mut db = Connection::open(database).unwrap();
    let transaction = db.transaction().unwrap();
    let mut insert = transaction
        .prepare(
            "INSERT INTO parcels (id, version, tenant, environment, number, public_id, state, created_at, \
             updated_at, origin, destination, country, promised_day, label_version, last_sequence, order_json, \
             number_is_indexed) \
             SELECT (SELECT max(id) FROM parcels) + 1, 1, tenant, environment, ?1, randomblob(16), state, \
             created_at + ?4, updated_at + ?4, origin, destination, country, promised_day, 1, 2, \
             json_set(order_json, '$.customerReference', ?2, '$.receiver.fullName', ?3), 1 \
             FROM parcels ORDER BY id LIMIT 1",
        )
        .unwrap();
    for n in 0..parcels {
        insert
            .execute(params![
                tracking_number(n),
                reference(n),
                receiver_name(n),
                (n * 1_000).cast_signed()
            ])
            .unwrap();
    }
    drop(insert);
    transaction.commit().unwrap();
}

async fn insert_into_postgres(client: &Client, parcels: u64) {
    const ROWS_PER_STATEMENT: u64 = 10_000;
    let sql = "WITH new AS (INSERT INTO parcels (id, version, tenant, created_at, updated_at, promised_day, \
         label_version, last_sequence, environment, state, country, number, public_id, origin, \
         destination) \
         SELECT t.id + 1 + n.n, 1, t.tenant, t.created_at + 1000 * n.n, \
         t.updated_at + 1000 * n.n, t.promised_day, 1, 2, t.environment, t.state, t.country, n.number, \
         decode(md5(n.number), 'hex'), t.origin, t.destination \
         FROM (SELECT * FROM parcels ORDER BY id LIMIT 1) AS t, \
         unnest($1::bigint[], $2::text[]) AS n (n, number) RETURNING id, number) \
         INSERT INTO orders (parcel, order_json) SELECT new.id, \
         (jsonb_set(t.order_json::jsonb, '{receiver,fullName}', to_jsonb(n.receiver)) \
         || jsonb_build_object('customerReference', n.reference))::text \
         FROM (SELECT * FROM orders ORDER BY parcel LIMIT 1) AS t, new \
         JOIN unnest($2::text[], $3::text[], $4::text[]) AS n (number, reference, receiver) USING (number)";
    for first in (0..parcels).step_by(ROWS_PER_STATEMENT as usize) {
        let range = first..parcels.min(first + ROWS_PER_STATEMENT);
        let places: Vec<i64> = range.clone().map(u64::cast_signed).collect();
        let texts = [tracking_number, reference, receiver_name]
            .map(|text| range.clone().map(text).collect());
        let [numbers, references, receivers]: [Vec<String>; 3] = texts;
        client.execute(sql, &[&places, &numbers, &references, &receivers]).await.unwrap();
    }
    client.batch_execute("VACUUM (ANALYZE) parcels").await.unwrap();
}
