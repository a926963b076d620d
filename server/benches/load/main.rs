//! The service under load, beside a static axum handler and prism in the same run: what a request costs
//! at 1, 32 and 256 connections, and whether it still costs that with a million parcels.
//!
//! `cargo bench -p parcelo-server --bench load` prints the tables of docs/benchmarks.md, and draws its
//! plots into the folder of `--plots`; it takes about half an hour, most of which fills the databases: `--keep` keeps
//! them for the next run. Their keys live for a day, so a database that is older starts without any.
//!
//! ```text
//! … --bench load -- [--seconds N] [--connections 1,32,256] [--parcels 10000,300000,1000000]
//!                   [--plots FOLDER] [--keep FOLDER]
//! … --bench load -- starts                   how long a new server takes to its first order
//! … --bench load -- neighbour [--seconds N]  creates beside a tenant who lists 300,000 parcels
//! … --bench load -- servers [--seconds N] [--connections 1,32,256] [--growth] [--parcels 10000,1000000]
//!                                            orders on PostgreSQL, with a cluster of its own
//! … --bench load -- edges [--seconds N]      creates on PostgreSQL beside a tenant whose 300,000 parcels are listed,
//!                                            whose row is locked, whose sandbox is reset
//! ```
//!
//! Linux only: CPU time, memory and bytes written are read from /proc. prism is left out, with a word,
//! where `prism` is not on the path: `npm install --global @stoplight/prism-cli`.
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
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "a benchmark fails loudly, reads the clock and prints"
)]

mod bare;
mod client;
mod cluster;
mod disk;
mod edges;
mod figures;
mod goals;
mod neighbour;
mod peer;
mod plot;
mod prepared;
mod servers;
mod starts;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use client::{Ask, Known};
use figures::Figures;
use goals::Beside;
use peer::Peer;
use prepared::Prepared;

/// What is measured, and how long each row takes.
struct Plan {
    row: Duration,
    connections: Vec<usize>,
    parcels: Vec<usize>,
    plots: Option<PathBuf>,
    keep: Option<PathBuf>,
    growth: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if let [peer::STATIC, ready] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        runtime.block_on(peer::serve_static(ready.as_ref()));
        return ExitCode::SUCCESS;
    }
    let plan = Plan::read(&arguments);
    match arguments.first().map(String::as_str) {
        Some("starts") => drop(runtime.block_on(starts::measure())),
        Some("servers") => runtime.block_on(servers::measure(&plan)),
        Some("neighbour") => runtime.block_on(neighbour::measure(plan.row)),
        Some("edges") => {
            let folder = tempfile::tempdir().unwrap();
            runtime.block_on(edges::measure(folder.path(), plan.row));
        }
        _ => {
            let rows = runtime.block_on(measure(&plan));
            if let Some(folder) = &plan.plots {
                plot::draw(&rows, folder);
            }
        }
    }
    ExitCode::SUCCESS
}

impl Plan {
    fn read(arguments: &[String]) -> Self {
        let value = |name: &str| {
            let at = arguments.iter().position(|argument| argument == name)?;
            Some(arguments.get(at + 1).unwrap_or_else(|| panic!("{name} needs a value")).as_str())
        };
        let numbers = |name: &str, default: &str| -> Vec<usize> {
            let text = value(name).unwrap_or(default);
            text.split(',').map(|number| number.parse().unwrap()).collect()
        };
        let on_servers = arguments.first().is_some_and(|what| what == "servers");
        Self {
            row: Duration::from_secs(numbers("--seconds", "5")[0] as u64),
            connections: numbers("--connections", "1,32,256"),
            parcels: numbers(
                "--parcels",
                if on_servers { "10000,1000000" } else { "10000,300000,1000000" },
            ),
            plots: value("--plots").map(PathBuf::from),
            keep: value("--keep").map(PathBuf::from),
            growth: arguments.iter().any(|argument| argument == "--growth"),
        }
    }
}

/// One row of the tables.
struct Row {
    what: String,
    /// None where nothing is stored.
    parcels: Option<usize>,
    connections: usize,
    figures: Figures,
}

async fn measure(plan: &Plan) -> Vec<Row> {
    let temporary = tempfile::tempdir().unwrap();
    let folder = plan.keep.as_deref().unwrap_or(temporary.path());
    fs::create_dir_all(folder).unwrap();
    let bare_p99 = disk::report(folder, plan.row);
    Figures::print_heading();
    let mut rows = Vec::new();
    for &connections in &plan.connections {
        rows.extend(peers(folder, (connections, plan.row)).await);
    }
    let (mut smaller, mut start) = (None, Duration::ZERO);
    for &parcels in &plan.parcels {
        let mut prepared = Prepared::open(folder, parcels, smaller).await;
        start = prepared.time_start(folder).await;
        rows.extend(durable(folder, &mut prepared, parcels, plan).await);
        smaller = Some(parcels);
    }
    println!();
    let cold_start = starts::measure().await;
    goals::print(&rows, &Beside { bare_p99, start: start.as_secs_f64(), cold_start });
    rows
}

/// Those that the durable server is compared with, and memory.
async fn peers(folder: &Path, load: (usize, Duration)) -> Vec<Row> {
    let nothing = Known::default();
    let mut rows = vec![row(Peer::start_static(folder), Ask::Create, &nothing, None, load).await];
    if let Some(prism) = Peer::start_prism(folder).await {
        rows.push(row(prism, Ask::Create, &nothing, None, load).await);
    }
    rows.push(row(Peer::start_mock(folder), Ask::Create, &nothing, Some(0), load).await);
    rows
}

async fn durable(folder: &Path, prepared: &mut Prepared, parcels: usize, plan: &Plan) -> Vec<Row> {
    let Prepared { database, key, known } = prepared;
    let mut rows = Vec::new();
    // What is created stays: these rows come last, so that the reads are of as many as they say.
    let creates = plan.connections.iter().map(|connections| (Ask::Create, *connections));
    let reads = plan.connections.iter().flat_map(|at| Ask::READS.map(|ask| (ask, *at)));
    let all = reads.chain(creates).filter(|(ask, connections)| ask.is_answered_over(*connections));
    for (ask, connections) in all {
        let peer = Peer::start_server(folder, database, key);
        rows.push(row(peer, ask, known, Some(parcels), (connections, plan.row)).await);
    }
    rows
}

async fn row(
    peer: Peer,
    ask: Ask,
    known: &Known,
    parcels: Option<usize>,
    (connections, time): (usize, Duration),
) -> Row {
    let what = peer.name(ask);
    let figures = Figures::measure(peer, ask, known, connections, time).await;
    figures.print(&what, parcels, connections);
    Row { what, parcels, connections, figures }
}
