//! A PostgreSQL of the run's own, with the settings that `initdb` gives it: made in a temporary folder by an
//! unprivileged user, and gone when this process ends, however it ends.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tokio_postgres::{Client, NoTls};

/// Makes a cluster, says where and under which process id, and ends it when its standard input does.
const SCRIPT: &str = r#"
    set -e
    folder=$(mktemp -d)
    "$1/initdb" -D "$folder/data" -A trust -U parcelo -E UTF8 --locale=C >/dev/null
    "$1/postgres" -D "$folder/data" -k "$folder" -c listen_addresses= >"$folder/log" 2>&1 &
    server=$!
    until "$1/pg_isready" -q -h "$folder"; do sleep 0.05; done
    echo "$folder $server"
    read -r _ || true
    kill -INT "$server"
    wait "$server" || true
    rm -rf "$folder"
"#;

/// Where Debian and others put PostgreSQL's programs, which are not on the path.
const FOLDERS: [&str; 2] = ["/usr/lib/postgresql", "/usr/local/lib/postgresql"];

pub(crate) struct Cluster {
    folder: String,
    postmaster: String,
    script: Child,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        // PostgreSQL does not run as root.
        let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
        let mut command = Command::new(if is_root { "runuser" } else { "sh" });
        if is_root {
            command.args(["-u", "postgres", "--", "sh"]);
        }
        command.args(["-c", SCRIPT, "sh"]).arg(programs()).current_dir("/");
        let mut script = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(script.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (folder, postmaster) = line.trim().split_once(' ').expect("no PostgreSQL was started");
        Self { folder: folder.to_owned(), postmaster: postmaster.to_owned(), script }
    }

    /// A new database, as servers are given it.
    pub(crate) async fn database(&self, name: &str) -> String {
        let all = self.connect("postgres").await;
        all.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        format!("postgres://parcelo@/{name}?host={}", self.folder)
    }

    pub(crate) async fn connect(&self, name: &str) -> Client {
        let given = format!("host={} user=parcelo dbname={name}", self.folder);
        let (client, connection) = tokio_postgres::connect(&given, NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// The CPU time of all of PostgreSQL's processes so far, in microseconds: exact to a clock tick of 10 ms each.
    pub(crate) fn cpu_micros(&self) -> f64 {
        const MICROS_A_TICK: f64 = 10_000.0;
        let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let stat = fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
            // After the command's name, which is in brackets and may hold blanks.
            let (before, fields) = stat.rsplit_once(") ")?;
            let fields: Vec<_> = fields.split(' ').map(str::to_owned).collect();
            let id = before.split(' ').next()?.to_owned();
            (id == self.postmaster || fields[1] == self.postmaster).then_some((id, fields))
        });
        let ticks = processes.map(|(id, fields)| {
            // The postmaster has the time of those that have ended.
            let counted = if id == self.postmaster { 4 } else { 2 };
            fields
                .iter()
                .skip(11)
                .take(counted)
                .map(|ticks| ticks.parse::<f64>().unwrap())
                .sum::<f64>()
        });
        ticks.sum::<f64>() * MICROS_A_TICK
    }

    /// What was written to the log of writes so far, in bytes, and how many pages of it were written whole.
    pub(crate) async fn log_written(&self) -> (f64, f64) {
        let client = self.connect("postgres").await;
        let sql = "SELECT wal_bytes::float8, wal_fpi::float8 FROM pg_stat_wal";
        let row = client.query_one(sql, &[]).await.unwrap();
        (row.get(0), row.get(1))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}

/// The folder of PostgreSQL's programs: `PARCELO_POSTGRES_BIN`, or the newest that is installed.
fn programs() -> PathBuf {
    if let Some(named) = std::env::var_os("PARCELO_POSTGRES_BIN") {
        return Path::new(&named).to_owned();
    }
    let versions = FOLDERS.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let found = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    let mut found: Vec<_> = found.filter(|folder| folder.join("initdb").exists()).collect();
    found.sort();
    found.pop().expect("PostgreSQL is not installed")
}
