//! What one tenant's creates cost beside another who lists 300,000 parcels as fast as its key may.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use tokio::task::JoinSet;

use crate::{
    client::{self, Ask, Connection, Known, Target},
    figures::Latencies,
    peer::Peer,
};

const PARCELS: usize = 300_000;
/// What a key may ask a second.
const LISTS: u32 = 50;
const PAIRS: usize = 5;
const CREATORS: usize = 4;

pub(crate) async fn measure(time: Duration) {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("parcelo.db");
    let peer = Peer::start_server(folder.path(), &database, &mut None);
    let lister = Target {
        key: Peer::key_of_another_account(&format!("sqlite:{}", database.display())),
        ..peer.target.clone()
    };
    let begun = Utc::now();
    client::fill(&lister, &mut Known::default(), PARCELS, client::LOADERS).await;
    let half_way = begun + (Utc::now() - begun) / 2;
    println!(
        "| pair | p50 ms alone | p50 ms beside lists | ratio | lists a second | p50 ms of a list |"
    );
    println!("|---|---|---|---|---|---|");
    let mut ratios = Vec::new();
    for pair in 0..PAIRS {
        let alone = creates(&peer.target, time).await;
        let lists = tokio::spawn(lists(lister.clone(), queries(half_way), time));
        let beside = creates(&peer.target, time).await;
        let mut lists = lists.await.unwrap();
        let rate = lists.len() as f64 / time.as_secs_f64();
        let (ratio, [list, ..]) = (beside / alone, lists.millis());
        println!("| {pair} | {alone:.2} | {beside:.2} | {ratio:.2} | {rate:.0} | {list:.2} |");
        ratios.push(ratio);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    println!("\nthe median ratio is {:.2}", ratios[PAIRS / 2]);
}

/// The median of one tenant's creates, in ms.
async fn creates(target: &Target, time: Duration) -> f64 {
    let until = Instant::now() + time;
    let [p50, ..] =
        client::load(target, Ask::Create, &Known::default(), CREATORS, until).await.millis();
    p50
}

/// Filters, deep pages, parts of a day.
fn queries(half_way: DateTime<Utc>) -> Arc<[String]> {
    let since = half_way.format("%Y-%m-%dT%H:%M:%SZ");
    Arc::from([
        "status=LABEL_GENERATED&page=7000".to_owned(),
        format!("createdFrom={since}&limit=100"),
        "country=EC&page=14000".to_owned(),
        format!("createdTo={since}&status=LABEL_GENERATED&page=50"),
    ])
}

/// Lists as fast as a key may, however long each takes.
async fn lists(target: Target, queries: Arc<[String]>, time: Duration) -> Latencies {
    let (mut tasks, until) = (JoinSet::new(), Instant::now() + time);
    for lister in 0..LISTS {
        let (target, queries) = (target.clone(), Arc::clone(&queries));
        tasks.spawn(async move {
            let mut connection = Connection::open(&target).await;
            // Spread over the second, in which each asks once.
            tokio::time::sleep(Duration::from_secs(1) / LISTS * lister).await;
            let mut second = tokio::time::interval(Duration::from_secs(1));
            let (mut latencies, mut turn) = (Latencies::default(), lister as usize);
            while Instant::now() < until {
                second.tick().await;
                turn += 1;
                let path = format!("/api/v1/parcels?{}", queries[turn % queries.len()]);
                let begun = Instant::now();
                connection.get(&path).await;
                latencies.add(begun.elapsed());
            }
            latencies
        });
    }
    tasks.join_all().await.into_iter().sum()
}
