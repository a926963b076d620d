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
    client::{self, CREATE, ORDER, ORDERS, Target, millis_since, over, random_key},
    peer::Peer,
    postgres::Database,
    row::{P50, Row},
};

const PARCELS: usize = 300_000;
const CREATORS: usize = 4;
const PAIRS: usize = 5;
const LOCKED: Duration = Duration::from_secs(40);

/// Measures creates while lists run, at the rate limit of a key on a file and without a pause on PostgreSQL.
pub(crate) async fn measure(folder: &Path, database: &Database, time: Duration) {
    let peer = Peer::start_server(folder, &database.url, &mut None);
    let (other, begun) = (peer.another_account(&database.url), Utc::now());
    client::fill(&other, PARCELS).await;
    let half_way = begun + (Utc::now() - begun) / 2;
    let half_way = half_way.format("%Y-%m-%dT%H:%M:%SZ");
    let queries = [
        "status=LABEL_GENERATED&page=7000".to_owned(),
        format!("createdFrom={half_way}&limit=100"),
        "country=EC&page=14000".to_owned(),
        format!("createdTo={half_way}&status=LABEL_GENERATED&page=50"),
    ];
    let client = database.connect().await;
    let (clients, pause) =
        if client.is_some() { (20, Duration::ZERO) } else { (50, Duration::from_secs(1)) };
    let mut ratios = Vec::new();
    Row::print_heading();
    for _ in 0..PAIRS {
        let alone = beside("nothing", &peer.target, sleep(time)).await;
        let lists = lists((&other, clients), &queries, (pause, time));
        ratios.push(beside("lists", &peer.target, lists).await / alone);
    }
    if let Some(client) = &client {
        beside("a locked row of another tenant", &peer.target, lock(client, &other)).await;
    }
    let reset = reset(&other, client.as_ref(), folder);
    beside("10 resets of another sandbox", &peer.target, reset).await;
    ratios.sort_unstable_by(f64::total_cmp);
    println!("\np50 beside lists, times that beside nothing: {ratios:.2?}");
}

/// Measures creates until `other` is done, prints the row, and returns their median latency.
async fn beside(what: &str, target: &Target, other: impl Future<Output = ()>) -> f64 {
    let (is_done, begun) = (Arc::new(AtomicBool::new(false)), Instant::now());
    let other = async {
        other.await;
        is_done.store(true, Ordering::Relaxed);
    };
    let is_done = Arc::clone(&is_done);
    let is_more = move || !is_done.load(Ordering::Relaxed);
    let known = Arc::default();
    let creates = client::load((target, CREATORS), CREATE, &known, is_more);
    let ((millis, _), ()) = tokio::join!(creates, other);
    let row = Row::timed(&format!("creates beside {what}"), millis, begun.elapsed());
    Row { connections: CREATORS, ..row }.print().figures[P50].unwrap()
}

/// Lists on this many connections, each of which sends one request per pause.
async fn lists(at: (&Target, usize), queries: &[String], (pause, time): (Duration, Duration)) {
    let all = Instant::now();
    let millis = over(at, |mut connection| {
        let queries = queries.to_vec();
        async move {
            // Spread the first requests over the pause.
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
    let row = Row::timed("lists", millis.await.concat(), all.elapsed());
    Row { connections: at.1, ..row }.print();
}

/// Locks the row of a tenant's webhook, so that the tenant's creates have to wait.
async fn lock(client: &Client, tenant: &Target) {
    let endpoint = "INSERT INTO webhook_endpoints (tenant, url, kinds, secret, enabled, created_at) \
         SELECT max(tenant), 'https://shop.example/', 0, decode(repeat('00', 32), 'hex'), true, 0 \
         FROM api_keys";
    for sql in [endpoint, "BEGIN; SELECT FROM webhook_endpoints FOR UPDATE"] {
        client.batch_execute(sql).await.unwrap();
    }
    let held_up = over((tenant, 20), |mut connection| async move {
        let order = ORDER.replace("KEY", &random_key());
        while connection.send("POST", ORDERS, order.clone()).await.0 > 201 {}
    });
    let unlock = async {
        sleep(LOCKED).await;
        client.batch_execute("COMMIT").await.unwrap();
    };
    tokio::join!(held_up, unlock);
}

/// Resets a tenant's sandbox with ten concurrent requests, and waits until everything is erased.
async fn reset(tenant: &Target, postgres: Option<&Client>, folder: &Path) {
    const IS_UNDER_WAY: &str = "SELECT EXISTS (SELECT 1 FROM ended_generations)";
    let begun = Instant::now();
    over((tenant, 10), |mut connection| async move {
        while connection.send("POST", "/api/v1/sandbox/reset", "{}".to_owned()).await.0 != 200 {}
    })
    .await;
    let answered = begun.elapsed();
    while match postgres {
        Some(client) => client.query_one(IS_UNDER_WAY, &[]).await.unwrap().get(0),
        None => rusqlite::Connection::open(folder.join("parcelo.db"))
            .unwrap()
            .query_row(IS_UNDER_WAY, [], |row| row.get(0))
            .unwrap(),
    } {
        sleep(Duration::from_secs(1)).await;
    }
    println!("the resets: answered after {answered:.1?}, all erased after {:.1?}", begun.elapsed());
}
