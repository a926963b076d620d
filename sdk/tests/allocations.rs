//! Allocations of a call, compared with reqwest alone and with reqwest and its usual middleware: the same request to
//! the same server. All are counted on one thread, which also drives the connection.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod constant_server;

use std::net::TcpListener;

use parcelo::{ApiKey, Client, Environment, OrderRequest, RateLimit, model::CreatedOrder};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use reqwest_retry::{RetryTransientMiddleware, policies::ExponentialBackoff};
use tokio::runtime::Runtime;

use constant_server::{ORDER, serve};

/// Maximum number of allocations of a successful call beyond those of reqwest alone.
const MAX_ADDITIONAL: u64 = 4;

#[test]
fn a_call_allocates_little_more_than_reqwest_alone() {
    let address = serve_constant();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let order: OrderRequest = serde_json::from_str(ORDER).unwrap();

    let url = format!("{address}/api/v1/orders/create");
    let raw = reqwest::Client::new();
    let alone = min_allocations(&runtime, || async {
        let request = raw.post(&url).header("X-API-Key", key().secret());
        let response = request.json(&order).send().await.unwrap();
        std::hint::black_box(response.json::<CreatedOrder>().await.unwrap());
    });
    let usual = with_middleware();
    let middleware = min_allocations(&runtime, || async {
        let request = usual.post(&url).header("X-API-Key", key().secret());
        let response = request.json(&order).send().await.unwrap();
        std::hint::black_box(response.json::<CreatedOrder>().await.unwrap());
    });
    let builder = Client::builder(key()).base_url(&address).unwrap();
    let client = builder.rate_limit(RateLimit::off()).build().unwrap();
    let off = min_allocations(&runtime, || async {
        std::hint::black_box(client.orders().create(&order).await.unwrap());
    });
    let client = client.with_rate_limit(RateLimit::adaptive());
    let ours = min_allocations(&runtime, || async {
        std::hint::black_box(client.orders().create(&order).await.unwrap());
    });
    let found = format!(
        "reqwest {alone}, with middleware {middleware}, ours {ours} (without limiter {off})"
    );
    assert!(ours <= alone + MAX_ADDITIONAL && ours < middleware && off <= ours, "{found}");
}

fn key() -> ApiKey {
    ApiKey::from_random(Environment::Sandbox, &[7; 32])
}

fn with_middleware() -> ClientWithMiddleware {
    let policy = ExponentialBackoff::builder().build_with_max_retries(3);
    ClientBuilder::new(reqwest::Client::new())
        .with(RetryTransientMiddleware::new_with_policy(policy))
        .build()
}

/// Returns the minimum number of allocations among several calls in succession, which is the cost with warm pools.
fn min_allocations<F: Future<Output = ()>>(runtime: &Runtime, call: impl Fn() -> F) -> u64 {
    let counted = |_| allocation_counter::measure(|| runtime.block_on(call())).count_total;
    (0..30).map(counted).min().unwrap()
}

/// Starts a server, on threads of its own, that responds to every request identically.
fn serve_constant() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || serve(&listener));
    address
}
