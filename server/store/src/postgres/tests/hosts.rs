//! A primary and its standbys. With several hosts in an address, the one that accepts writes is used; and a write that
//! waits for a synchronous standby is not acknowledged.

use std::time::Duration;

use tokio::{net::TcpListener, task::LocalSet};

use crate::postgres::test_util::cluster::{
    Cluster, commit_until_known, empty_database, run_sql, socket_and_name,
};
use crate::{
    CommitOutcome, Store,
    postgres::{Address, connection::Connector},
    tests::conformance::{SECRET, create, record, row, sandbox},
    waiting::{pause, until},
};

/// Returns the address of a database at one of the hosts, with a port for each.
fn address(hosts: &[(&str, u16)], database: &str, parameters: &str) -> Address {
    let names: Vec<_> = hosts.iter().map(|(host, _)| *host).collect();
    let ports: Vec<_> = hosts.iter().map(|(_, port)| port.to_string()).collect();
    let (names, ports) = (names.join(","), ports.join(","));
    let url =
        format!("postgres://parcelo@/{database}?host={names}&port={ports}&unsafe_settings=allow");
    Address::parse(&format!("{url}{parameters}")).unwrap()
}

/// Connects to one of the hosts. Returns the reason if that failed, and `true` if a request is still unanswered.
async fn connect(hosts: &[(&str, u16)], parameters: &str) -> (Result<(), String>, bool) {
    let address = address(hosts, "postgres", parameters);
    let connector = Connector::for_writer(&address).unwrap();
    let connect = async {
        let connected = connector.connect().await;
        connected.map(drop).map_err(|failure| failure.into_store_error(&address.name()).to_string())
    };
    (LocalSet::new().run_until(connect).await, connector.silence.is_awaiting_response())
}

/// Opens a port that accepts connections and stays silent until the returned listener is dropped.
async fn open_silent_port() -> (TcpListener, (&'static str, u16)) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, ("127.0.0.1", port))
}

#[tokio::test]
async fn the_first_host_that_accepts_writes_is_used() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    let standby = cluster.start_standby();
    let (primary, standby) = ((cluster.folder(), 5432), (standby.folder(), 5432));
    // No program listens on this port.
    let closed = ("127.0.0.1", 1);
    let (_listener, silent) = open_silent_port().await;
    for hosts in [[standby, primary], [primary, standby], [closed, primary]] {
        for query in ["", "&target_session_attrs=primary", "&target_session_attrs=read-write"] {
            assert_eq!(connect(&hosts, query).await, (Ok(()), false), "{hosts:?} {query}");
        }
    }
    let (refused, is_silent) = connect(&[standby], "").await;
    assert!(!is_silent, "it has answered");
    let (refused, advice) =
        (refused.unwrap_err(), "it is a standby, which accepts no writes: name the primary");
    assert!(refused.ends_with(advice), "{refused}");
    let name = format!("postgres://{}:5432/postgres cannot be used", standby.0);
    assert!(refused.contains(&name), "{refused}");
    let (refused, is_silent) = connect(&[standby, closed, silent], "").await;
    assert!(is_silent);
    let refused = refused.unwrap_err();
    let expected = [
        format!("postgres://{}:5432,127.0.0.1:1,127.0.0.1:{}/postgres", standby.0, silent.1),
        format!("{}:5432: it is a standby", standby.0),
        format!("127.0.0.1:{}: error connecting", closed.1),
        format!("127.0.0.1:{}: no answer within 5 s", silent.1),
    ];
    assert!(expected.iter().all(|words| refused.contains(words)), "{refused}");
    let (wrong, is_silent) = connect(&[closed, primary], "&dbname=none").await;
    assert!(!is_silent, "an error is an answer");
    let wrong = wrong.unwrap_err();
    assert!(wrong.contains(&format!("{}:5432: 3D000", primary.0)), "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_starts_though_the_first_host_of_its_list_is_frozen() {
    let Some(database) = empty_database() else { return };
    let (folder, name) = socket_and_name(&database);
    let (_listener, silent) = open_silent_port().await;
    let address = address(&[silent, (folder.to_str().unwrap(), 5432)], name, "");
    let store = Store::connect(address, SECRET).await.unwrap();
    let order = create(sandbox(1), "SB-START-0001", 1);
    assert_eq!(store.commit(order).await, CommitOutcome::Committed);
}

#[tokio::test]
async fn a_database_with_tables_of_another_program_is_left_alone() {
    let Some(database) = empty_database() else { return };
    let (folder, name) = socket_and_name(&database);
    let exists = async |parameters: &str| {
        let address = address(&[(folder.to_str().unwrap(), 5432)], name, parameters);
        Store::exists(address).await.map_err(|error| error.to_string())
    };
    run_sql(&database, "CREATE SCHEMA theirs; CREATE TABLE theirs.orders (id int)");
    assert_eq!(exists("").await, Ok(false), "its tables do not conflict with ours");
    // Each schema of the search path counts.
    for path in ["theirs", "theirs,public", "public,theirs"] {
        let refused = exists(&format!("&options=-c%20search_path%3D{path}")).await.unwrap_err();
        assert!(refused.contains("another program's tables"), "{path}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_missing_on_the_synchronous_standby_is_not_visible() {
    // Also if PostgreSQL hides the state of its backends.
    tokio::join!(assert_invisible(&[]), assert_invisible(&["track_activities = off"]));
}

/// Makes commits wait for the standby.
fn make_synchronous(cluster: &Cluster, database: &str) {
    cluster.run_sql(database, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    cluster.run_sql(database, "SELECT pg_reload_conf()");
    while cluster.query(database, "SELECT sync_state FROM pg_stat_replication") != "sync" {}
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_orders_are_on_the_promoted_synchronous_standby() {
    let Some(cluster) = Cluster::start(&[]) else { return };
    let standby = cluster.start_standby();
    let name = cluster.create_database();
    let mut address = address(&[(cluster.folder(), 5432), (standby.folder(), 5432)], &name, "");
    address.answer_timeout = Duration::from_secs(3);
    let store = Store::connect(address, SECRET).await.unwrap();
    make_synchronous(&cluster, &name);
    let number = |order: u32| format!("SB-STANDBY-{order:04}");
    let order = |key: u32| create(sandbox(1), &number(key), key);
    let mut acknowledged = Vec::new();
    for key in 0..20 {
        assert_eq!(store.commit(order(key)).await, CommitOutcome::Committed);
        acknowledged.push(row(&store, &number(key)).await.unwrap());
    }
    // The standby does not respond for a while, and then the primary is lost.
    standby.freeze(true);
    assert_eq!(store.commit(order(20)).await, CommitOutcome::Unknown);
    standby.freeze(false);
    cluster.control(&["stop", "-m", "immediate"]);
    standby.control(&["promote"]);
    let outcome = commit_until_known(&store, order(20)).await;
    let is_replay = matches!(outcome, CommitOutcome::IdempotencyTaken(_));
    assert!(is_replay || outcome == CommitOutcome::Committed, "{outcome:?}");
    for parcel in acknowledged {
        let number = parcel.tracking_number.as_str().to_owned();
        assert_eq!(row(&store, &number).await, Some(parcel), "{number} was acknowledged");
    }
    assert_eq!(standby.query(&name, "SELECT count(*) FROM parcels"), "21");
}

/// Checks that an order is neither acknowledged nor visible while its COMMIT waits for a stopped standby.
async fn assert_invisible(settings: &[&str]) {
    let Some(cluster) = Cluster::start(settings) else { return };
    let standby = cluster.start_standby();
    let name = cluster.create_database();
    let mut address = Address::parse(&cluster.url(&name)).unwrap();
    // Shorter than a caller waits, but long enough for a statement or a connection on a slow machine.
    address.answer_timeout = Duration::from_secs(3);
    let store = Store::connect(address, SECRET).await.unwrap();
    make_synchronous(&cluster, &name);
    standby.control(&["stop", "-m", "fast"]);
    let order = || create(sandbox(1), "SB-STANDBY-0001", 1);
    assert_eq!(store.commit(order()).await, CommitOutcome::Unknown);
    // No other write begins while that COMMIT waits, however often one is tried.
    until("it is not ready", async || !store.is_readable()).await;
    for _ in 0..8 {
        pause().await;
        assert_eq!(store.commit(order()).await, CommitOutcome::Unreachable);
    }
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    assert_eq!(cluster.query(&name, waiting), "1");
    assert_eq!(store.idempotency_record(&record(sandbox(1), 1).key).await.unwrap(), None);
    assert_eq!(cluster.query(&name, "SELECT count(*) FROM parcels"), "0");
    standby.control(&["start"]);
    let outcome = commit_until_known(&store, order()).await;
    let is_replay = matches!(outcome, CommitOutcome::IdempotencyTaken(_));
    assert!(is_replay || outcome == CommitOutcome::Committed, "{outcome:?}");
    assert_eq!(cluster.query(&name, "SELECT count(*) FROM parcels"), "1");
}
