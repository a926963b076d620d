//! What an answer costs the server in instructions, counted by valgrind: figures that no load on the
//! machine moves, each with its bound.

use std::{
    path::Path,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{Router, http::StatusCode, routing::post};
use tokio::net::TcpListener;

use crate::{
    client::{self, Ask, Known},
    peer::Peer,
};

/// So many answers are counted for each figure, by one connection: each create is a commit of its own.
const ANSWERS: usize = 200;
/// Valgrind runs a program some fifty times slower.
const DELIVERED_WITHIN: Duration = Duration::from_secs(120);

/// What is counted, and the most that it may cost: what it cost when the bound was set, and a tenth.
const BOUNDS: [(&str, Work, u64); 6] = [
    ("a create", Work::Ask(Ask::Create), 518_000),
    ("a repeat", Work::Ask(Ask::Repeat), 223_000),
    ("a tracking record", Work::Ask(Ask::Tracking), 132_000),
    ("a list, page 1", Work::Ask(Ask::List), 1_988_000),
    ("a label, PDF", Work::Ask(Ask::Label), 12_035_000),
    ("a webhook, from event to receipt", Work::Webhook, 3_284_000),
];

#[derive(Clone, Copy)]
enum Work {
    /// One more request.
    Ask(Ask),
    /// The event of each create that every run has, and its delivery.
    Webhook,
}

pub(crate) async fn measure() -> ExitCode {
    let creates = counted(None, ANSWERS).await;
    println!("| what | instructions | at most |\n|---|---|---|");
    let (mut create, mut is_within) = (0, true);
    for (what, work, bound) in BOUNDS {
        let of_all = match work {
            Work::Ask(_) => counted(Some(work), ANSWERS).await - creates,
            // The first delivery of a server reads its root certificates.
            Work::Webhook => {
                counted(Some(work), 2 * ANSWERS).await - counted(Some(work), ANSWERS).await
            }
        };
        let mut cost = of_all / ANSWERS as u64;
        match work {
            Work::Ask(Ask::Create) => create = cost,
            Work::Ask(_) => {}
            Work::Webhook => cost -= create,
        }
        println!("| {what} | {cost} | {bound} |");
        is_within &= cost <= bound;
    }
    if is_within {
        return ExitCode::SUCCESS;
    }
    eprintln!("an answer costs more than its bound in server/benches/load/instructions.rs");
    ExitCode::FAILURE
}

/// The instructions of a server's whole life: its start, so many creates, and the work.
async fn counted(work: Option<Work>, creates: usize) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("parcelo.db");
    let mut key = None;
    // The first start makes schema and key, and is not counted.
    drop(Peer::start_server(folder.path(), &database, &mut key));
    let received = match work {
        Some(Work::Webhook) => Some(receive(&database).await),
        _ => None,
    };
    let mut peer = Peer::start_counted(folder.path(), &database, &mut key);
    let mut known = Known::default();
    client::fill(&peer.target, &mut known, creates, 1).await;
    if let Some(Work::Ask(ask)) = work {
        client::ask_each(&peer.target, ask, &known).await;
    }
    if let Some(received) = received {
        let until = Instant::now() + DELIVERED_WITHIN;
        while received.load(Ordering::Relaxed) < creates {
            assert!(Instant::now() < until, "webhooks are missing");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    peer.instructions()
}

/// Sets up a webhook for new parcels; counts what it receives.
async fn receive(database: &Path) -> Arc<AtomicUsize> {
    let received = Arc::new(AtomicUsize::new(0));
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", socket.local_addr().unwrap());
    let count = Arc::clone(&received);
    let receipt = async move || {
        count.fetch_add(1, Ordering::Relaxed);
        StatusCode::NO_CONTENT
    };
    tokio::spawn(async { axum::serve(socket, Router::new().route("/", post(receipt))).await });
    Peer::set_webhook(database, &url);
    received
}
