//! A PostgreSQL cluster for this run, with fsync on, that can be stopped in an orderly way or as in a power cut.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use self::cluster::{as_owner, programs};
use crate::disk::Disk;

#[path = "../../../server/tests/cluster/mod.rs"]
mod cluster;

/// A cluster with its Unix socket in a temporary folder and its data on a disk that can be filled. It is removed when
/// this value is dropped.
pub(crate) struct Postgres {
    programs: PathBuf,
    folder: PathBuf,
    data: PathBuf,
}

/// A way to stop PostgreSQL.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shutdown {
    /// Ends connections, then writes a checkpoint.
    Fast,
    /// Ends at once, as in a power cut: the next start recovers.
    Immediate,
}

impl Postgres {
    pub(crate) fn start(disk: &Disk) -> Self {
        let programs = programs().expect("PostgreSQL is installed");
        let folder = PathBuf::from(run_for_output(as_postgres("mktemp").arg("-d")).trim());
        let data = disk.folder.join("postgres");
        let cluster = Self { programs, folder, data };
        run_for_output(as_postgres("mkdir").args(["-m", "700"]).arg(&cluster.data));
        let mut initdb = as_postgres(cluster.programs.join("initdb"));
        initdb.arg("-D").arg(&cluster.data).args(["-A", "trust", "-U", "parcelo", "-E", "UTF8"]);
        // Small WAL segments, so that the disk fills up within the log too, and not only within tables.
        run_for_output(initdb.args(["--locale=C", "--wal-segsize=1"]));
        cluster.pg_ctl(&["start"]);
        cluster.sql("postgres", "CREATE DATABASE torture");
        cluster
    }

    pub(crate) fn restart(&self, shutdown: Shutdown) {
        let mode = match shutdown {
            Shutdown::Fast => "fast",
            Shutdown::Immediate => "immediate",
        };
        self.pg_ctl(&["-m", mode, "restart"]);
    }

    /// Starts it again if it has exited, as it does when its disk is full.
    pub(crate) fn ensure_running(&self) {
        for _ in 0..600 {
            let mut status = as_postgres(self.programs.join("pg_ctl"));
            let status = status.arg("-D").arg(&self.data).arg("status").stdout(Stdio::null());
            if !status.status().is_ok_and(|status| status.success()) {
                self.pg_ctl(&["start"]);
            }
            let answer = self.psql("postgres", "SELECT 1").stderr(Stdio::null()).output();
            if answer.is_ok_and(|answer| answer.status.success()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("PostgreSQL does not come back");
    }

    /// Ends all connections of the servers, whatever they are doing.
    pub(crate) fn terminate_connections(&self) {
        let others = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = 'torture'";
        self.sql("postgres", others);
    }

    fn sql(&self, database: &str, query: &str) {
        run_for_output(&mut self.psql(database, query));
    }

    fn psql(&self, database: &str, query: &str) -> Command {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-qAt", "-U", "parcelo", "-d", database, "-c", query])
            .arg("-h")
            .arg(&self.folder);
        psql
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join(".s.PGSQL.5432")
    }

    fn pg_ctl(&self, arguments: &[&str]) {
        let settings = format!(
            "-k {} -c listen_addresses= -c max_connections=100 -c min_wal_size=16MB -c max_wal_size=256MB",
            self.folder.display()
        );
        let mut pg_ctl = as_postgres(self.programs.join("pg_ctl"));
        pg_ctl
            .arg("-D")
            .arg(&self.data)
            .arg("-l")
            .arg(self.folder.join("log"))
            .args(["-w", "-t", "300", "-o", &settings]);
        // The output is not piped, because the started server would keep the pipe open.
        let status = pg_ctl.args(arguments).stdout(Stdio::null()).status();
        assert!(status.is_ok_and(|status| status.success()), "pg_ctl {arguments:?}");
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.pg_ctl(&["-m", "immediate", "stop"]);
        let _gone = std::fs::remove_dir_all(&self.folder);
    }
}

/// Returns a command that runs as the owner of PostgreSQL's files.
fn as_postgres(program: impl AsRef<Path>) -> Command {
    as_owner(program.as_ref().to_str().expect("a path of text"))
}

/// Returns the output of a command that must succeed.
fn run_for_output(command: &mut Command) -> String {
    let output = command.stderr(Stdio::inherit()).output().expect("the program is installed");
    assert!(output.status.success(), "{command:?}");
    String::from_utf8(output.stdout).expect("text")
}
