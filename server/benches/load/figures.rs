//! What a row says, and how it is measured.

use std::time::{Duration, Instant};

use crate::{
    client::{self, Ask, Known},
    peer::Peer,
};

/// How long each answer took.
#[derive(Default)]
pub(crate) struct Latencies(Vec<u32>);

impl Latencies {
    pub(crate) fn add(&mut self, took: Duration) {
        self.0.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
    }

    pub(crate) fn time(&mut self, work: impl FnOnce()) {
        let begun = Instant::now();
        work();
        self.add(begun.elapsed());
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// p50, p99 and p99.9 in milliseconds.
    pub(crate) fn millis(&mut self) -> [f64; 3] {
        self.0.sort_unstable();
        [0.5, 0.99, 0.999].map(|share| {
            let at = (self.0.len() as f64 * share) as usize;
            f64::from(self.0[at.min(self.0.len() - 1)]) / 1000.0
        })
    }
}

impl std::iter::Sum for Latencies {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        Self(each.flat_map(|latencies| latencies.0).collect())
    }
}

pub(crate) struct Figures {
    pub(crate) rate: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    p999: f64,
    pub(crate) cpu_micros: f64,
    pub(crate) resident_mib: f64,
    /// KiB that each answer had written to the disk, for what is durable.
    written_kib: Option<f64>,
    orders_per_commit: Option<f64>,
}

impl Figures {
    pub(crate) async fn measure(
        mut peer: Peer,
        ask: Ask,
        known: &Known,
        connections: usize,
        time: Duration,
    ) -> Self {
        let (cpu, written) = (peer.cpu_micros(), peer.written_bytes());
        let begun = Instant::now();
        let mut latencies = client::load(&peer.target, ask, known, connections, begun + time).await;
        let seconds = begun.elapsed().as_secs_f64();
        let answers = latencies.0.len() as f64;
        let [p50, p99, p999] = latencies.millis();
        let creates = peer.is_durable() && ask == Ask::Create;
        Self {
            rate: answers / seconds,
            p50,
            p99,
            p999,
            cpu_micros: (peer.cpu_micros() - cpu) / answers,
            resident_mib: peer.resident_mib(),
            written_kib: creates.then(|| (peer.written_bytes() - written) / answers / 1024.0),
            orders_per_commit: if creates { peer.orders_per_commit() } else { None },
        }
    }

    pub(crate) fn print_heading() {
        println!(
            "| what | parcels | connections | answers/s | p50 ms | p99 ms | p99.9 ms | \
             CPU µs an answer | resident MiB | orders a commit | KiB written an order |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|---|");
    }

    pub(crate) fn print(&self, what: &str, parcels: Option<usize>, connections: usize) {
        let Self { rate, p50, p99, p999, cpu_micros, resident_mib, .. } = self;
        let or_dash = |figure: Option<f64>| figure.map_or("-".to_owned(), |f| format!("{f:.1}"));
        let (orders, written) = (or_dash(self.orders_per_commit), or_dash(self.written_kib));
        let parcels = parcels.map_or("-".to_owned(), |parcels| parcels.to_string());
        println!(
            "| {what} | {parcels} | {connections} | {rate:.0} | {p50:.2} | {p99:.2} | {p999:.2} | \
             {cpu_micros:.1} | {resident_mib:.1} | {orders} | {written} |"
        );
    }
}
