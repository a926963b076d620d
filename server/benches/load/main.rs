//! The service under load, compared with a static axum handler and prism in the same run: the cost of a request at 1,
//! 32 and 256 connections, and whether it grows with a million stored parcels.
//!
//! `cargo bench -p parcelo-server --bench load -- [MODE]` prints the tables of docs/benchmarks.md; `-- --help` lists
//! the modes. Linux only, because CPU time and memory are read from /proc. If `prism` is not on the path, a message
//! says so and prism is skipped: `npm install --global @stoplight/prism-cli`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "a benchmark fails loudly, reads the clock and prints"
)]

mod client;
mod goals;
mod neighbours;
mod peer;
mod postgres;
mod row;

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use clap::{Parser, ValueEnum};

use client::{ASKS, CREATE, Known, millis_since};
use peer::Peer;
use postgres::Database;
use row::{RESIDENT, Row};

const STARTS: usize = 21;

/// Measures the service under load.
#[derive(Parser)]
struct Plan {
    #[arg(value_enum, default_value = "file")]
    mode: Mode,
    /// Seconds that each row takes
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    #[arg(long, value_delimiter = ',', default_value = "1,32,256")]
    connections: Vec<usize>,
    #[arg(long, value_delimiter = ',', default_value = "10000,1000000")]
    parcels: Vec<usize>,
    /// Given by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// A file compared with its peers, and its growth
    File,
    /// Creates on PostgreSQL with one and two servers, compared with bare statements and a file
    Servers,
    /// Growth on PostgreSQL
    Growth,
    /// New servers with new databases, until their first order
    Starts,
    /// Creates while a tenant lists 300,000 parcels as fast as its key may
    Neighbour,
    /// Creates on PostgreSQL during another tenant's lists, locked row and resets
    Edges,
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, first, _, ready] = &arguments[..]
        && first == peer::STATIC
    {
        return peer::serve_static(ready).await;
    }
    let (plan, folder) = (Plan::parse(), tempfile::tempdir().unwrap());
    let folder = folder.path();
    match plan.mode {
        Mode::File => goals::print(&on_a_file(folder, &plan).await),
        Mode::Servers => goals::print(&postgres::measure(folder, &plan).await),
        Mode::Growth => {
            Row::print_heading();
            goals::print(&grow(folder, &Database::on_postgres(), &plan).await);
        }
        Mode::Starts => drop(starts().await),
        Mode::Neighbour => {
            neighbours::measure(folder, &Database::on_a_file(folder), plan.time()).await;
        }
        Mode::Edges => neighbours::measure(folder, &Database::on_postgres(), plan.time()).await,
    }
}

impl Plan {
    const fn time(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

async fn on_a_file(folder: &Path, plan: &Plan) -> Vec<Row> {
    Row::print_heading();
    let mut rows = vec![row::bare_writes(folder, plan.time()).print()];
    let known = Arc::new(Known::new());
    for &connections in &plan.connections {
        let mut measure = async |what: &str, peer| {
            let (peers, load) = ([peer], (connections, plan.time()));
            rows.push(Row::measure(what, (&peers, None), (CREATE, &known), load).await.print());
        };
        measure("a static axum handler", Peer::start_static(folder)).await;
        if let Some(prism) = Peer::start_prism(folder).await {
            measure("prism", prism).await;
        }
        measure("the mock server, in memory", Peer::start_mock(folder)).await;
    }
    rows.extend(grow(folder, &Database::on_a_file(folder), plan).await);
    rows.push(starts().await);
    rows
}

/// Measures every kind of request with each number of parcels.
async fn grow(folder: &Path, database: &Database, plan: &Plan) -> Vec<Row> {
    let (mut rows, mut key, mut known, mut held) = (Vec::new(), None, Known::new(), 0);
    for &parcels in &plan.parcels {
        let peer = Peer::start_server(folder, &database.url, &mut key);
        known.extend(client::fill(&peer.target, parcels.saturating_sub(held)).await);
        held = held.max(parcels);
        peer.stop();
        postgres::spread(database).await;
        let sample = Arc::new(known.clone());
        let begun = Instant::now();
        let peer = Peer::start_server(folder, &database.url, &mut key);
        let start =
            Row::timed("a start with these parcels", vec![millis_since(begun)], begun.elapsed());
        rows.push(Row { parcels: Some(parcels), ..start }.print());
        drop(peer);
        let all = ASKS.iter().flat_map(|ask| plan.connections.iter().map(|over| (*ask, *over)));
        for (ask, connections) in all.filter(|(ask, over)| ask.is_answered_over(*over)) {
            let peers = [Peer::start_server(folder, &database.url, &mut key)];
            let at = (&peers[..], database.postmaster());
            let row = Row::measure(ask.0, at, (ask, &sample), (connections, plan.time())).await;
            held += if ask == CREATE { row.answers } else { 0 };
            rows.push(Row { parcels: Some(parcels), ..row }.print());
        }
    }
    rows
}

/// Measures how long new servers with new databases take until each has answered its first order.
async fn starts() -> Row {
    let (mut millis, mut resident, all) = (Vec::new(), 0.0, Instant::now());
    for _ in 0..STARTS {
        let (folder, begun) = (tempfile::tempdir().unwrap(), Instant::now());
        let url = format!("sqlite:{}/new.db", folder.path().display());
        let peer = Peer::start_server(folder.path(), &url, &mut None);
        client::fill(&peer.target, 1).await;
        millis.push(millis_since(begun));
        resident = peer.resident_mib();
    }
    let least = millis.iter().copied().fold(f64::MAX, f64::min);
    println!("the quickest of {STARTS} new servers: {least:.1} ms");
    let mut row = Row::timed("a new server, to its first order", millis, all.elapsed());
    row.figures[RESIDENT] = Some(resident);
    row.print()
}
