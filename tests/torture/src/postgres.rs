//! A PostgreSQL of this run's own, with fsync on, that can be stopped in any way.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// A cluster in a temporary folder, on a Unix socket there; gone when it is dropped.
pub(crate) struct Postgres {
    programs: PathBuf,
    pub(crate) folder: PathBuf,
}

/// How PostgreSQL is stopped.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shutdown {
    /// Connections are ended, then a checkpoint.
    Fast,
    /// As by a power cut: the next start recovers.
    Immediate,
}

impl Postgres {
    pub(crate) fn start() -> Self {
        let programs = programs();
        let folder = PathBuf::from(said(as_postgres("mktemp").arg("-d")).trim());
        let cluster = Self { programs, folder };
        let data = cluster.data();
        let mut initdb = as_postgres(cluster.programs.join("initdb"));
        said(initdb.arg("-D").arg(data).args([
            "-A",
            "trust",
            "-U",
            "parcelo",
            "-E",
            "UTF8",
            "--locale=C",
        ]));
        cluster.control(&["start"]);
        cluster.sql("postgres", "CREATE DATABASE torture");
        cluster
    }

    pub(crate) fn restart(&self, shutdown: Shutdown) {
        let mode = match shutdown {
            Shutdown::Fast => "fast",
            Shutdown::Immediate => "immediate",
        };
        self.control(&["-m", mode, "restart"]);
    }

    /// Ends every connection of the servers, in the middle of whatever it does.
    pub(crate) fn end_connections(&self) {
        let others = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = 'torture'";
        self.sql("postgres", others);
    }

    /// The answer to a query, unadorned.
    pub(crate) fn sql(&self, database: &str, query: &str) -> String {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-qAt", "-U", "parcelo", "-d", database, "-c", query])
            .arg("-h")
            .arg(&self.folder);
        said(&mut psql).trim().to_owned()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join(".s.PGSQL.5432")
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn control(&self, arguments: &[&str]) {
        let settings =
            format!("-k {} -c listen_addresses= -c max_connections=200", self.folder.display());
        let mut pg_ctl = as_postgres(self.programs.join("pg_ctl"));
        pg_ctl
            .arg("-D")
            .arg(self.data())
            .arg("-l")
            .arg(self.folder.join("log"))
            .args(["-w", "-o", &settings]);
        // What it starts holds its standard output open.
        let status = pg_ctl.args(arguments).stdout(Stdio::null()).status();
        assert!(status.is_ok_and(|status| status.success()), "pg_ctl {arguments:?}");
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.control(&["-m", "immediate", "stop"]);
        let _gone = std::fs::remove_dir_all(&self.folder);
    }
}

/// A command as a user under whom PostgreSQL runs: it does not run as root.
fn as_postgres(program: impl AsRef<Path>) -> Command {
    let mut command = if said(Command::new("id").arg("-u")) == "0\n" {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(program.as_ref());
        command
    } else {
        Command::new(program.as_ref())
    };
    command.current_dir("/");
    command
}

/// The newest PostgreSQL where Debian puts them, or that of `PARCELO_POSTGRES_BIN`.
fn programs() -> PathBuf {
    if let Some(named) = std::env::var_os("PARCELO_POSTGRES_BIN") {
        return named.into();
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL is installed");
    let folders = versions.map(|version| version.expect("a folder").path().join("bin"));
    folders.filter(|folder| folder.join("initdb").exists()).max().expect("PostgreSQL's programs")
}

/// What a command that must succeed writes.
fn said(command: &mut Command) -> String {
    let output = command.stderr(Stdio::inherit()).output().expect("the program is there");
    assert!(output.status.success(), "{command:?}");
    String::from_utf8(output.stdout).expect("text")
}
