//! The service under load, beside a static axum handler and prism in the same run: what a request costs
//! at 1, 32 and 256 connections, and whether it still costs that with a million parcels.
//!
//! `cargo bench -p parcelo-server --bench load` prints the tables of docs/benchmarks.md, and draws its
//! plots into the folder of `--plots`; it takes about half an hour, most of which fills the database.
//!
//! ```text
//! … --bench load -- [--seconds N] [--connections 1,32,256] [--parcels 10000,300000,1000000]
//!                   [--plots FOLDER]
//! … --bench load -- instructions             what an answer costs at most, counted by valgrind
//! … --bench load -- starts                   how long a new server takes to its first order
//! … --bench load -- neighbour [--seconds N]  creates beside a tenant who lists 300,000 parcels
//! ```
//!
//! Linux only: CPU time, memory and bytes written are read from /proc. prism is left out, with a word,
//! where `prism` is not on the path: `npm install --global @stoplight/prism-cli`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a benchmark fails loudly, reads the clock and prints"
)]

mod client;
mod disk;
mod figures;
mod instructions;
mod neighbour;
mod peer;
mod plot;
mod starts;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use client::{Ask, Known};
use figures::Figures;
use peer::Peer;

/// What is measured, and how long each row takes.
struct Plan {
    row: Duration,
    connections: Vec<usize>,
    parcels: Vec<usize>,
    plots: Option<PathBuf>,
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
        Some("instructions") => return runtime.block_on(instructions::measure()),
        Some("starts") => runtime.block_on(starts::measure()),
        Some("neighbour") => runtime.block_on(neighbour::measure(plan.row)),
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
        Self {
            row: Duration::from_secs(numbers("--seconds", "5")[0] as u64),
            connections: numbers("--connections", "1,32,256"),
            parcels: numbers("--parcels", "10000,300000,1000000"),
            plots: value("--plots").map(PathBuf::from),
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
    let folder = tempfile::tempdir().unwrap();
    let mut rows = Vec::new();
    disk::report(folder.path(), plan.row);
    Figures::print_heading();
    for &connections in &plan.connections {
        let peer = Peer::start_static(folder.path());
        rows.push(row(peer, Ask::Create, &Known::default(), None, (connections, plan.row)).await);
        if let Some(prism) = Peer::start_prism(folder.path()).await {
            rows.push(
                row(prism, Ask::Create, &Known::default(), None, (connections, plan.row)).await,
            );
        }
        let mock = Peer::start_mock(folder.path());
        rows.push(
            row(mock, Ask::Create, &Known::default(), Some(0), (connections, plan.row)).await,
        );
    }
    let database = folder.path().join("parcelo.db");
    let mut known = Known::default();
    let mut key = None;
    for &parcels in &plan.parcels {
        let start = |key: &mut Option<String>| Peer::start_server(folder.path(), &database, key);
        client::fill(&start(&mut key).target, &mut known, parcels, client::LOADERS).await;
        for &connections in &plan.connections {
            for ask in Ask::READS {
                let peer = start(&mut key);
                rows.push(row(peer, ask, &known, Some(parcels), (connections, plan.row)).await);
            }
        }
        // What is created stays: these rows come last, so that the reads are of as many as they say.
        for &connections in &plan.connections {
            let peer = start(&mut key);
            let row = row(peer, Ask::Create, &known, Some(parcels), (connections, plan.row)).await;
            known.more((row.figures.answers) as usize);
            rows.push(row);
        }
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
