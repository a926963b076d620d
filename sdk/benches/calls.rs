//! The CPU time of a successful call on the caller's thread, compared with reqwest alone and reqwest with the usual
//! middleware. Each sends the same order to the same server, which runs in a separate process. The connection runs on
//! the measured thread.
//!
//! `cargo bench -p parcelo --bench calls [-- CALLS]` prints a table for docs/benchmarks.md. Linux only, because a
//! thread's CPU time is read from /proc. `count WHAT CALLS` makes calls of one kind and prints nothing, so that a
//! profiler can count their instructions.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark fails loudly and prints"
)]

#[path = "../tests/constant_server/mod.rs"]
mod constant_server;

use std::{
    io::{BufRead, BufReader},
    net::TcpListener,
    process::{Child, Command, Stdio},
};

use parcelo::{ApiKey, Client, Environment, OrderRequest, RateLimit, model::CreatedOrder};
use reqwest_middleware::ClientBuilder;
use reqwest_retry::{RetryTransientMiddleware, policies::ExponentialBackoff};
use tokio::runtime::Runtime;

use constant_server::{ORDER, serve};

const SERVE_ARGUMENT: &str = "--serve";
const ROUNDS: usize = 15;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == SERVE_ARGUMENT) {
        return serve_constant();
    }
    let calls = arguments.iter().find_map(|text| text.parse().ok()).unwrap_or(2000);
    let counted = arguments.first().is_some_and(|first| first == "count");
    let counted = counted.then(|| arguments[1].as_str());
    let server = Server::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    measure(&runtime, &server.address, counted, calls);
}

fn measure(runtime: &Runtime, address: &str, counted: Option<&str>, calls: u32) {
    let order: OrderRequest = serde_json::from_str(ORDER).unwrap();
    let url = format!("{address}/api/v1/orders/create");
    let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);

    let raw = reqwest::Client::new();
    let alone = async || {
        let request = raw.post(&url).header("X-API-Key", key.secret()).json(&order);
        request.send().await.unwrap().json::<CreatedOrder>().await.unwrap()
    };
    let policy = ExponentialBackoff::builder().build_with_max_retries(3);
    let usual = ClientBuilder::new(reqwest::Client::new())
        .with(RetryTransientMiddleware::new_with_policy(policy))
        .build();
    let middleware = async || {
        let request = usual.post(&url).header("X-API-Key", key.secret()).json(&order);
        request.send().await.unwrap().json::<CreatedOrder>().await.unwrap()
    };
    let builder = Client::builder(key.clone()).base_url(address).unwrap();
    let client = builder.rate_limit(RateLimit::off()).build().unwrap();
    let ours = async || client.orders().create(&order).await.unwrap();

    match counted {
        Some("reqwest") => return runtime.block_on(call_repeatedly(calls, &alone)),
        Some("middleware") => return runtime.block_on(call_repeatedly(calls, &middleware)),
        Some(_) => return runtime.block_on(call_repeatedly(calls, &ours)),
        None => {}
    }
    // All three take turns in each round, so that other load on the machine affects them alike.
    let mut costs = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        costs[0].push(cpu_micros_per_call(runtime, calls, &alone));
        costs[1].push(cpu_micros_per_call(runtime, calls, &middleware));
        costs[2].push(cpu_micros_per_call(runtime, calls, &ours));
    }
    println!("| what | median µs of CPU per call | least |\n|---|---|---|");
    let names = ["reqwest, `.json()`", "reqwest-middleware + reqwest-retry", "parcelo"];
    for (name, costs) in names.iter().zip(&mut costs) {
        costs.sort_by(f64::total_cmp);
        println!("| {name} | {:.1} | {:.1} |", costs[ROUNDS / 2], costs[0]);
    }
}

/// Returns the CPU time of a call on this thread, in microseconds.
fn cpu_micros_per_call<T>(runtime: &Runtime, calls: u32, call: &impl AsyncFn() -> T) -> f64 {
    runtime.block_on(async {
        call_repeatedly(calls / 10, call).await;
        let before = cpu_nanos();
        call_repeatedly(calls, call).await;
        (cpu_nanos() - before) as f64 / 1000.0 / f64::from(calls)
    })
}

async fn call_repeatedly<T>(calls: u32, call: &impl AsyncFn() -> T) {
    for _ in 0..calls {
        std::hint::black_box(call().await);
    }
}

/// Returns the nanoseconds that this thread has run.
fn cpu_nanos() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start() -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut child = command.arg(SERVE_ARGUMENT).stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { child, address: address.trim().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Answers every request with the same response, until the process is killed.
fn serve_constant() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("http://{}", listener.local_addr().unwrap());
    serve(&listener);
}
