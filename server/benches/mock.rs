//! The cost of the mock server in a test suite. The run measures the time from its start to the first order with a
//! label, the start of 200 servers at once, both compared with wiremock and one stub, thirty simulated days with 10,000
//! parcels, and the memory held after a million requests.
//!
//! `cargo bench -p parcelo-server --bench mock` prints tables for docs/benchmarks.md.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark fails loudly, reads the clock and prints"
)]

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use axum::{Router, body::Body};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, client::conn::http1};
use hyper_util::rt::TokioIo;
use parcelo::ApiKey;
use parcelo_server::mock::{Clock, MockServer};
use tokio::net::TcpStream;
use tower::ServiceExt;
use wiremock::{Mock, ResponseTemplate, matchers};

const STARTS: usize = 300;
const CONCURRENT_SERVERS: usize = 200;
const CONCURRENT_ROUNDS: usize = 10;
const ADVANCE_ROUNDS: usize = 5;
const PARCELS: usize = 10_000;
const REQUESTS: usize = 1_000_000;
const CREATE_PATH: &str = "/api/v1/orders/create";
const CREATED_BODY: &str = r#"{"success":true,"parcel":{"id":"par_01JH8Z0000000000000000000A","trackingNumber":"SBEC7K2M9QX4T8WD0","status":"LABEL_GENERATED","labelUrl":"http://127.0.0.1:8081/files/SBEC7K2M9QX4T8WD0.pdf?sig=0000000000000000000000","createdAt":"2026-01-10T15:05:00.000Z"}}"#;

#[tokio::main]
async fn main() {
    // Memory comes first, because its figures would include what the other measurements leave allocated.
    measure_memory().await;
    measure_starts().await;
    measure_concurrent_starts().await;
    measure_thirty_days().await;
}

/// Returns the sample order with an idempotency key made from `key`, and this tracking number.
fn order(key: usize, number: &str) -> String {
    let order = parcelo_server::mock::sample::ORDER;
    let order = order.replace("first-order-0001", &format!("order-{key:07}"));
    order.replace("SB-SUCCESS-0001", number)
}

async fn measure_starts() {
    println!("\n| from nothing to | least ms | median ms | p99 ms |");
    println!("|---|---|---|---|");
    let (mut ours, mut labels, mut inline, mut theirs) = (vec![], vec![], vec![], vec![]);
    for _ in 0..STARTS {
        let begun = Instant::now();
        let (_server, key, mut connection) = start_mock_server().await;
        ours.push(begun.elapsed());
        connection.download_label(key.secret()).await;
        labels.push(begun.elapsed());
        inline.push(time_start_in_memory().await);
        let begun = Instant::now();
        let _server = start_wiremock().await;
        theirs.push(begun.elapsed());
    }
    print_row("the first 201 of the mock server, over HTTP", &mut ours);
    print_row("its label as PDF too", &mut labels);
    print_row("the first 201 of the mock server, in memory", &mut inline);
    print_row("the first stubbed 201 of wiremock, over HTTP", &mut theirs);
}

fn print_row(what: &str, times: &mut [Duration]) {
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    times.sort_unstable();
    let [least, median, p99] = [0, 50, 99].map(|part| millis(times[times.len() * part / 100]));
    println!("| {what} | {least:.2} | {median:.2} | {p99:.2} |");
}

async fn measure_concurrent_starts() {
    println!(
        "\n| {CONCURRENT_SERVERS} servers at once, all have answered 201 | least ms | median ms |"
    );
    println!("|---|---|---|");
    let (mut ours, mut theirs) = (vec![], vec![]);
    for _ in 0..CONCURRENT_ROUNDS {
        ours.push(time_concurrent_starts(start_mock_server).await);
        theirs.push(time_concurrent_starts(start_wiremock).await);
    }
    for (what, mut times) in [("the mock server", ours), ("wiremock with a stub", theirs)] {
        times.sort_unstable_by(f64::total_cmp);
        println!("| {what} | {:.0} | {:.0} |", times[0], times[CONCURRENT_ROUNDS / 2]);
    }
}

/// Starts all servers at once. Returns the milliseconds until each has answered its first request.
async fn time_concurrent_starts<S, F: Future<Output = S>>(start: impl Fn() -> F) -> f64 {
    let begun = Instant::now();
    let servers = futures_util::future::join_all((0..CONCURRENT_SERVERS).map(|_| start())).await;
    let took = begun.elapsed().as_secs_f64() * 1000.0;
    // wiremock blocks when it is dropped, for ever if tokio's cooperative budget then makes the task yield.
    tokio::task::unconstrained(async { drop(servers) }).await;
    took
}

/// Starts a mock server and creates its first order over HTTP.
async fn start_mock_server() -> (MockServer, ApiKey, Connection) {
    let server = MockServer::start().await;
    let key = server.key().issue();
    let mut connection = Connection::open(server.url()).await;
    connection.create_order(key.secret()).await;
    (server, key, connection)
}

/// Starts a wiremock server with one stub, and gets its first answer.
async fn start_wiremock() -> wiremock::MockServer {
    let server = wiremock::MockServer::start().await;
    let stub = Mock::given(matchers::method("POST")).and(matchers::path(CREATE_PATH));
    let answer = ResponseTemplate::new(201).set_body_raw(CREATED_BODY, "application/json");
    stub.respond_with(answer).mount(&server).await;
    Connection::open(&server.uri()).await.create_order("pk_test_").await;
    server
}

/// Returns the time from the start of a mock server to its first order, without a socket.
async fn time_start_in_memory() -> Duration {
    let begun = Instant::now();
    let server = MockServer::start().await;
    let key = server.key().issue();
    let status =
        send_in_memory(&server.routes(), key.secret(), CREATE_PATH, order(1, "SB-SUCCESS-0001"))
            .await;
    assert_eq!(status, 201);
    begun.elapsed()
}

/// An HTTP/1.1 connection to a server.
struct Connection(http1::SendRequest<Full<Bytes>>);

impl Connection {
    async fn open(url: &str) -> Self {
        let address: SocketAddr = url.trim_start_matches("http://").parse().unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(driver);
        Self(sender)
    }

    async fn create_order(&mut self, key: &str) {
        let request = Request::post(CREATE_PATH).header("content-type", "application/json");
        self.send(request, key, order(1, "SB-SUCCESS-0001"), 201).await;
    }

    async fn download_label(&mut self, key: &str) {
        let request = Request::get("/api/v1/labels/SB-SUCCESS-0001/download?format=pdf");
        self.send(request, key, String::new(), 200).await;
    }

    async fn send(
        &mut self,
        request: http::request::Builder,
        key: &str,
        body: String,
        status: u16,
    ) {
        let request = request.header("host", "bench").header("x-api-key", key);
        self.0.ready().await.unwrap();
        let answer =
            self.0.send_request(request.body(Full::new(body.into())).unwrap()).await.unwrap();
        assert_eq!(answer.status(), status);
        answer.into_body().collect().await.unwrap();
    }
}

/// Sends a request to the router directly, without a socket, and returns the response's status.
async fn send_in_memory(routes: &Router, key: &str, path: &str, body: String) -> u16 {
    let method = if body.is_empty() { "GET" } else { "POST" };
    let request = Request::builder().method(method).uri(path).header("x-api-key", key);
    let request = request.header("content-type", "application/json").body(Body::from(body));
    let answer = routes.clone().oneshot(request.unwrap()).await.unwrap();
    let status = answer.status().as_u16();
    answer.into_body().collect().await.unwrap();
    status
}

async fn measure_thirty_days() {
    println!("\n| 30 days over {PARCELS} parcels, created | least s | median s | steps |");
    println!("|---|---|---|---|");
    for (what, seconds_apart) in [("at one moment", 0), ("one a minute", 60)] {
        let mut times = vec![];
        let mut steps = 0;
        for _ in 0..ADVANCE_ROUNDS {
            let server = start_with_parcels(seconds_apart).await;
            let begun = Instant::now();
            steps = server.clock().advance(Duration::from_secs(30 * 24 * 3600)).await.len();
            times.push(begun.elapsed().as_secs_f64());
        }
        times.sort_unstable_by(f64::total_cmp);
        println!("| {what} | {:.2} | {:.2} | {steps} |", times[0], times[ADVANCE_ROUNDS / 2]);
    }
}

/// Starts a server whose parcels were created this many seconds apart and have not moved yet.
async fn start_with_parcels(seconds_apart: u64) -> MockServer {
    let server = MockServer::builder().clock(Clock::frozen("2026-03-01T00:00:00Z")).start().await;
    let (routes, key) = (server.routes(), server.key().issue());
    for place in 0..PARCELS {
        // The clock goes backwards, so that no step of a parcel falls due meanwhile.
        let before = server.clock().now() - Duration::from_secs(seconds_apart);
        server.clock().set(&before.to_rfc3339()).await;
        let number = format!("SB-SUCCESS-{place:05}");
        assert_eq!(
            send_in_memory(&routes, key.secret(), CREATE_PATH, order(place, &number)).await,
            201
        );
    }
    server
}

/// Measures the resident memory during a million requests without a socket. None of them creates anything, and the
/// request log is bounded, so the memory must not grow.
async fn measure_memory() {
    println!("| requests in memory | requests/s | resident MiB |");
    println!("|---|---|---|");
    let server = MockServer::start().await;
    let (routes, key) = (server.routes(), server.key().issue());
    send_in_memory(&routes, key.secret(), CREATE_PATH, order(1, "SB-SUCCESS-0001")).await;
    let begun = Instant::now();
    for done in 1..=REQUESTS {
        let (path, body, status) = match done % 4 {
            0 => (CREATE_PATH.to_owned(), order(1, "SB-SUCCESS-0001"), 200),
            1 => ("/api/v1/tracking/SB-SUCCESS-0001".to_owned(), String::new(), 200),
            2 => (format!("/api/v1/tracking/NOBODYS-{done:07}"), String::new(), 404),
            _ => (CREATE_PATH.to_owned(), order(done, "no number"), 400),
        };
        assert_eq!(send_in_memory(&routes, key.secret(), &path, body).await, status);
        if [1, 10_000, 100_000, REQUESTS / 2, REQUESTS].contains(&done) {
            let rate = done as f64 / begun.elapsed().as_secs_f64();
            println!("| {done} | {rate:.0} | {:.1} |", resident_mib());
        }
    }
}

fn resident_mib() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: f64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096.0 / 1024.0 / 1024.0
}
