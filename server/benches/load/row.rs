//! Rows of the tables, and the measurement of a load.

use std::{
    fmt,
    fs::File,
    io::Write as _,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::join_all;

use crate::{
    client::{self, Ask, CREATE, Known, millis_since},
    peer::{Peer, cpu_micros},
};

/// The columns of figures, each with its decimals.
pub(crate) const COLUMNS: [(&str, usize); 8] = [
    ("answers/s", 0),
    ("p50 ms", 2),
    ("p99 ms", 2),
    ("p99.9 ms", 2),
    ("CPU µs an answer, servers", 1),
    ("PostgreSQL", 1),
    ("MiB resident", 1),
    ("orders a commit", 1),
];
pub(crate) const RATE: usize = 0;
pub(crate) const P50: usize = 1;
pub(crate) const CPU: usize = 4;
pub(crate) const POSTGRES_CPU: usize = 5;
pub(crate) const RESIDENT: usize = 6;
pub(crate) const GROUPS: usize = 7;

pub(crate) struct Row {
    pub(crate) what: String,
    /// `None` if no parcels are stored or their number does not matter.
    pub(crate) parcels: Option<usize>,
    pub(crate) connections: usize,
    pub(crate) answers: usize,
    /// The figures by column; `None` if not measured.
    pub(crate) figures: [Option<f64>; COLUMNS.len()],
}

impl Row {
    pub(crate) fn print_heading() {
        println!(
            "| what | parcels | connections | {} |",
            COLUMNS.map(|(name, _)| name).join(" | ")
        );
        println!("|---|---|---|{}", "---|".repeat(COLUMNS.len()));
    }

    pub(crate) fn print(self) -> Self {
        println!("{self}");
        self
    }

    /// Creates a row from the latencies of the answers given in a period.
    pub(crate) fn timed(what: &str, mut millis: Vec<f64>, over: Duration) -> Self {
        millis.sort_unstable_by(f64::total_cmp);
        let answers = millis.len();
        let at = |share: f64| Some(millis[((answers as f64 * share) as usize).min(answers - 1)]);
        let rate = Some(answers as f64 / over.as_secs_f64());
        let figures = [rate, at(0.5), at(0.99), at(0.999), None, None, None, None];
        Self { what: what.to_owned(), parcels: None, connections: 1, answers, figures }
    }

    /// Measures servers that share a load, and PostgreSQL if its main process, the `postmaster`, is passed.
    pub(crate) async fn measure(
        what: &str,
        (peers, postmaster): (&[Peer], Option<u32>),
        (ask, known): (Ask, &Arc<Known>),
        (connections, time): (usize, Duration),
    ) -> Self {
        let cpu = || peers.iter().map(|peer| cpu_micros(peer.id())).sum::<f64>();
        let before = (cpu(), postmaster.map(cpu_micros));
        let (begun, count) = (Instant::now(), peers.len());
        let loads = peers.iter().enumerate().map(|(nth, peer)| {
            let at = (&peer.target, (connections + count - 1 - nth) / count);
            client::load(at, ask, known, move || begun.elapsed() < time)
        });
        let millis = join_all(loads).await.into_iter().flat_map(|(millis, _)| millis).collect();
        let mut row = Self::timed(what, millis, begun.elapsed());
        let an_answer = |micros: f64| micros / row.answers as f64;
        row.figures[CPU] = Some(an_answer(cpu() - before.0));
        let postgres = postmaster.map(cpu_micros).zip(before.1);
        row.figures[POSTGRES_CPU] = postgres.map(|(after, before)| an_answer(after - before));
        row.figures[RESIDENT] = Some(peers.iter().map(Peer::resident_mib).sum());
        if ask == CREATE {
            let groups = join_all(peers.iter().map(Peer::writes_a_commit)).await;
            row.figures[GROUPS] = groups.into_iter().flatten().reduce(f64::max);
        }
        Self { connections, ..row }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parcels = self.parcels.map_or("-".to_owned(), |parcels| parcels.to_string());
        write!(f, "| {} | {parcels} | {} |", self.what, self.connections)?;
        for (figure, (_, decimals)) in self.figures.iter().zip(COLUMNS) {
            match figure {
                Some(figure) => write!(f, " {figure:.decimals$} |")?,
                None => write!(f, " - |")?,
            }
        }
        Ok(())
    }
}

/// Measures the lower bound of a commit: a bare write of about a group's size, and its fdatasync.
pub(crate) fn bare_writes(folder: &Path, time: Duration) -> Row {
    let mut file = File::create(folder.join("bare")).unwrap();
    let (block, mut millis, begun) = (vec![7; 32 * 1024], Vec::new(), Instant::now());
    while begun.elapsed() < time {
        let write = Instant::now();
        file.write_all(&block).unwrap();
        file.sync_data().unwrap();
        millis.push(millis_since(write));
    }
    Row::timed("a bare write and its fdatasync", millis, begun.elapsed())
}
