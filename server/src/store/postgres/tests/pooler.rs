//! PgBouncer in transaction mode before the tests' cluster: each transaction may have another connection of
//! PostgreSQL than the one before it.

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    sync::LazyLock,
};

use futures_util::future::join_all;
use tokio_postgres::config::Host;

use super::cluster::{as_owner, direct};
use crate::store::{
    Store,
    postgres::Address,
    tests::conformance::{SECRET, made, row, sandbox},
};

/// Few connections for many clients, so that they are shared.
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
default_pool_size = 3
max_client_conn = 2000
server_idle_timeout = 5
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

struct Pooler {
    folder: String,
    /// Its standard input ends with this process.
    _script: Child,
}

/// Where Debian puts it.
const PROGRAM: &str = "/usr/sbin/pgbouncer";

static SHARED: LazyLock<Option<Pooler>> = LazyLock::new(|| {
    let program = env::var("PARCELO_POSTGRES_POOLER").ok()?;
    Some(start(&program, &direct()?, ""))
});

/// The address of a database through the pooler, if `PARCELO_POSTGRES_POOLER` names its program.
pub(super) fn chosen(database: &str) -> Option<Address> {
    Some(SHARED.as_ref()?.address(database))
}

impl Pooler {
    fn address(&self, database: &str) -> Address {
        let url = format!("postgres://parcelo@/{database}?host={}&port=6432", self.folder);
        Address::parse(&format!("{url}&unsafe_settings=allow")).unwrap()
    }
}

/// Starts it before the cluster of a database, with a setting more.
fn start(program: &str, direct: &Address, setting: &str) -> Pooler {
    let [Host::Unix(cluster)] = direct.config.get_hosts() else { panic!("not a socket") };
    let mut command = as_owner("sh");
    command.args(["-c", SCRIPT, "sh", program, cluster.to_str().unwrap(), setting]);
    let mut script = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut folder = String::new();
    BufReader::new(script.stdout.take().unwrap()).read_line(&mut folder).unwrap();
    let folder = folder.trim().to_owned();
    assert!(!folder.is_empty(), "PgBouncer could not be started");
    Pooler { folder, _script: script }
}

/// A pooler before an empty database; none where one of the two is not installed.
fn before_a_database(setting: &str) -> Option<(Pooler, Address, Address)> {
    let direct = direct()?;
    let program = env::var("PARCELO_POSTGRES_POOLER").unwrap_or_else(|_| PROGRAM.to_owned());
    fs::exists(&program).unwrap().then(|| {
        let pooler = start(&program, &direct, setting);
        let address = pooler.address(direct.config.get_dbname().unwrap());
        (pooler, address, direct)
    })
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PgBouncer: `.ci/prove versions` installs it and runs this"]
async fn a_pooler_in_the_place_of_the_server_is_refused_with_the_way_around_it() {
    // It refuses what it cannot keep, or is set up to drop it silently.
    for setting in ["", "ignore_startup_parameters = options"] {
        let Some((_pooler, pooled, direct)) = before_a_database(setting) else { return };
        let refused = Store::connect(pooled.clone(), SECRET).await.unwrap_err().to_string();
        assert!(refused.contains("--database-direct"), "{setting}: {refused}");
        Store::connect(pooled.with_direct(direct), SECRET).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PgBouncer: `.ci/prove versions` installs it and runs this"]
async fn reads_go_through_the_pooler_and_writes_around_it() {
    let Some((_pooler, pooled, beside)) = before_a_database("") else { return };
    let store = Store::connect(pooled.clone().with_direct(beside.clone()), SECRET).await.unwrap();
    let reads = (0..60).map(|number| {
        let store = store.clone();
        tokio::spawn(async move {
            let number = format!("SB-POOLED-{number:04}");
            let parcel = made(&store, sandbox(1), &number).await;
            assert_eq!(row(&store, &number).await, Some(parcel));
        })
    });
    for read in join_all(reads.collect::<Vec<_>>()).await {
        read.unwrap();
    }
    // Another database than the one that is written to, though of the same schema.
    let other = direct().unwrap();
    Store::connect(other.clone(), [1; 32]).await.unwrap();
    let refused = Store::connect(pooled.with_direct(other), SECRET).await.unwrap_err().to_string();
    assert!(refused.contains("both must lead to one"), "{refused}");
}
