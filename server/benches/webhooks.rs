//! Delay from the commit of an event to the arrival of its webhook. It is measured in pairs: for 99 receivers that
//! answer, and for the same receivers while another one accepts connections but never answers.
//!
//! `cargo bench -p parcelo-server --bench webhooks [-- SECONDS]` prints a table for docs/benchmarks.md.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "a benchmark fails loudly, reads the clock and prints"
)]

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{Router, http::HeaderMap};
use parcelo::{Environment, webhook};
use parcelo_server::internals::{
    Actor, AllowedHosts, EndpointRequest, Ids, Listener, MAX_IN_FLIGHT_PER_ENDPOINT, Secrets,
    Service, Settings, Stop, Store, SystemClock, Tenant, WebhookAllowance, WebhookDispatcher,
    WebhookEventKinds,
};
use tokio::net::TcpListener;
use ulid::Ulid;

const LIVE_RECEIVERS: usize = 99;
const PAIRS: usize = 5;
/// Interval between two events of a tenant.
const EVENT_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum wait for the last deliveries. A retry takes longer than this, and would distort the figures.
const MAX_DELIVERY_WAIT: Duration = Duration::from_secs(20);

fn main() {
    let seconds = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(5);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(measure_pairs(Duration::from_secs(seconds)));
}

async fn measure_pairs(time: Duration) {
    println!("| pair | events | p50 ms | p99 ms | with a dead one: p50 ms | p99 ms | p99, times |");
    println!("|---|---|---|---|---|---|---|");
    let mut ratios = Vec::new();
    for pair in 1..=PAIRS {
        // The order alternates, so that changing load on the machine affects both halves equally.
        let (without, with) = if pair % 2 == 0 {
            let with = Latencies::measure(1, time).await;
            (Latencies::measure(0, time).await, with)
        } else {
            (Latencies::measure(0, time).await, Latencies::measure(1, time).await)
        };
        let ratio = with.p99 / without.p99;
        println!(
            "| {pair} | {} | {:.1} | {:.1} | {:.1} | {:.1} | {ratio:.2} |",
            without.events + with.events,
            without.p50,
            without.p99,
            with.p50,
            with.p99
        );
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    println!("| median | | | | | | {:.2} |", ratios[PAIRS / 2]);
}

/// The latencies of one half of a pair, in milliseconds.
struct Latencies {
    events: usize,
    p50: f64,
    p99: f64,
}

impl Latencies {
    async fn measure(dead: usize, time: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("parcelo.db"), [1; 32]).unwrap();
        let service = Arc::new(Service::new(
            store.clone(),
            Arc::new(SystemClock),
            Arc::new(Ids::random()),
            settings(),
        ));
        let stop = Stop::default();
        let (live, arrived) = start_receiver(stop.clone()).await;
        let silent = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let silent_url = format!("http://{}/hook", silent.local_addr().unwrap());
        let mut tenants = Vec::new();
        for place in 0..dead + LIVE_RECEIVERS {
            let url = if place < dead { &silent_url } else { &live };
            tenants.push(create_subscriber(&service, place, url).await);
        }
        let dispatcher = WebhookDispatcher::new(Arc::clone(&service), MAX_IN_FLIGHT_PER_ENDPOINT);
        let (sends, stopped) = (tokio::spawn(accept_without_answer(silent)), stop.clone());
        let running = tokio::spawn(async move { dispatcher.run(stopped.requested()).await });
        let committed = commit_events(&service, &tenants[dead..], &tenants[..dead], time).await;
        let offered = Instant::now();
        while arrived.lock().unwrap().len() < committed.len() {
            assert!(offered.elapsed() < MAX_DELIVERY_WAIT, "deliveries are missing");
            tokio::time::sleep(EVENT_INTERVAL).await;
        }
        running.abort();
        sends.abort();
        stop.now();
        store.close().await;
        let arrived = arrived.lock().unwrap();
        // A webhook can arrive before the caller learns that its event was committed.
        let took =
            committed.iter().map(|(event, at)| arrived[event].saturating_duration_since(*at));
        let mut took: Vec<_> = took.map(|took| took.as_secs_f64() * 1_000.0).collect();
        took.sort_by(f64::total_cmp);
        Self { events: took.len(), p50: took[took.len() / 2], p99: took[took.len() * 99 / 100] }
    }
}

/// Accepts connections and never answers.
async fn accept_without_answer(silent: TcpListener) {
    let mut open = Vec::new();
    while let Ok(connection) = silent.accept().await {
        open.push(connection);
    }
}

/// Starts a receiver that answers at once and records when each event arrived.
async fn start_receiver(stop: Stop) -> (String, Arc<Mutex<HashMap<Ulid, Instant>>>) {
    let socket = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/hook", socket.local_addr().unwrap());
    let arrived = Arc::new(Mutex::new(HashMap::new()));
    let arrivals = Arc::clone(&arrived);
    let routes = Router::new().fallback(move |headers: HeaderMap| async move {
        let id = headers[webhook::ID].to_str().unwrap().strip_prefix("evt_").unwrap();
        arrivals.lock().unwrap().insert(Ulid::from_string(id).unwrap(), Instant::now());
    });
    drop(Listener::start(socket, routes, stop));
    (url, arrived)
}

/// Commits an event for every tenant at each interval. Returns the time of the commit of each event that a live
/// receiver gets.
async fn commit_events(
    service: &Arc<Service>,
    live: &[Tenant],
    dead: &[Tenant],
    time: Duration,
) -> Vec<(Ulid, Instant)> {
    let (mut ticks, start) = (tokio::time::interval(EVENT_INTERVAL), Instant::now());
    let mut committed = Vec::new();
    while start.elapsed() < time {
        ticks.tick().await;
        let send_test_event = |tenant: &Tenant| {
            let tenant = *tenant;
            async move {
                let event = service
                    .endpoints(Actor::Server)
                    .send_test(tenant, service.now())
                    .await
                    .unwrap();
                (event, Instant::now())
            }
        };
        let dead = futures_util::future::join_all(dead.iter().map(send_test_event));
        let live = futures_util::future::join_all(live.iter().map(send_test_event));
        committed.extend(tokio::join!(live, dead).0);
    }
    committed
}

async fn create_subscriber(service: &Service, place: usize, url: &str) -> Tenant {
    let (store, now) = (service.store(), service.now());
    let account = store.account(&format!("shop-{place}"), format!("acc_{place}"), now).await;
    let tenant = Tenant { account: account.unwrap(), environment: Environment::Sandbox };
    let (url, kinds, allowed_hosts) =
        (url.to_owned(), WebhookEventKinds::default(), AllowedHosts::PublicAndLoopback);
    let request = EndpointRequest { tenant, url, kinds, allowed_hosts };
    service.endpoints(Actor::Server).set(request, now).await.unwrap();
    tenant
}

fn settings() -> Settings {
    let webhooks = WebhookAllowance { sandbox_loopback: true, ..WebhookAllowance::default() };
    Settings { webhooks, ..Settings::new("http://127.0.0.1", Secrets::derive(&[1; 32])) }
}
