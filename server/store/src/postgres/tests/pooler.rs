//! PgBouncer in transaction mode in front of PostgreSQL: each transaction may get a different connection.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
};

use crate::postgres::test_util::cluster::{as_owner, empty_database, socket_and_name};
use crate::{Store, postgres::Address, tests::conformance::SECRET};

const SCRIPT: &str = r#"
    set -e
    trap '' HUP INT TERM
    folder=$(mktemp -d)
    cat >"$folder/pgbouncer.ini" <<END
[databases]
* = host=$2 user=parcelo
[pgbouncer]
unix_socket_dir = $folder
auth_type = any
pool_mode = transaction
logfile = $folder/log
pidfile = $folder/pid
$3
END
    "$1" -q "$folder/pgbouncer.ini" >/dev/null 2>&1 &
    server=$!
    until [ -S "$folder/.s.PGSQL.6432" ]; do kill -0 $server; sleep 0.05; done
    echo "$folder"
    read -r _ || true
    kill -9 $server
    rm -rf "$folder"
"#;

/// The path at which Debian installs PgBouncer.
const PROGRAM: &str = "/usr/sbin/pgbouncer";

/// Starts PgBouncer in front of a database's cluster, with an additional setting, until the standard input of the
/// returned process is closed. Returns the process, and the database's address through PgBouncer.
fn start(database: &Address, setting: &str) -> (Child, Address) {
    let (cluster, name) = socket_and_name(database);
    let mut command = as_owner("sh");
    command.args(["-c", SCRIPT, "sh", PROGRAM, cluster.to_str().unwrap(), setting]);
    let mut script = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut folder = String::new();
    BufReader::new(script.stdout.take().unwrap()).read_line(&mut folder).unwrap();
    let folder = folder.trim();
    assert!(!folder.is_empty(), "PgBouncer could not be started");
    let url = format!("postgres://parcelo@/{name}?host={folder}&port=6432&unsafe_settings=allow");
    (script, Address::parse(&url).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PgBouncer: `.ci/prove versions` installs it and runs this"]
async fn a_pooler_instead_of_the_server_is_refused_with_advice() {
    let Some(database) = empty_database().filter(|_| fs::exists(PROGRAM).unwrap()) else { return };
    // PgBouncer refuses settings that it cannot keep, or drops them silently if it is set up to do so.
    for setting in ["", "ignore_startup_parameters = options"] {
        let (_pooler, pooled) = start(&database, setting);
        let refused = Store::connect(pooled, SECRET).await.unwrap_err().to_string();
        assert!(refused.contains("name PostgreSQL itself by --database"), "{setting}: {refused}");
    }
}
