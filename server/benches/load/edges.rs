//! One tenant's creates on PostgreSQL while another one's sandbox is listed, holds a locked row, or is reset.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use bytes::Bytes;
use chrono::Utc;
use hyper::Request;
use tokio::task::JoinSet;

use crate::{
    client::{self, Ask, CREATE, Connection, Known, Target},
    cluster::Cluster,
    peer::Peer,
};

const PARCELS: usize = 300_000;
const CREATORS: usize = 4;
/// Clients that list parts of the day on which all of the parcels were created.
const LISTERS: usize = 20;
const RESETS: usize = 10;
/// Creates of the tenant whose row is locked, and for how long it is.
const HELD_UP: usize = 20;
const LOCKED: Duration = Duration::from_secs(40);

pub(crate) async fn measure(folder: &Path, time: Duration) {
    let cluster = Cluster::start();
    let database = cluster.create_database();
    let url = cluster.url(&database);
    let peer = Peer::start_on(folder, ("PostgreSQL", &url), &mut None);
    let other = Target { key: Peer::key_of_another_account(&url), ..peer.target.clone() };
    let begun = Utc::now();
    client::fill(&other, &mut Known::default(), PARCELS, client::LOADERS).await;
    let half_way = begun + (Utc::now() - begun) / 2;
    println!("| creates | answers | p50 ms | p99 ms | p99 at most |\n|---|---|---|---|---|");
    creates("alone", &peer.target, time, None).await;
    {
        let mut lists = JoinSet::new();
        for _ in 0..LISTERS {
            lists.spawn(list(other.clone(), half_way.format("%Y-%m-%dT%H:%M:%SZ").to_string()));
        }
        creates("beside 20 clients that list parts of the day", &peer.target, time, Some(500))
            .await;
    }
    let client = cluster.connect(&database).await;
    let endpoint = "INSERT INTO webhook_endpoints (tenant, url, kinds, secret, enabled, created_at) \
         SELECT max(tenant), 'https://shop.example/', 0, decode(repeat('00', 32), 'hex'), true, 0 \
         FROM api_keys";
    client.batch_execute(endpoint).await.unwrap();
    client.batch_execute("BEGIN; SELECT FROM webhook_endpoints FOR UPDATE").await.unwrap();
    {
        let mut held_up = JoinSet::new();
        for _ in 0..HELD_UP {
            held_up.spawn(create_until_done(other.clone()));
        }
        creates("beside a locked row of another tenant", &peer.target, LOCKED, Some(3_000)).await;
        client.batch_execute("COMMIT").await.unwrap();
        held_up.join_all().await;
    }
    let mut resets = JoinSet::new();
    for _ in 0..RESETS {
        resets.spawn(reset(other.clone()));
    }
    let begun = Instant::now();
    creates("beside 10 resets of another sandbox", &peer.target, time, Some(250)).await;
    resets.join_all().await;
    println!("\nthe resets were answered within {:.1} s", begun.elapsed().as_secs_f64());
}

async fn creates(what: &str, target: &Target, time: Duration, most: Option<u64>) {
    let until = Instant::now() + time;
    let mut creates = client::load(target, Ask::Create, &Known::default(), CREATORS, until).await;
    let (answers, [p50, p99, _]) = (creates.len(), creates.millis());
    let most = most.map_or_else(|| "-".to_owned(), |most| most.to_string());
    println!("| {what} | {answers} | {p50:.2} | {p99:.2} | {most} |");
}

/// Lists without end. What is answered 503 is asked again.
async fn list(target: Target, since: String) {
    let mut connection = Connection::open(&target).await;
    let paths = ["createdFrom", "createdTo"].map(|part| format!("/api/v1/parcels?{part}={since}"));
    for path in paths.iter().cycle() {
        connection.status(Request::get(path.as_str()), Bytes::new()).await;
    }
}

/// Sends one order under its key until it is made.
async fn create_until_done(target: Target) {
    let mut connection = Connection::open(&target).await;
    let order = client::order();
    while connection.status(Request::post(CREATE), order.clone()).await > 201 {}
}

async fn reset(target: Target) {
    let mut connection = Connection::open(&target).await;
    let reset = || Request::post("/api/v1/sandbox/reset");
    while connection.status(reset(), Bytes::from_static(b"{}")).await != 200 {}
}
