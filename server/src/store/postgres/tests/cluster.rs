//! A PostgreSQL of the test run's own: made in a temporary folder by an unprivileged user, on a Unix socket
//! there, and gone when the process of the tests ends, however it ends.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

use crate::store::postgres::{Address, Store};

/// Makes a cluster, says where, and ends it when its standard input does.
const SCRIPT: &str = r#"
    set -e
    folder=$(mktemp -d)
    "$1/initdb" -D "$folder/data" -A trust -U parcelo -E UTF8 --locale=C --no-sync >/dev/null
    "$1/postgres" -D "$folder/data" -k "$folder" -c listen_addresses= -c max_connections=400 \
        -c fsync=off -c full_page_writes=off -c synchronous_commit=off >"$folder/log" 2>&1 &
    server=$!
    until "$1/pg_isready" -q -h "$folder"; do sleep 0.05; done
    echo "$folder"
    read -r _ || true
    kill -INT "$server"
    wait "$server" || true
    rm -rf "$folder"
"#;

/// Where Debian and others put PostgreSQL's programs, which are not on the path.
const FOLDERS: [&str; 2] = ["/usr/lib/postgresql", "/usr/local/lib/postgresql"];

struct Cluster {
    programs: PathBuf,
    folder: String,
    /// Its standard input ends with this process.
    _script: Child,
}

/// None where PostgreSQL is not installed.
static CLUSTER: LazyLock<Option<Cluster>> = LazyLock::new(|| {
    let programs = programs();
    assert!(
        programs.is_some() || std::env::var_os("PARCELO_POSTGRES_REQUIRED").is_none(),
        "PostgreSQL is not installed, and this run is to test it"
    );
    programs.map(start)
});
static DATABASES: AtomicU32 = AtomicU32::new(0);

/// The folder of PostgreSQL's programs: `PARCELO_POSTGRES_BIN`, or the newest that is installed.
fn programs() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PARCELO_POSTGRES_BIN") {
        return Some(named.into());
    }
    let versions = FOLDERS.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let mut found: Vec<_> =
        versions.filter_map(|version| Some(version.ok()?.path().join("bin"))).collect();
    found.retain(|folder| folder.join("initdb").exists());
    found.sort();
    found.pop()
}

fn start(programs: PathBuf) -> Cluster {
    // PostgreSQL does not run as root.
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let mut command = Command::new(if is_root { "runuser" } else { "sh" });
    if is_root {
        command.args(["-u", "postgres", "--", "sh"]);
    }
    command.args(["-c", SCRIPT, "sh"]).arg(&programs).current_dir("/");
    let mut script = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut folder = String::new();
    BufReader::new(script.stdout.take().unwrap()).read_line(&mut folder).unwrap();
    let folder = folder.trim().to_owned();
    assert!(Path::new(&folder).is_dir(), "no PostgreSQL could be started");
    Cluster { programs, folder, _script: script }
}

/// A database of its own; none where PostgreSQL is not installed.
pub(in crate::store) fn database() -> Option<Address> {
    let cluster = CLUSTER.as_ref()?;
    let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
    psql("postgres", &["-c", &format!("CREATE DATABASE {name}")]);
    let folder = &cluster.folder;
    let url = format!("postgres://parcelo@/{name}?host={folder}&unsafe_settings=allow");
    Some(Address::parse(&url).unwrap())
}

/// What an operator does in a database, by `psql`; an error of it is the test's.
pub(in crate::store) fn run_sql(address: &Address, sql: &str) {
    psql(address.config.get_dbname().unwrap(), &["-c", sql]);
}

/// Lets connections into a database, or none, ending those that there are.
pub(in crate::store) fn admit(address: &Address, anyone: bool) {
    let name = address.config.get_dbname().unwrap();
    let allow = format!("ALTER DATABASE {name} ALLOW_CONNECTIONS {anyone}");
    let end =
        format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
    psql("postgres", &["-c", &allow]);
    if !anyone {
        psql("postgres", &["-c", &end]);
    }
}

fn psql(database: &str, commands: &[&str]) {
    let cluster = CLUSTER.as_ref().unwrap();
    let done = Command::new(cluster.programs.join("psql"))
        .args(["-q", "-t", "-h", &cluster.folder, "-U", "parcelo", "-d", database])
        .args(commands)
        .stdout(Stdio::null())
        .status();
    assert!(done.unwrap().success(), "{commands:?}");
}

/// An empty store; none where PostgreSQL is not installed.
pub(in crate::store) async fn open(secret: [u8; 32]) -> Option<Store> {
    Some(Store::connect(database()?, secret).await.unwrap())
}

/// Two servers' stores on a database of their own; none where PostgreSQL is not installed.
pub(crate) async fn two_servers() -> Option<[crate::store::Store; 2]> {
    let address = database()?;
    let one = crate::store::Store::connect(address.clone(), [9; 32]).await.unwrap();
    let other = crate::store::Store::connect(address, [1; 32]).await.unwrap();
    Some([one, other])
}
