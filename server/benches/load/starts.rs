//! How long a new server with a new database takes until it has answered its first order.

use std::time::{Duration, Instant};

use crate::{
    client::{self, Known},
    peer::Peer,
};

const STARTS: usize = 21;

/// Prints how long starts took; their median in ms.
pub(crate) async fn measure() -> f64 {
    println!("| a new server with a new database | least ms | median ms | resident MiB |");
    println!("|---|---|---|---|");
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        starts.push(start().await);
    }
    starts.sort_unstable_by_key(|(took, _)| *took);
    let [(least, _), (median, memory)] = [starts[0], starts[STARTS / 2]];
    let [least, median] = [least, median].map(|took| took.as_secs_f64() * 1000.0);
    println!("| to its first labelled 201 | {least:.1} | {median:.1} | {memory:.1} |");
    median
}

async fn start() -> (Duration, f64) {
    let folder = tempfile::tempdir().unwrap();
    let begun = Instant::now();
    let peer = Peer::start_server(folder.path(), &folder.path().join("new.db"), &mut None);
    client::fill(&peer.target, &mut Known::default(), 1, 1).await;
    (begun.elapsed(), peer.resident_mib())
}
