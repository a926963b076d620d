//! A PostgreSQL of the run's own, with the settings that `initdb` gives it, and what it has used of the machine.

use std::fs;

use tokio_postgres::{Client, NoTls};

#[path = "../../tests/cluster/mod.rs"]
mod shared;

pub(crate) struct Cluster {
    cluster: shared::Cluster,
    /// Its first process, by its id.
    postmaster: String,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let cluster = shared::Cluster::start(&[]).expect("PostgreSQL is installed");
        let file = format!("{}/data/postmaster.pid", cluster.folder());
        let postmaster = fs::read_to_string(file).unwrap().lines().next().unwrap().to_owned();
        Self { cluster, postmaster }
    }

    /// Makes a database, and answers its name.
    pub(crate) fn create_database(&self) -> String {
        self.cluster.create_database()
    }

    /// The address of a database, as servers are given it.
    pub(crate) fn url(&self, database: &str) -> String {
        self.cluster.url(database)
    }

    pub(crate) async fn connect(&self, database: &str) -> Client {
        let given = format!("host={} user=parcelo dbname={database}", self.cluster.folder());
        let (client, connection) = tokio_postgres::connect(&given, NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// The CPU time of all of PostgreSQL's processes so far, in microseconds: exact to a clock tick of 10 ms each.
    pub(crate) fn cpu_micros(&self) -> f64 {
        const MICROS_A_TICK: f64 = 10_000.0;
        let ticks = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let stat = fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
            // After the command's name, which is in brackets and may hold blanks.
            let (before, fields) = stat.rsplit_once(") ")?;
            let fields: Vec<&str> = fields.split(' ').collect();
            let is_postmaster = before.split(' ').next() == Some(&self.postmaster);
            if !is_postmaster && fields[1] != self.postmaster {
                return None;
            }
            // The postmaster has the time of those that have ended, too.
            let times = fields[11..].iter().take(if is_postmaster { 4 } else { 2 });
            Some(times.map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>())
        });
        ticks.sum::<f64>() * MICROS_A_TICK
    }

    /// What was written to the log of writes so far, in bytes, and how many pages of it were written whole.
    pub(crate) fn log_written(&self) -> (f64, f64) {
        let sql = "SELECT wal_bytes, wal_fpi FROM pg_stat_wal";
        let figures = self.cluster.query("postgres", sql);
        let (bytes, pages) = figures.split_once('|').unwrap();
        (bytes.parse().unwrap(), pages.parse().unwrap())
    }
}
