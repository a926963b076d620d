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
mod postgres;
mod row;
mod server_process;

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use clap::{Parser, ValueEnum};

use client::{CREATE, REQUEST_KINDS, StoredOrders, millis_since};
use postgres::Database;
use row::{RESIDENT_MIB, Row};
use server_process::ServerProcess;

/// Number of new servers whose start is measured.
const STARTS: usize = 21;

/// Measures the service under load.
#[derive(Parser)]
struct Args {
    #[arg(value_enum, default_value = "file")]
    mode: Mode,
    /// Seconds that each row takes
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    #[arg(long, value_delimiter = ',', default_value = "1,32,256")]
    connections: Vec<usize>,
    #[arg(long, value_delimiter = ',', default_value = "10000,1000000")]
    parcels: Vec<usize>,
    /// On PostgreSQL, a snapshot is held while the rows are measured, as by a dump
    #[arg(long)]
    hold_snapshot: bool,
    /// Given by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// A file compared with other programs, and its growth
    File,
    /// Creates on PostgreSQL with one and two servers, compared with bare statements and a file
    Servers,
    /// Growth on PostgreSQL
    Growth,
    /// New servers with new databases, until their first order
    Starts,
    /// Creates while another tenant lists its 300,000 parcels at the rate limit of its key
    Neighbour,
    /// Creates on PostgreSQL during another tenant's lists, locked row and resets
    Edges,
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, first, _, ready] = &arguments[..]
        && first == server_process::STATIC_ARGUMENT
    {
        return server_process::serve_static(ready).await;
    }
    let (args, folder) = (Args::parse(), tempfile::tempdir().unwrap());
    let folder = folder.path();
    match args.mode {
        Mode::File => goals::print(&measure_file(folder, &args).await),
        Mode::Servers => goals::print(&postgres::measure(folder, &args).await),
        Mode::Growth => {
            Row::print_heading();
            goals::print(&measure_growth(folder, &Database::start_postgres(), &args).await);
        }
        Mode::Starts => drop(measure_starts().await),
        Mode::Neighbour => {
            neighbours::measure(folder, &Database::new_sqlite(folder), args.time()).await;
        }
        Mode::Edges => neighbours::measure(folder, &Database::start_postgres(), args.time()).await,
    }
}

impl Args {
    const fn time(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

async fn measure_file(folder: &Path, args: &Args) -> Vec<Row> {
    Row::print_heading();
    let mut rows = vec![row::measure_disk_writes(folder, args.time()).print()];
    let stored_orders = Arc::new(StoredOrders::new());
    for &connections in &args.connections {
        let mut measure = async |name: &str, server| {
            let (servers, load) = ([server], (connections, args.time()));
            rows.push(
                Row::measure(name, (&servers, None), (CREATE, &stored_orders), load).await.print(),
            );
        };
        measure("a static axum handler", ServerProcess::start_static(folder)).await;
        if let Some(prism) = ServerProcess::start_prism(folder).await {
            measure("prism", prism).await;
        }
        measure("the mock server, in memory", ServerProcess::start_mock(folder)).await;
    }
    rows.extend(measure_growth(folder, &Database::new_sqlite(folder), args).await);
    rows.push(measure_starts().await);
    rows
}

/// Measures every kind of request with each number of parcels.
async fn measure_growth(folder: &Path, database: &Database, args: &Args) -> Vec<Row> {
    let (mut rows, mut key, mut stored_orders, mut stored) =
        (Vec::new(), None, StoredOrders::new(), 0);
    for &parcels in &args.parcels {
        let server = ServerProcess::start_server(folder, &database.url, &mut key);
        stored_orders
            .extend(client::create_parcels(&server.target, parcels.saturating_sub(stored)).await);
        stored = stored.max(parcels);
        server.stop();
        postgres::spread_dates(database).await;
        let _snapshot =
            if args.hold_snapshot { postgres::hold_snapshot(database).await } else { None };
        let sample = Arc::new(stored_orders.clone());
        let begun = Instant::now();
        let server = ServerProcess::start_server(folder, &database.url, &mut key);
        let start = Row::from_latencies(
            "a start with these parcels",
            vec![millis_since(begun)],
            begun.elapsed(),
        );
        rows.push(Row { parcels: Some(parcels), ..start }.print());
        drop(server);
        let all = REQUEST_KINDS
            .iter()
            .flat_map(|kind| args.connections.iter().map(|connections| (*kind, *connections)));
        for (kind, connections) in
            all.filter(|(kind, connections)| kind.supports_connections(*connections))
        {
            let servers = [ServerProcess::start_server(folder, &database.url, &mut key)];
            let at = (&servers[..], database.postmaster());
            let row = Row::measure(kind.0, at, (kind, &sample), (connections, args.time())).await;
            stored += if kind == CREATE { row.answers } else { 0 };
            rows.push(Row { parcels: Some(parcels), ..row }.print());
        }
    }
    rows
}

/// Measures how long new servers with new databases take until each has answered its first order.
async fn measure_starts() -> Row {
    let (mut millis, mut resident, all) = (Vec::new(), 0.0, Instant::now());
    for _ in 0..STARTS {
        let (folder, begun) = (tempfile::tempdir().unwrap(), Instant::now());
        let url = format!("sqlite:{}/new.db", folder.path().display());
        let server = ServerProcess::start_server(folder.path(), &url, &mut None);
        client::create_parcels(&server.target, 1).await;
        millis.push(millis_since(begun));
        resident = server.resident_mib();
    }
    let least = millis.iter().copied().fold(f64::MAX, f64::min);
    println!("the quickest of {STARTS} new servers: {least:.1} ms");
    let mut row = Row::from_latencies("a new server, to its first order", millis, all.elapsed());
    row.figures[RESIDENT_MIB] = Some(resident);
    row.print()
}
