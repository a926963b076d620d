//! Databases of the tests' cluster, in the form that this crate's own tests use.

#[path = "../../../../tests/cluster/mod.rs"]
mod shared;

pub(super) use shared::{Cluster, as_owner};

use std::path::Path;

use tokio::time::timeout;
use tokio_postgres::{Client, NoTls, config::Host};

use super::upgrades;
use crate::{
    domain::{Changes, audit::BY},
    store::{
        CommitOutcome, Engine,
        postgres::{Address, READERS, Store},
        tests::conformance::{sandbox, webhooks::endpoint},
    },
    waiting::{LONG, pause},
};

/// Creates a database with a schema, or `None` if PostgreSQL is not installed. It lasts as long as the cluster: stores that
/// are still connected when a test ends would keep it from being dropped. With `PARCELO_NEXT_SCHEMA` it has the next
/// version's schema already.
pub(in crate::store) fn database() -> Option<Address> {
    let address = empty_database()?;
    if std::env::var_os("PARCELO_NEXT_SCHEMA").is_some() {
        upgrades::make_next_schema(&address);
    }
    Some(address)
}

/// Creates a database without a schema, for tests in which a program makes one.
pub(in crate::store) fn empty_database() -> Option<Address> {
    let cluster = shared::shared()?;
    Some(Address::parse(&cluster.url(&cluster.create_database())).unwrap())
}

/// Returns the folder of the socket of a database's cluster, and the database's name.
pub(super) fn place(address: &Address) -> (&Path, &str) {
    let config = &address.hosts[0].config;
    let [Host::Unix(folder)] = config.get_hosts() else { panic!("not a socket") };
    (folder, config.get_dbname().unwrap())
}

/// Returns a connection that no store uses, on which a test acts as another server or an operator.
pub(super) async fn client(address: &Address) -> Client {
    let (client, connection) = address.hosts[0].config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Returns a server on a new database.
pub(super) async fn server() -> Option<(crate::store::Store, Address)> {
    let address = database()?;
    Some((crate::store::Store::connect(address.clone(), [9; 32]).await.unwrap(), address))
}

/// Returns the same as [`server`], and a connection beside it.
pub(super) async fn store_and_client() -> Option<(crate::store::Store, Client, Address)> {
    let (store, address) = server().await?;
    Some((store, client(&address).await, address))
}

/// Returns the same as [`beside`]. The first sandbox has an endpoint.
pub(super) async fn with_endpoint() -> Option<(crate::store::Store, Client, Address)> {
    let (store, client, address) = store_and_client().await?;
    store.set_endpoint(endpoint(sandbox(1)), &BY).await.unwrap();
    Some((store, client, address))
}

/// Waits until this many other connections wait for a lock, or `or` says that none will. This connection may have an
/// open transaction, in which PostgreSQL would otherwise keep showing the connections of its first answer.
pub(super) async fn until_blocked(client: &Client, connections: i64, or: impl Fn() -> bool) {
    let blocked = "SELECT count(DISTINCT pid) FROM pg_locks JOIN pg_stat_activity AS a USING (pid) \
         WHERE NOT granted AND datname = current_database()";
    // Not `waiting::until`, whose future cannot be sent to another thread.
    let is_blocked = async || {
        client.batch_execute("SELECT pg_stat_clear_snapshot()").await.unwrap();
        client.query_one(blocked, &[]).await.unwrap().get::<_, i64>(0) >= connections
    };
    let blocked = async {
        while !or() && !is_blocked().await {
            pause().await;
        }
    };
    timeout(LONG, blocked).await.expect("they wait for a lock");
}

/// Returns the process of the connection that a store's writer uses.
pub(super) async fn writer(store: &crate::store::Store) -> i32 {
    let Engine::Postgres(engine) = &store.0 else { panic!("another engine") };
    let pid = || engine.call(async |db| db.value("SELECT pg_backend_pid()", &[]).await);
    // The store may have no connection at the moment.
    loop {
        if let Ok(pid) = pid().await {
            return pid;
        }
        pause().await;
    }
}

/// Commits as callers do, who send the same again under its key until its outcome is known.
pub(super) async fn repeated(store: &crate::store::Store, changes: Changes) -> CommitOutcome {
    loop {
        match store.commit(changes.clone()).await {
            CommitOutcome::Busy | CommitOutcome::Unreachable | CommitOutcome::Unknown => {
                pause().await;
            }
            outcome => return outcome,
        }
    }
}

/// Runs a statement as an operator does with `psql`. An error fails the test.
pub(crate) fn run_sql(address: &Address, sql: &str) {
    shared::shared().unwrap().run_sql(place(address).1, sql);
}

/// Returns the output of `psql` for a statement.
pub(in crate::store) fn query(address: &Address, sql: &str) -> String {
    shared::shared().unwrap().query(place(address).1, sql)
}

/// Lets connections into a database, or lets none in and ends the present ones.
pub(in crate::store) fn admit(address: &Address, anyone: bool) {
    let (_, name) = place(address);
    run_sql_at_postgres(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS {anyone}"));
    if !anyone {
        run_sql_at_postgres(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        ));
    }
}

/// Runs a statement as an operator who is connected to none of the tests' databases.
pub(super) fn run_sql_at_postgres(sql: &str) {
    shared::shared().unwrap().run_sql("postgres", sql);
}

/// Opens an empty store, or `None` if PostgreSQL is not installed.
pub(in crate::store) async fn open(secret: [u8; 32]) -> Option<Store> {
    Some(Store::connect(database()?, secret, READERS).await.unwrap())
}

/// Opens two servers' stores on a new database, or `None` if PostgreSQL is not installed.
pub(crate) async fn two_servers() -> Option<[crate::store::Store; 2]> {
    let address = database()?;
    let one = crate::store::Store::connect(address.clone(), [9; 32]).await.unwrap();
    let other = crate::store::Store::connect(address, [1; 32]).await.unwrap();
    Some([one, other])
}
