//! Orders a second over HTTP, each answered after its fsync, beside a static axum handler that
//! answers the same request with the same bytes and does nothing else, in the same run.
//!
//! `cargo bench -p parcelo-server --bench creates [-- SECONDS]` prints a table for docs/benchmarks.md.
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
const ORDER: &str = r#"{"idempotencyKey":"KEY","sender":{"fullName":"Ana Ruiz","phone":"+13055550100","address":{"line1":"8400 NW 25th St","city":"Miami","state":"FL","zipCode":"33122","country":"US"}},"receiver":{"fullName":"Luis Paredes","phone":"+593991234567","nationalId":"1714307103","idType":"cedula","address":{"line1":"Av. Amazonas N34-451","city":"Quito","province":"Pichincha","zipCode":"170515","country":"EC"}},"parcelDetails":{"weightKg":1.25,"declaredValue":45.50},"customsInfo":{"description":"Cotton shirts","hsCode":"610910"}}"#;
const ANSWER: &str = r#"{"success":true,"parcel":{"id":"par_01JH8Z0000000000000000000A","trackingNumber":"SBEC7K2M9QX4T8WD0","status":"LABEL_GENERATED","labelUrl":"http://127.0.0.1:8081/files/SBEC7K2M9QX4T8WD0.pdf?sig=0000000000000000000000","createdAt":"2026-01-10T15:05:00.000Z"}}"#;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if arguments.first().is_some_and(|first| first == STATIC) {
        return runtime.block_on(serve_static(Path::new(&arguments[1])));
    }
    let seconds = arguments.iter().find_map(|text| text.parse().ok()).unwrap_or(5);
    runtime.block_on(measure(Duration::from_secs(seconds)));
}

async fn measure(time: Duration) {
    let folder = tempfile::tempdir().unwrap();
    println!("| what | connections | answers/s | p50 ms | p99 ms | orders per commit |");
    println!("|---|---|---|---|---|---|");
    for connections in [32, 256] {
        let peer = Peer::start_static(folder.path());
        load(peer, "a static axum handler", connections, time).await;
        let peer = Peer::start_server(folder.path(), connections);
        load(peer, "durable creates, SQLite, synchronous=FULL", connections, time).await;
    }
}

/// A server in a process of its own.
struct Peer {
    child: Child,
    address: SocketAddr,
    key: String,
    log: Option<std::path::PathBuf>,
}

impl Peer {
    fn start_static(folder: &Path) -> Self {
        let ready = folder.join("static.json");
        let mut command = Command::new(std::env::current_exe().unwrap());
        let child = command.arg(STATIC).arg(&ready).spawn().unwrap();
        let address = wait_for(&ready).parse().unwrap();
        Self { child, address, key: "pk_test_".to_owned(), log: None }
    }

    fn start_server(folder: &Path, run: usize) -> Self {
        let database = format!("sqlite:{}", folder.join(format!("{run}.db")).display());
        let ready = folder.join(format!("{run}.json"));
        let log = folder.join(format!("{run}.log"));
        let mut command = Command::new(SERVER);
        command.args(["serve", "--database", &database, "--sandbox-rate-limit", "100000000"]);
        for listener in ["--listen", "--sandbox-listen", "--admin-listen"] {
            command.args([listener, "127.0.0.1:0"]);
        }
        command
            .arg("--ready-file")
            .arg(&ready)
            .env("PARCELO_LOG", "warn,parcelo_server::process=info");
        command.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
        let child = command.spawn().unwrap();
        let addresses: serde_json::Value = serde_json::from_str(&wait_for(&ready)).unwrap();
        let address = addresses["sandbox"].as_str().unwrap().trim_start_matches("http://");
        let mut keys = Command::new(SERVER);
        keys.args(["keys", "create", "--database", &database, "--environment", "sandbox"]);
        let key = keys.args(["--name", "bench", "--countries", "*"]).output().unwrap().stdout;
        let key = String::from_utf8(key).unwrap().trim().to_owned();
        Self { child, address: address.parse().unwrap(), key, log: Some(log) }
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
    let listener = parcelo_server::http::Listener::start(
        socket,
        routes,
        parcelo_server::http::Stop::default(),
    );
    listener.finish().await;
}

async fn load(mut peer: Peer, what: &str, connections: usize, time: Duration) {
    let key: Arc<str> = peer.key.as_str().into();
    let until = Instant::now() + time;
    let mut tasks = JoinSet::new();
    for connection in 0..connections {
        tasks.spawn(client(peer.address, Arc::clone(&key), connection, until));
    }
    let mut micros: Vec<u64> = tasks.join_all().await.into_iter().flatten().collect();
    micros.sort_unstable();
    let at = |share: f64| micros[(micros.len() as f64 * share) as usize] as f64 / 1000.0;
    let rate = micros.len() as f64 / time.as_secs_f64();
    let (p50, p99, grouped) = (at(0.5), at(0.99), peer.orders_per_commit());
    println!("| {what} | {connections} | {rate:.0} | {p50:.2} | {p99:.2} | {grouped} |");
}

/// One connection that sends order after order, each with a key of its own; how long each took.
async fn client(address: SocketAddr, key: Arc<str>, connection: usize, until: Instant) -> Vec<u64> {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut sender, driver) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(driver);
    let mut micros = Vec::new();
    while Instant::now() < until {
        let order = ORDER.replace("KEY", &format!("bench-{connection}-{}", micros.len()));
        let request =
            Request::post(PATH).header("host", "bench").header("content-type", "application/json");
        let request =
            request.header("x-api-key", &*key).body(Full::new(Bytes::from(order))).unwrap();
        let begun = Instant::now();
        let answer = sender.send_request(request).await.unwrap();
        assert_eq!(answer.status(), 201);
        answer.into_body().collect().await.unwrap();
        micros.push(u64::try_from(begun.elapsed().as_micros()).unwrap());
    }
    micros
}
