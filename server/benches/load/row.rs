//! A row of the printed table: what was measured, with its latencies, CPU time and memory.

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
    client::{self, CREATE, RequestKind, StoredOrders, millis_since},
    server_process::{ServerProcess, cpu_micros},
};

/// The columns of figures, each with its number of decimals.
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
// The indexes of columns.
pub(crate) const ANSWERS_PER_SECOND: usize = 0;
pub(crate) const P50: usize = 1;
pub(crate) const SERVER_CPU: usize = 4;
pub(crate) const POSTGRES_CPU: usize = 5;
pub(crate) const RESIDENT_MIB: usize = 6;
pub(crate) const ORDERS_PER_COMMIT: usize = 7;

/// A row of the table.
pub(crate) struct Row {
    pub(crate) name: String,
    /// `None` if there are no parcels or their number does not matter.
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
    pub(crate) fn from_latencies(name: &str, mut millis: Vec<f64>, period: Duration) -> Self {
        millis.sort_unstable_by(f64::total_cmp);
        let answers = millis.len();
        let at = |share: f64| Some(millis[((answers as f64 * share) as usize).min(answers - 1)]);
        let rate = Some(answers as f64 / period.as_secs_f64());
        let figures = [rate, at(0.5), at(0.99), at(0.999), None, None, None, None];
        Self { name: name.to_owned(), parcels: None, connections: 1, answers, figures }
    }

    /// Measures servers that share a load, and PostgreSQL if the process id of its `postmaster` is given.
    pub(crate) async fn measure(
        name: &str,
        (servers, postmaster): (&[ServerProcess], Option<u32>),
        (kind, stored_orders): (RequestKind, &Arc<StoredOrders>),
        (connections, time): (usize, Duration),
    ) -> Self {
        let cpu = || servers.iter().map(|server| cpu_micros(server.id())).sum::<f64>();
        let before = (cpu(), postmaster.map(cpu_micros));
        let (begun, count) = (Instant::now(), servers.len());
        let loads = servers.iter().enumerate().map(|(nth, server)| {
            let at = (&server.target, (connections + count - 1 - nth) / count);
            client::send_repeatedly(at, kind, stored_orders, move || begun.elapsed() < time)
        });
        let millis = join_all(loads).await.into_iter().flat_map(|(millis, _)| millis).collect();
        let mut row = Self::from_latencies(name, millis, begun.elapsed());
        let per_answer = |micros: f64| micros / row.answers as f64;
        row.figures[SERVER_CPU] = Some(per_answer(cpu() - before.0));
        let postgres = postmaster.map(cpu_micros).zip(before.1);
        row.figures[POSTGRES_CPU] = postgres.map(|(after, before)| per_answer(after - before));
        row.figures[RESIDENT_MIB] = Some(servers.iter().map(ServerProcess::resident_mib).sum());
        if kind == CREATE {
            let groups = join_all(servers.iter().map(ServerProcess::writes_per_commit)).await;
            row.figures[ORDERS_PER_COMMIT] = groups.into_iter().flatten().reduce(f64::max);
        }
        Self { connections, ..row }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parcels = self.parcels.map_or("-".to_owned(), |parcels| parcels.to_string());
        write!(f, "| {} | {parcels} | {} |", self.name, self.connections)?;
        for (figure, (_, decimals)) in self.figures.iter().zip(COLUMNS) {
            match figure {
                Some(figure) => write!(f, " {figure:.decimals$} |")?,
                None => write!(f, " - |")?,
            }
        }
        Ok(())
    }
}

/// Measures a lower bound for the duration of a commit: a write as large as a group commit, followed by fdatasync.
pub(crate) fn measure_disk_writes(folder: &Path, time: Duration) -> Row {
    let mut file = File::create(folder.join("bare")).unwrap();
    let (block, mut millis, begun) = (vec![7; 32 * 1024], Vec::new(), Instant::now());
    while begun.elapsed() < time {
        let write = Instant::now();
        file.write_all(&block).unwrap();
        file.sync_data().unwrap();
        millis.push(millis_since(write));
    }
    Row::from_latencies("a bare write and its fdatasync", millis, begun.elapsed())
}
