//! Databases of the tests' cluster, in the form that this crate's own tests use.

#[path = "../../../../tests/cluster/mod.rs"]
mod shared;

#[cfg(test)]
pub(crate) use shared::{Cluster, as_owner};

use std::{path::Path, sync::atomic::Ordering};

use parcelo_domain::Changes;
#[cfg(test)]
use parcelo_domain::sample::TEST_AUTHOR;
use tokio::time::timeout;
use tokio_postgres::{Client, NoTls, config::Host};

use crate::{
    CommitOutcome, Engine,
    postgres::{Address, READERS, Store, migrations::MIGRATIONS},
    waiting::{LONG, pause},
};

/// Creates a database with a schema, or returns `None` if PostgreSQL is not installed. It lasts as long as the cluster,
/// because stores that are still connected when a test ends would keep it from being dropped. With
/// `PARCELO_NEXT_SCHEMA` it has the next version's schema already.
pub fn database() -> Option<Address> {
    let address = empty_database()?;
    if std::env::var_os("PARCELO_NEXT_SCHEMA").is_some() {
        make_next_schema(&address);
    }
    Some(address)
}

/// Creates a database without a schema, for tests in which a program makes one.
pub(crate) fn empty_database() -> Option<Address> {
    super::MAKES_TEST_DATABASES.store(true, Ordering::Relaxed);
    let cluster = shared::shared()?;
    Some(Address::parse(&cluster.url(&cluster.create_database())).unwrap())
}

/// Returns the folder of the socket of a database's cluster, and the database's name.
pub(crate) fn socket_and_name(address: &Address) -> (&Path, &str) {
    let config = &address.hosts[0].config;
    let [Host::Unix(folder)] = config.get_hosts() else { panic!("not a socket") };
    (folder, config.get_dbname().unwrap())
}

/// Returns a connection that no store uses, on which a test acts as another server or an operator.
pub(crate) async fn client(address: &Address) -> Client {
    let (client, connection) = address.hosts[0].config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Opens a store on a new database, or returns `None` if PostgreSQL is not installed.
pub(crate) async fn new_store() -> Option<(crate::Store, Address)> {
    let address = database()?;
    Some((crate::Store::connect(address.clone(), [9; 32]).await.unwrap(), address))
}

/// Like [`new_store`], but also returns a separate connection to its database.
pub(crate) async fn store_and_client() -> Option<(crate::Store, Client, Address)> {
    let (store, address) = new_store().await?;
    Some((store, client(&address).await, address))
}

/// Like [`store_and_client`], but the first sandbox has an endpoint.
#[cfg(test)]
pub(crate) async fn with_endpoint() -> Option<(crate::Store, Client, Address)> {
    use crate::tests::conformance::{sandbox, webhooks::endpoint};

    let (store, client, address) = store_and_client().await?;
    let endpoint = endpoint(sandbox(1));
    store.set_endpoint(endpoint, &TEST_AUTHOR).await.unwrap();
    Some((store, client, address))
}

/// Waits until `connections` other connections wait for a lock, or until `is_over` returns `true`. This connection may
/// have an open transaction, in which PostgreSQL would otherwise keep showing the connections of its first answer.
pub(crate) async fn until_blocked(client: &Client, connections: i64, is_over: impl Fn() -> bool) {
    let blocked = "SELECT count(DISTINCT pid) FROM pg_locks JOIN pg_stat_activity AS a USING (pid) \
         WHERE NOT granted AND datname = current_database()";
    // Not `waiting::until`, whose future cannot be sent to another thread.
    let is_blocked = async || {
        client.batch_execute("SELECT pg_stat_clear_snapshot()").await.unwrap();
        client.query_one(blocked, &[]).await.unwrap().get::<_, i64>(0) >= connections
    };
    let blocked = async {
        while !is_over() && !is_blocked().await {
            pause().await;
        }
    };
    timeout(LONG, blocked).await.expect("they wait for a lock");
}

/// Returns the process id of the backend that a store's writer is connected to.
pub(crate) async fn writer_pid(store: &crate::Store) -> i32 {
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

/// Commits as callers do: repeats the changes under their key until the outcome is known.
pub(crate) async fn commit_until_known(store: &crate::Store, changes: Changes) -> CommitOutcome {
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
pub fn run_sql(address: &Address, sql: &str) {
    shared::shared().unwrap().run_sql(socket_and_name(address).1, sql);
}

/// Returns the output of `psql` for a statement.
pub(crate) fn query(address: &Address, sql: &str) -> String {
    shared::shared().unwrap().query(socket_and_name(address).1, sql)
}

/// Allows connections to a database, or refuses new ones and ends the existing ones.
pub(crate) fn set_connections_allowed(address: &Address, is_allowed: bool) {
    let (_, name) = socket_and_name(address);
    run_sql_at_postgres(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS {is_allowed}"));
    if !is_allowed {
        run_sql_at_postgres(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        ));
    }
}

/// Runs a statement as an operator who is connected to none of the tests' databases.
pub(crate) fn run_sql_at_postgres(sql: &str) {
    shared::shared().unwrap().run_sql("postgres", sql);
}

/// Opens an empty store, or returns `None` if PostgreSQL is not installed.
pub(crate) async fn open(secret: [u8; 32]) -> Option<Store> {
    Some(Store::connect(database()?, secret, READERS).await.unwrap())
}

/// Opens two servers' stores on a new database, or returns `None` if PostgreSQL is not installed.
pub async fn two_servers() -> Option<[crate::Store; 2]> {
    let address = database()?;
    let one = crate::Store::connect(address.clone(), [9; 32]).await.unwrap();
    let other = crate::Store::connect(address, [1; 32]).await.unwrap();
    Some([one, other])
}

/// A migration that only adds. `oldest_schema` stays as the previous version left it.
pub(crate) const NEXT_MIGRATION: &str = "\
    DO $next$ DECLARE t text; BEGIN \
        FOR t IN SELECT c.oid::regclass::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace \
            WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND NOT c.relispartition \
        LOOP EXECUTE format('ALTER TABLE %s ADD COLUMN of_next text NOT NULL DEFAULT ''next''', t); END LOOP; \
    END $next$; \
    CREATE INDEX parcels_of_next ON parcels (of_next, id); \
    CREATE TABLE next_things (id bigint PRIMARY KEY); \
    INSERT INTO schema_migrations (version) SELECT max(version) + 1 FROM schema_migrations";

/// Makes a program's schema in an empty database, by its migrations.
pub(crate) fn make_schema(address: &Address, migrations: &[&str], additional_sql: &str) {
    let versions: Vec<_> = (1..=migrations.len()).map(|version| format!("({version})")).collect();
    let sql = [
        "BEGIN; CREATE TABLE schema_migrations (version bigint PRIMARY KEY, \
         applied_at timestamptz NOT NULL DEFAULT now())",
        &migrations.join(";"),
        &format!("INSERT INTO schema_migrations (version) VALUES {}", versions.join(", ")),
        &format!("INSERT INTO meta (name, value) VALUES ('oldest_schema', '{}')", migrations.len()),
        additional_sql,
        "COMMIT",
    ];
    run_sql(address, &sql.join(";\n"));
}

/// Makes the next version's schema in an empty database.
pub(crate) fn make_next_schema(address: &Address) {
    make_schema(address, &MIGRATIONS, NEXT_MIGRATION);
}
