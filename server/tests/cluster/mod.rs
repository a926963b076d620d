//! A separate PostgreSQL cluster for the test run. Every kind of test includes this file: those inside the server's
//! crate, of the server as a process, of the command line, and under faults.
//!
//! It is made in a temporary folder by an unprivileged user, listens on a Unix socket there, and is removed when the
//! process of the tests ends, however it ends.
#![allow(dead_code, reason = "each of the crates that include this file uses a part of it")]

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

/// Creates a cluster, prints its folder, and removes it when standard input is closed. Ctrl-C during a test run reaches
/// the whole process group; the script ignores it in order to clean up. Arguments: the folder of the programs; the
/// cluster to follow as a standby, or an empty string; further settings.
const SCRIPT: &str = r#"
    set -e
    trap '' HUP INT TERM
    programs=$1; primary=$2; shift 2
    folder=$(mktemp -d)
    if [ "$primary" ]; then
        "$programs/pg_basebackup" -D "$folder/data" -h "$primary" -U parcelo -R -c fast --no-sync
    else
        "$programs/initdb" -D "$folder/data" -A trust -U parcelo -E UTF8 --locale=C --no-sync >/dev/null
    fi
    printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$folder'" \
        "max_connections = 400" "$@" >>"$folder/data/postgresql.conf"
    "$programs/pg_ctl" start -s -w -D "$folder/data" -l "$folder/log"
    echo "$folder"
    read -r _ || true
    if main=$(head -n 1 "$folder/data/postmaster.pid" 2>/dev/null); then
        # A test may have failed while it was frozen.
        kill -CONT "$main" $(pgrep -P "$main") 2>/dev/null || true
    fi
    "$programs/pg_ctl" stop -s -m immediate -D "$folder/data" || true
    rm -rf "$folder"
"#;

/// Settings that speed up tests of the logic and would lose data in a power failure.
const UNSAFE_SETTINGS: [&str; 3] =
    ["fsync = off", "full_page_writes = off", "synchronous_commit = off"];

/// Folders in which Debian and others put PostgreSQL's programs, which are not on the path.
const FOLDERS: [&str; 2] = ["/usr/lib/postgresql", "/usr/local/lib/postgresql"];

/// The cluster shared by the tests of this process.
static CLUSTER: LazyLock<Option<Cluster>> =
    LazyLock::new(|| Some(Cluster::start_from(programs()?, "", &UNSAFE_SETTINGS)));
static DATABASES: AtomicU32 = AtomicU32::new(0);

/// A running PostgreSQL cluster, which is stopped and removed when this is dropped.
pub(crate) struct Cluster {
    programs: PathBuf,
    folder: String,
    /// Cleans up when its standard input is closed, which happens at the latest when this process ends.
    script: Child,
}

/// The database of one test; dropping this drops the database.
pub(crate) struct Database {
    cluster: &'static Cluster,
    name: String,
}

/// Returns the cluster that the tests of this process share; `None` if PostgreSQL is not installed.
pub(crate) fn shared() -> Option<&'static Cluster> {
    CLUSTER.as_ref().or_else(|| {
        record_skipped_test();
        None
    })
}

/// Counts a test that passes because PostgreSQL is missing, as one byte in a file. The last program of `cargo test`
/// (`tests/tidy/skipped_tests.rs`), a child of the same process, reports the count.
fn record_skipped_test() {
    let file = fs::OpenOptions::new().create(true).append(true).open(skipped_tests_file());
    file.and_then(|mut file| file.write_all(b".")).unwrap();
}

/// Returns the path of the file with those counts.
pub(crate) fn skipped_tests_file() -> PathBuf {
    let name = format!("skipped-without-postgresql-{}", std::os::unix::process::parent_id());
    env::current_exe().unwrap().with_file_name(name)
}

/// Returns a new database if `PARCELO_TEST_DATABASE` selects PostgreSQL, and `None` if the tests run on files and in
/// memory, which is the default.
pub(crate) fn test_database() -> Option<Database> {
    match env::var("PARCELO_TEST_DATABASE").as_deref() {
        Err(_) | Ok("sqlite") => None,
        Ok("postgres") => Some(database().expect("PostgreSQL is installed")),
        Ok(other) => panic!("PARCELO_TEST_DATABASE={other}: postgres or sqlite"),
    }
}

/// Returns the URL of such a database, which is never dropped: for callers that cannot tell when they have finished.
pub(crate) fn leaked_test_database_url() -> Option<String> {
    test_database().map(|database| std::mem::ManuallyDrop::new(database).url())
}

/// Returns a new database in the cluster; `None` if PostgreSQL is not installed.
pub(crate) fn database() -> Option<Database> {
    let cluster = shared()?;
    Some(Database { name: cluster.create_database(), cluster })
}

/// Returns the folder of PostgreSQL's programs: `PARCELO_POSTGRES_BIN`, otherwise that of the newest installed version.
pub(crate) fn programs() -> Option<PathBuf> {
    if let Some(named) = env::var_os("PARCELO_POSTGRES_BIN") {
        return Some(named.into());
    }
    let versions = FOLDERS.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let mut found: Vec<_> =
        versions.filter_map(|version| Some(version.ok()?.path().join("bin"))).collect();
    found.retain(|folder| folder.join("initdb").exists());
    found.sort();
    let found = found.pop();
    assert!(
        found.is_some() || env::var_os("PARCELO_POSTGRES_REQUIRED").is_none(),
        "PostgreSQL is not installed, and this run is to test it"
    );
    found
}

impl Cluster {
    /// Starts a cluster with further lines of `postgresql.conf`; without any it is as durable as PostgreSQL is by
    /// default. Returns `None` if PostgreSQL is not installed.
    pub(crate) fn start(settings: &[&str]) -> Option<Self> {
        let Some(programs) = programs() else {
            record_skipped_test();
            return None;
        };
        Some(Self::start_from(programs, "", settings))
    }

    /// Starts a standby that replicates this cluster.
    pub(crate) fn start_standby(&self) -> Self {
        Self::start_from(self.programs.clone(), &self.folder, &[])
    }

    fn start_from(programs: PathBuf, primary: &str, settings: &[&str]) -> Self {
        let mut command = as_owner("sh");
        command.args(["-c", SCRIPT, "sh"]).arg(&programs).arg(primary).args(settings);
        // A signal to the process group of the tests would end `runuser`, which would kill the script before it cleans
        // up.
        command.process_group(0);
        let mut script = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut folder = String::new();
        BufReader::new(script.stdout.take().unwrap()).read_line(&mut folder).unwrap();
        let folder = folder.trim().to_owned();
        assert!(Path::new(&folder).is_dir(), "no PostgreSQL could be started");
        Self { programs, folder, script }
    }

    /// Returns the folder of its socket and of its `data`.
    pub(crate) fn folder(&self) -> &str {
        &self.folder
    }

    /// Creates an empty database and returns its name.
    pub(crate) fn create_database(&self) -> String {
        let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        self.run_sql("postgres", &format!("CREATE DATABASE {name}"));
        name
    }

    /// Returns the address of a database, for `--database`.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://parcelo@/{database}?host={}&unsafe_settings=allow", self.folder)
    }

    /// Runs SQL statements in a database with `psql`, as an operator does. An error fails the test.
    pub(crate) fn run_sql(&self, database: &str, sql: &str) {
        self.query(database, sql);
    }

    /// Returns the output of `psql`: one line for each row, with `|` between the columns.
    pub(crate) fn query(&self, database: &str, sql: &str) -> String {
        // `psql` is missing in some installations; the one on the path works with any version.
        let own = self.programs.join("psql");
        let done = Command::new(if own.exists() { own } else { "psql".into() })
            .args(["-X", "-q", "-t", "-A", "-h", &self.folder, "-U", "parcelo", "-d", database])
            .args(["-c", sql])
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(done.status.success(), "{sql}");
        String::from_utf8(done.stdout).unwrap().trim_end().to_owned()
    }

    /// Starts, stops or restarts it with `pg_ctl`, for example with `["restart", "-m", "immediate"]`.
    pub(crate) fn control(&self, arguments: &[&str]) {
        let mut command = as_owner(self.programs.join("pg_ctl").to_str().unwrap());
        command.args(arguments).args(["-s", "-w", "-D"]).arg(format!("{}/data", self.folder));
        let log = format!("{}/log", self.folder);
        assert!(command.args(["-l", &log]).status().unwrap().success(), "{arguments:?}");
    }
}

impl Cluster {
    /// Freezes all processes of the cluster, or lets them continue. A frozen cluster keeps its connections and answers
    /// nothing.
    pub(crate) fn freeze(&self, is_frozen: bool) {
        let file = fs::read_to_string(format!("{}/data/postmaster.pid", self.folder)).unwrap();
        let main = file.lines().next().unwrap();
        let signal = |processes: &str| {
            let mut kill = Command::new("kill");
            kill.arg(if is_frozen { "-STOP" } else { "-CONT" }).args(processes.split_whitespace());
            // A child may have ended in the meantime.
            let _ended = kill.stderr(Stdio::null()).status().unwrap();
        };
        // The main process is first: a child that it started between the listing and the signal would still answer.
        signal(main);
        let children = Command::new("pgrep").args(["-P", main]).output().unwrap().stdout;
        signal(&String::from_utf8(children).unwrap());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}

impl Database {
    /// Returns its address, for `--database`.
    pub(crate) fn url(&self) -> String {
        self.cluster.url(&self.name)
    }

    /// Returns the output of `psql` for a statement.
    pub(crate) fn query(&self, sql: &str) -> String {
        self.cluster.query(&self.name, sql)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A hundred databases of 8 MB each would fill a temporary folder. If a test fails, its own error matters more.
        if !std::thread::panicking() {
            let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
            self.cluster.run_sql("postgres", &drop);
        }
    }
}

/// Returns a command that runs as the owner of the cluster, because PostgreSQL refuses to run as root.
pub(crate) fn as_owner(program: &str) -> Command {
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let mut command = Command::new(if is_root { "runuser" } else { program });
    if is_root {
        command.args(["-u", "postgres", "--", program]);
    }
    command.current_dir("/");
    command
}
