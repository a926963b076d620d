//! One tenant's creates while another tenant lists its 300,000 parcels of one day, holds a locked row (on PostgreSQL),
//! or resets its sandbox.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use chrono::Utc;
use tokio::time::sleep;
use tokio_postgres::Client;

use crate::{
    client::{self, CREATE, CREATE_PATH, ORDER, Target, millis_since, random_key, run_connections},
    postgres::Database,
    row::{P50, Row},
    server_process::ServerProcess,
};

/// Number of the other tenant's parcels.
const PARCELS: usize = 300_000;
/// Number of connections over which the measured tenant creates orders.
const CREATE_CONNECTIONS: usize = 4;
/// Number of measurements, each once without lists and once during them.
const PAIRS: usize = 5;
/// Time for which a row stays locked.
const LOCK_DURATION: Duration = Duration::from_secs(40);

/// Measures creates with and without another tenant's lists: lists at the rate limit of a key on a file, lists without
/// a pause on PostgreSQL.
pub(crate) async fn measure(folder: &Path, database: &Database, time: Duration) {
    let server = ServerProcess::start_server(folder, &database.url, &mut None);
    let (other, begun) = (server.create_account(&database.url), Utc::now());
    client::create_parcels(&other, PARCELS).await;
    let midpoint = begun + (Utc::now() - begun) / 2;
    let midpoint = midpoint.format("%Y-%m-%dT%H:%M:%SZ");
    let queries = [
        "status=LABEL_GENERATED&page=7000".to_owned(),
        format!("createdFrom={midpoint}&limit=100"),
        "country=EC&page=14000".to_owned(),
        format!("createdTo={midpoint}&status=LABEL_GENERATED&page=50"),
    ];
    let client = database.connect().await;
    let (clients, pause) =
        if client.is_some() { (20, Duration::ZERO) } else { (50, Duration::from_secs(1)) };
    let mut ratios = Vec::new();
    Row::print_heading();
    for _ in 0..PAIRS {
        let alone = measure_creates_during("nothing", &server.target, sleep(time)).await;
        let lists = run_lists((&other, clients), &queries, (pause, time));
        ratios.push(measure_creates_during("lists", &server.target, lists).await / alone);
    }
    if let Some(client) = &client {
        measure_creates_during(
            "a locked row of another tenant",
            &server.target,
            hold_locked_row(client, &other),
        )
        .await;
    }
    let reset = reset_sandbox(&other, client.as_ref(), folder);
    measure_creates_during("10 resets of another sandbox", &server.target, reset).await;
    ratios.sort_unstable_by(f64::total_cmp);
    println!("\np50 during lists, as a multiple of p50 without them: {ratios:.2?}");
}

/// Measures creates until `other` is done, prints the row, and returns the median latency in ms.
async fn measure_creates_during(
    name: &str,
    target: &Target,
    other: impl Future<Output = ()>,
) -> f64 {
    let (is_done, begun) = (Arc::new(AtomicBool::new(false)), Instant::now());
    let other = async {
        other.await;
        is_done.store(true, Ordering::Relaxed);
    };
    let is_done = Arc::clone(&is_done);
    let has_more = move || !is_done.load(Ordering::Relaxed);
    let stored_orders = Arc::default();
    let creates =
        client::send_repeatedly((target, CREATE_CONNECTIONS), CREATE, &stored_orders, has_more);
    let ((millis, _), ()) = tokio::join!(creates, other);
    let row = Row::from_latencies(&format!("creates beside {name}"), millis, begun.elapsed());
    Row { connections: CREATE_CONNECTIONS, ..row }.print().figures[P50].unwrap()
}

/// Lists parcels over several connections, each of which sends one request per pause.
async fn run_lists(at: (&Target, usize), queries: &[String], (pause, time): (Duration, Duration)) {
    let all = Instant::now();
    let millis = run_connections(at, |mut connection| {
        let queries = queries.to_vec();
        async move {
            // Spreads the first requests over the pause.
            let mut next = tokio::time::Instant::now() + pause.mul_f64(fastrand::f64());
            let (mut millis, turn) = (Vec::new(), fastrand::usize(..queries.len()));
            for query in queries.iter().cycle().skip(turn) {
                tokio::time::sleep_until(next).await;
                if all.elapsed() >= time {
                    break;
                }
                next += pause;
                let (begun, path) = (Instant::now(), format!("/api/v1/parcels?{query}"));
                // The server may answer 503 while many requests wait.
                if connection.send("GET", &path, String::new()).await.0 == 200 {
                    millis.push(millis_since(begun));
                }
            }
            millis
        }
    });
    let row = Row::from_latencies("lists", millis.await.concat(), all.elapsed());
    Row { connections: at.1, ..row }.print();
}

/// Locks the row of a tenant's webhook, so that the tenant's creates have to wait.
async fn hold_locked_row(client: &Client, tenant: &Target) {
    let endpoint = "INSERT INTO webhook_endpoints (tenant, url, kinds, secret, enabled, created_at) \
         SELECT max(tenant), 'https://shop.example/', 0, decode(repeat('00', 32), 'hex'), true, 0 \
         FROM api_keys";
    for sql in [endpoint, "BEGIN; SELECT FROM webhook_endpoints FOR UPDATE"] {
        client.batch_execute(sql).await.unwrap();
    }
    let blocked_creates = run_connections((tenant, 20), |mut connection| async move {
        let order = ORDER.replace("KEY", &random_key());
        while connection.send("POST", CREATE_PATH, order.clone()).await.0 > 201 {}
    });
    let unlock = async {
        sleep(LOCK_DURATION).await;
        client.batch_execute("COMMIT").await.unwrap();
    };
    tokio::join!(blocked_creates, unlock);
}

/// Resets a tenant's sandbox with ten concurrent requests, and waits until everything is erased.
async fn reset_sandbox(tenant: &Target, postgres: Option<&Client>, folder: &Path) {
    const HAS_UNERASED_DATA: &str = "SELECT EXISTS (SELECT 1 FROM ended_generations)";
    let begun = Instant::now();
    run_connections((tenant, 10), |mut connection| async move {
        while connection.send("POST", "/api/v1/sandbox/reset", "{}".to_owned()).await.0 != 200 {}
    })
    .await;
    let answered = begun.elapsed();
    while match postgres {
        Some(client) => client.query_one(HAS_UNERASED_DATA, &[]).await.unwrap().get(0),
        None => rusqlite::Connection::open(folder.join("parcelo.db"))
            .unwrap()
            .query_row(HAS_UNERASED_DATA, [], |row| row.get(0))
            .unwrap(),
    } {
        sleep(Duration::from_secs(1)).await;
    }
    println!("the resets: answered after {answered:.1?}, all erased after {:.1?}", begun.elapsed());
}
