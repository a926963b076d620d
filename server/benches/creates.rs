//! Orders a second over HTTP, each answered after its fsync, beside a static axum handler that
//! answers the same request with the same bytes and does nothing else, in the same run; the same in
//! memory, repeats and tracking records; and how long a new server takes until its first order.
//!
//! `cargo bench -p parcelo-server --bench creates [-- SECONDS]` prints tables for docs/benchmarks.md;
//! `… -- neighbour [SECONDS]` what creates cost beside a tenant who lists 300,000 parcels all the time.
//! Linux only: it reads a process's memory from /proc.
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
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{Router, routing::post};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::JoinSet};

const SERVER: &str = env!("CARGO_BIN_EXE_parcelo-server");
const PATH: &str = "/api/v1/orders/create";
const STATIC: &str = "--static";
const NEIGHBOUR: &str = "neighbour";
/// What the neighbour has, and over how many connections it was created.
const PARCELS: usize = 300_000;
const LOADERS: usize = 64;
/// What a key may do a second.
const LISTS: u32 = 50;
const PAIRS: usize = 5;
const STARTS: usize = 21;
const ORDER: &str = r#"{"idempotencyKey":"bench-NAME","trackingNumber":"SB-NAME","sender":{"fullName":"Ana Ruiz","phone":"+13055550100","address":{"line1":"8400 NW 25th St","city":"Miami","state":"FL","zipCode":"33122","country":"US"}},"receiver":{"fullName":"Luis Paredes","phone":"+593991234567","nationalId":"1714307103","idType":"cedula","address":{"line1":"Av. Amazonas N34-451","city":"Quito","province":"Pichincha","zipCode":"170515","country":"EC"}},"parcelDetails":{"weightKg":1.25,"declaredValue":45.50},"customsInfo":{"description":"Cotton shirts","hsCode":"610910"}}"#;
const ANSWER: &str = r#"{"success":true,"parcel":{"id":"par_01JH8Z0000000000000000000A","trackingNumber":"SBEC7K2M9QX4T8WD0","status":"LABEL_GENERATED","labelUrl":"http://127.0.0.1:8081/files/SBEC7K2M9QX4T8WD0.pdf?sig=0000000000000000000000","createdAt":"2026-01-10T15:05:00.000Z"}}"#;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if arguments.first().is_some_and(|first| first == STATIC) {
        return runtime.block_on(serve_static(Path::new(&arguments[1])));
    }
    let seconds = arguments.iter().find_map(|text| text.parse().ok()).unwrap_or(5);
    let time = Duration::from_secs(seconds);
    if arguments.iter().any(|argument| argument == NEIGHBOUR) {
        return runtime.block_on(beside_a_neighbour(time));
    }
    runtime.block_on(measure(time));
}

async fn measure(time: Duration) {
    let folder = tempfile::tempdir().unwrap();
    println!("| what | connections | answers/s | p50 ms | p99 ms | orders per commit |");
    println!("|---|---|---|---|---|---|");
    for connections in [32, 256] {
        let row = async |peer, what, asks| load(peer, what, asks, connections, time).await;
        row(Peer::start_static(folder.path()), "a static axum handler", Asks::New).await;
        let durable = || Peer::start_server(folder.path());
        row(durable(), "durable creates, SQLite, synchronous=FULL", Asks::New).await;
        row(Peer::start_mock(folder.path()), "creates in memory, the mock server", Asks::New).await;
        row(durable(), "repeats of a key", Asks::Again).await;
        row(durable(), "tracking records", Asks::Tracking).await;
    }
    println!("\n| a new server with a new database | least ms | median ms | resident MiB |");
    println!("|---|---|---|---|");
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        starts.push(cold_start(folder.path()).await);
    }
    starts.sort_unstable();
    let [(least, _), (median, memory)] = [starts[0], starts[STARTS / 2]];
    let [least, median] = [least, median].map(|time| time.as_secs_f64() * 1000.0);
    let memory = memory as f64 / 1024.0;
    println!("| to its first labelled 201 | {least:.1} | {median:.1} | {memory:.1} |");
}

/// Creates of one tenant, with and without another one that lists within its limit, in turns.
async fn beside_a_neighbour(time: Duration) {
    let folder = tempfile::tempdir().unwrap();
    let peer = Peer::start_server(folder.path());
    let (own, other): (Arc<str>, Arc<str>) = (peer.key.as_str().into(), peer.other_key().into());
    let mut loaders = JoinSet::new();
    for loader in 0..LOADERS {
        let (key, address) = (Arc::clone(&other), peer.address);
        loaders.spawn(async move {
            let mut line = Line::to(address).await;
            for count in 0..PARCELS.div_ceil(LOADERS) {
                line.send(&key, Asks::New, 1_000 + loader, count).await;
            }
        });
    }
    let half = chrono::Utc::now() + time;
    loaders.join_all().await;
    println!(
        "| pair | p50 ms alone | p50 ms beside lists | ratio | lists a second | p50 ms of a list |"
    );
    println!("|---|---|---|---|---|---|");
    let mut ratios = Vec::new();
    for pair in 0..PAIRS {
        let alone = creates(peer.address, &own, 10 * pair, time).await;
        let neighbour = tokio::spawn(lists(peer.address, Arc::clone(&other), half, time));
        let beside = creates(peer.address, &own, 10 * pair + 5, time).await;
        let listed = neighbour.await.unwrap();
        let rate = listed.len() as f64 / time.as_secs_f64();
        let (ratio, list) = (beside / alone, p50(listed));
        println!("| {pair} | {alone:.2} | {beside:.2} | {ratio:.2} | {rate:.0} | {list:.2} |");
        ratios.push(ratio);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    println!("\nthe median ratio is {:.2}", ratios[PAIRS / 2]);
}

/// The median of one tenant's creates over four connections, in ms.
async fn creates(address: SocketAddr, key: &Arc<str>, first: usize, time: Duration) -> f64 {
    let until = Instant::now() + time;
    let mut tasks = JoinSet::new();
    for connection in first..first + 4 {
        tasks.spawn(client(address, Arc::clone(key), Asks::New, connection, until));
    }
    p50(tasks.join_all().await.into_iter().flatten().collect())
}

/// Lists as fast as a key may, however long each takes: filters, deep pages, parts of a day.
async fn lists(
    address: SocketAddr,
    key: Arc<str>,
    half: chrono::DateTime<chrono::Utc>,
    time: Duration,
) -> Vec<u64> {
    let since = half.format("%Y-%m-%dT%H:%M:%SZ");
    let queries: Arc<[String]> = Arc::from([
        "status=LABEL_GENERATED&page=7000".to_owned(),
        format!("createdFrom={since}&limit=100"),
        "country=EC&page=14000".to_owned(),
        format!("createdTo={since}&status=LABEL_GENERATED&page=50"),
    ]);
    let (mut tasks, until) = (JoinSet::new(), Instant::now() + time);
    for lister in 0..LISTS {
        let (key, queries) = (Arc::clone(&key), Arc::clone(&queries));
        tasks.spawn(async move {
            let mut line = Line::to(address).await;
            let mut second = tokio::time::interval(Duration::from_secs(1));
            tokio::time::sleep(Duration::from_secs(1) / LISTS * lister).await;
            let (mut micros, mut turn) = (Vec::new(), lister as usize);
            while Instant::now() < until {
                second.tick().await;
                let begun = Instant::now();
                turn += 1;
                line.list(&key, &queries[turn % queries.len()]).await;
                micros.push(u64::try_from(begun.elapsed().as_micros()).unwrap());
            }
            micros
        });
    }
    tasks.join_all().await.into_iter().flatten().collect()
}

/// The median, in ms.
fn p50(mut micros: Vec<u64>) -> f64 {
    micros.sort_unstable();
    micros[micros.len() / 2] as f64 / 1000.0
}

/// How long a new server takes until it has answered an order, and the KiB that it then holds.
async fn cold_start(folder: &Path) -> (Duration, u64) {
    let begun = Instant::now();
    let peer = Peer::start_server(folder);
    let mut line = Line::to(peer.address).await;
    line.send(&peer.key, Asks::New, 0, 0).await;
    let took = begun.elapsed();
    let status = std::fs::read_to_string(format!("/proc/{}/status", peer.child.id())).unwrap();
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    (took, memory.trim().trim_end_matches(" kB").parse().unwrap())
}

/// What every request of a row asks for.
#[derive(Clone, Copy)]
enum Asks {
    /// An order under a key of its own.
    New,
    /// An order that is there.
    Again,
    /// Where a parcel is.
    Tracking,
}

/// A server in a process of its own.
struct Peer {
    child: Child,
    address: SocketAddr,
    key: String,
    log: Option<std::path::PathBuf>,
    database: std::path::PathBuf,
}

impl Peer {
    fn start_static(folder: &Path) -> Self {
        let ready = folder.join("static.json");
        let mut command = Command::new(std::env::current_exe().unwrap());
        let child = command.arg(STATIC).arg(&ready).spawn().unwrap();
        let address = wait_for(&ready).parse().unwrap();
        Self { child, address, key: "pk_test_".to_owned(), log: None, database: "".into() }
    }

    /// A server with a new database; its first start makes the key.
    fn start_server(folder: &Path) -> Self {
        let file = |kind: &str| folder.join(kind);
        let database = tempfile::Builder::new().suffix(".db").tempfile_in(folder).unwrap();
        let (_, database) = database.keep().unwrap();
        std::fs::remove_file(&database).unwrap();
        let (ready, log) = (file("ready.json"), file("log.json"));
        let mut command = Command::new(SERVER);
        command.arg("serve").arg("--database").arg(format!("sqlite:{}", database.display()));
        command.args(["--sandbox-rate-limit", "100000000"]);
        for listener in ["--listen", "--sandbox-listen", "--admin-listen"] {
            command.args([listener, "127.0.0.1:0"]);
        }
        command.arg("--ready-file").arg(&ready);
        command.env("PARCELO_LOG", "warn,parcelo_server::process=info");
        command.stdout(Stdio::piped()).stderr(std::fs::File::create(&log).unwrap());
        let mut child = command.spawn().unwrap();
        let addresses: serde_json::Value = serde_json::from_str(&wait_for(&ready)).unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        let key = said.map_while(Result::ok).find_map(|line| {
            let start = line.find("pk_test_")?;
            Some(line[start..].split(|c: char| !c.is_alphanumeric() && c != '_').next()?.to_owned())
        });
        let (address, key) = (address(&addresses["sandbox"]), key.unwrap());
        Self { child, address, key, log: Some(log), database }
    }

    fn start_mock(folder: &Path) -> Self {
        let ready = folder.join("mock.json");
        let mut command = Command::new(SERVER);
        command.args(["mock", "--no-rate-limit", "--ready-file"]).arg(&ready);
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        let said: serde_json::Value = serde_json::from_str(&wait_for(&ready)).unwrap();
        let key = said["apiKey"].as_str().unwrap().to_owned();
        Self { child, address: address(&said["sandbox"]), key, log: None, database: "".into() }
    }

    /// A key of another account.
    fn other_key(&self) -> String {
        let mut command = Command::new(SERVER);
        command.args(["keys", "create", "--account", "Neighbour", "--environment", "sandbox"]);
        command.args(["--name", "Lists", "--countries", "*", "--json", "--database"]);
        command.arg(format!("sqlite:{}", self.database.display()));
        let made: serde_json::Value =
            serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        made["key"].as_str().unwrap().to_owned()
    }

    /// Stops the server in order; its last words say how many orders went into how many commits.
    fn orders_per_commit(&mut self) -> String {
        let Some(log) = &self.log else { return "-".to_owned() };
        Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        self.child.wait().unwrap();
        let text = std::fs::read_to_string(log).unwrap();
        let number = |name: &str| -> Option<f64> {
            let (_, rest) = text.rsplit_once(&format!("\"{name}\":"))?;
            rest.split([',', '}']).next()?.parse().ok()
        };
        let ratio =
            number("changes").zip(number("commits")).map(|(changes, commits)| changes / commits);
        ratio.map_or("?".to_owned(), |ratio| format!("{ratio:.1}"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn address(url: &serde_json::Value) -> SocketAddr {
    url.as_str().unwrap().trim_start_matches("http://").parse().unwrap()
}

fn wait_for(file: &Path) -> String {
    loop {
        match std::fs::read_to_string(file) {
            Ok(text) if !text.is_empty() => {
                std::fs::remove_file(file).unwrap();
                return text;
            }
            _ => std::thread::yield_now(),
        }
    }
}

async fn serve_static(ready: &Path) {
    let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    std::fs::write(ready, socket.local_addr().unwrap().to_string()).unwrap();
    let routes =
        Router::new().route(PATH, post(async |_: Bytes| (axum::http::StatusCode::CREATED, ANSWER)));
    let listener = parcelo_server::internals::Listener::start(
        socket,
        routes,
        parcelo_server::internals::Stop::default(),
    );
    listener.finish().await;
}

async fn load(mut peer: Peer, what: &str, asks: Asks, connections: usize, time: Duration) {
    let key: Arc<str> = peer.key.as_str().into();
    let until = Instant::now() + time;
    let mut tasks = JoinSet::new();
    for connection in 0..connections {
        tasks.spawn(client(peer.address, Arc::clone(&key), asks, connection, until));
    }
    let mut micros: Vec<u64> = tasks.join_all().await.into_iter().flatten().collect();
    micros.sort_unstable();
    let at = |share: f64| micros[(micros.len() as f64 * share) as usize] as f64 / 1000.0;
    let rate = micros.len() as f64 / time.as_secs_f64();
    let (p50, p99, grouped) = (at(0.5), at(0.99), peer.orders_per_commit());
    let grouped = if matches!(asks, Asks::New) { &grouped } else { "-" };
    println!("| {what} | {connections} | {rate:.0} | {p50:.2} | {p99:.2} | {grouped} |");
}

/// One connection that sends request after request; how long each took.
async fn client(
    address: SocketAddr,
    key: Arc<str>,
    asks: Asks,
    connection: usize,
    until: Instant,
) -> Vec<u64> {
    let mut line = Line::to(address).await;
    if !matches!(asks, Asks::New) {
        line.send(&key, Asks::New, connection, 0).await;
    }
    let mut micros = Vec::new();
    while Instant::now() < until {
        let begun = Instant::now();
        line.send(&key, asks, connection, micros.len()).await;
        micros.push(u64::try_from(begun.elapsed().as_micros()).unwrap());
    }
    micros
}

/// A connection.
struct Line(http1::SendRequest<Full<Bytes>>);

impl Line {
    async fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(driver);
        Self(sender)
    }

    async fn list(&mut self, key: &str, query: &str) {
        let request = Request::get(format!("/api/v1/parcels?{query}")).header("host", "bench");
        let request = request.header("x-api-key", key).body(Full::default()).unwrap();
        let answer = self.0.send_request(request).await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.into_body().collect().await.unwrap();
    }

    async fn send(&mut self, key: &str, asks: Asks, connection: usize, count: usize) {
        let count = if matches!(asks, Asks::New) { count } else { 0 };
        let name = format!("{connection:04}-{count:08}");
        let (request, body, status) = match asks {
            Asks::Tracking => {
                (Request::get(format!("/api/v1/tracking/SB-{name}")), String::new(), 200)
            }
            Asks::New => (Request::post(PATH), ORDER.replace("NAME", &name), 201),
            Asks::Again => (Request::post(PATH), ORDER.replace("NAME", &name), 200),
        };
        let request = request.header("host", "bench").header("content-type", "application/json");
        let request = request.header("x-api-key", key).body(Full::new(Bytes::from(body))).unwrap();
        let answer = self.0.send_request(request).await.unwrap();
        assert_eq!(answer.status(), status);
        answer.into_body().collect().await.unwrap();
    }
}
