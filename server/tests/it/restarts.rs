//! Two servers on one PostgreSQL under load, while an operator restarts one or both, replaces their version, or
//! restarts PostgreSQL; and while PostgreSQL freezes or its standby takes over.

use std::{
    collections::BTreeMap,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use parcelo::{ApiKey, Client, Operation, OrderRequest, Retry};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Barrier, watch},
    task::{JoinSet, block_in_place},
    time::timeout,
};

use crate::{
    api::{Api, HttpResponse, order},
    cluster::Cluster,
    running::{BINARY, RunningServer, wait_for},
    waiting::{LONG, until, wait_for_value},
};

const CLIENTS: usize = 8;

/// A database in a cluster that syncs to disk, and the files of its servers.
struct Database {
    cluster: Cluster,
    name: String,
    /// The host part of the database URL.
    hosts: String,
    folder: TempDir,
    started: AtomicU32,
}

impl Database {
    /// Returns `None` if PostgreSQL is not installed.
    fn new() -> Option<Self> {
        let cluster = Cluster::start(&[])?;
        let name = cluster.create_database();
        let folder = tempfile::tempdir().unwrap();
        let hosts = cluster.folder().to_owned();
        Some(Self { cluster, name, hosts, folder, started: AtomicU32::new(0) })
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let url = format!("postgres://parcelo@/{}?host={}", self.name, self.hosts);
        let mut command = Command::new(program);
        command.args(arguments).args(["--database", &url]);
        command.env_clear().env("PARCELO_LOG", "warn").stdin(Stdio::null());
        command
    }

    fn serve(&self) -> RunningServer {
        self.serve_with(BINARY)
    }

    fn serve_with(&self, program: &str) -> RunningServer {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let ready_file = self.folder.path().join(format!("ready-{number}.json"));
        let arguments = ["serve", "--environments", "sandbox", "--drain", "1"];
        let mut command = self.command(program, &arguments);
        command.args(["--sandbox-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        command.args(["--sandbox-rate-limit", "1000000", "--ready-file"]).arg(&ready_file);
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        block_in_place(|| wait_for(&ready_file, child))
    }

    fn key(&self) -> ApiKey {
        self.key_with(BINARY).1
    }

    /// Creates a key with the command of this program, and returns it with its id.
    fn key_with(&self, program: &str) -> (String, ApiKey) {
        let arguments = ["keys", "create", "--environment", "sandbox", "--name", "Test"];
        let mut command = self.command(program, &arguments);
        let made = command.args(["--countries", "*", "--json"]).output().unwrap();
        let made: Value = serde_json::from_slice(&made.stdout).unwrap();
        let id = made["keyId"].as_str().unwrap().to_owned();
        (id, ApiKey::parse(made["key"].as_str().unwrap()).unwrap())
    }

    fn query(&self, sql: &str) -> String {
        self.cluster.query(&self.name, sql)
    }

    /// Checks that each acknowledged order exists once, that no others exist, and that the counts agree.
    fn assert_exactly_once(&self, orders: &BTreeMap<String, String>) {
        let mut numbers: Vec<_> = orders.values().map(String::as_str).collect();
        numbers.sort_unstable();
        let all = "SELECT string_agg(number, ' ' ORDER BY number COLLATE \"C\") FROM parcels";
        assert_eq!(self.query(all), numbers.join(" "));
        let counted = self.query("SELECT sum(total) FROM all_counts");
        assert_eq!(counted, orders.len().to_string());
        assert_eq!(self.query("SELECT count(*) FROM idempotency"), orders.len().to_string());
    }
}

/// A load balancer that distributes connections over servers. If a connection is refused it tries the next server, as
/// nginx does.
struct LoadBalancer {
    url: String,
    servers: Arc<Mutex<Vec<String>>>,
    _serving: JoinSet<()>,
}

fn address(server: &RunningServer) -> String {
    server.sandbox().trim_start_matches("http://").to_owned()
}

impl LoadBalancer {
    async fn start(servers: &[RunningServer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let servers = Arc::new(Mutex::new(servers.iter().map(address).collect::<Vec<_>>()));
        let (mut serving, behind) = (JoinSet::new(), Arc::clone(&servers));
        serving.spawn(async move {
            let mut links = JoinSet::new();
            for turn in 0_usize.. {
                let (mut client, _) = listener.accept().await.unwrap();
                let mut behind = behind.lock().unwrap().clone();
                let first = turn % behind.len();
                behind.rotate_left(first);
                links.spawn(async move {
                    for server in behind {
                        if let Ok(mut server) = TcpStream::connect(server).await {
                            // Either end may close at any moment.
                            let _ended =
                                tokio::io::copy_bidirectional(&mut client, &mut server).await;
                            return;
                        }
                    }
                });
            }
        });
        Self { url, servers, _serving: serving }
    }

    fn replace(&self, index: usize, server: &RunningServer) {
        self.servers.lock().unwrap()[index] = address(server);
    }
}

/// Clients that create one order after another, and send some of them again.
struct Load {
    is_over: Arc<AtomicBool>,
    created: watch::Sender<usize>,
    clients: JoinSet<BTreeMap<String, String>>,
}

impl Load {
    /// Starts SDK clients; no call of theirs may fail.
    fn start(url: &str, key: &ApiKey, retry: &Retry) -> Self {
        let mut load = Self {
            is_over: Arc::default(),
            created: watch::Sender::new(0),
            clients: JoinSet::new(),
        };
        for number in 0..CLIENTS {
            let client = Client::builder(key.clone()).base_url(url).unwrap();
            let client = client.retry(retry.clone()).build().unwrap();
            let (is_over, created) = (Arc::clone(&load.is_over), load.created.clone());
            load.clients.spawn(async move {
                let mut orders = BTreeMap::new();
                for count in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let key = format!("order-{number}-{count:06}");
                    let order: OrderRequest = serde_json::from_value(order(&key)).unwrap();
                    for _ in 0..=count % 2 {
                        let reply = client.orders().create(&order).await;
                        let number = reply.unwrap().parcel.tracking_number.to_string();
                        let known = orders.entry(key.clone()).or_insert_with(|| number.clone());
                        assert_eq!(*known, number, "{key}: one key, one parcel");
                    }
                    created.send_modify(|all| *all += 1);
                }
                orders
            });
        }
        load
    }

    /// Waits until this many more orders have been accepted.
    async fn wait_for_orders(&self, orders: usize) {
        let mut created = self.created.subscribe();
        let target = *created.borrow() + orders;
        let reached = created.wait_for(|all| *all >= target);
        timeout(LONG, reached).await.expect("the clients keep creating orders").unwrap();
    }

    async fn end(self) -> BTreeMap<String, String> {
        self.is_over.store(true, Ordering::Relaxed);
        self.clients.join_all().await.into_iter().flatten().collect()
    }
}

/// Waits until `/readyz` of each server has this status. Once PostgreSQL accepts connections that takes less than a
/// second, by the pauses in `writer_connection.rs`; on a loaded machine it may take longer, which is no fault of the
/// server.
async fn wait_for_status(servers: &[RunningServer], status: u16) {
    for server in servers {
        let api = Api::new(server.sandbox());
        until("/readyz has this status", async || api.get("/readyz").await.status == status).await;
    }
}

/// Returns the program of the previous version, from `PARCELO_PREVIOUS` (`just upgrade FILE`); without it, this
/// version.
fn previous_version() -> String {
    std::env::var("PARCELO_PREVIOUS").unwrap_or_else(|_| BINARY.to_owned())
}

/// Creates a key with one program's command and revokes it with another's. Each server must notice both.
async fn revoke_with(program: &str, database: &Database, servers: &[RunningServer]) {
    let (id, key) = database.key_with(program);
    let health = Operation::Health.path();
    for server in servers {
        assert_eq!(server.api(&key).get(health).await.status, 200);
    }
    let mut revoke = database.command(program, &["keys", "revoke", &id]);
    assert!(revoke.stdout(Stdio::null()).status().unwrap().success());
    for server in servers {
        let api = server.api(&key);
        until("the key is revoked", async || api.get(health).await.status == 401).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "long: `.ci/prove postgres` runs it"]
async fn no_call_fails_during_a_rolling_upgrade_under_load() {
    let Some(database) = Database::new() else { return };
    let previous_version = previous_version();
    let mut servers =
        [database.serve_with(&previous_version), database.serve_with(&previous_version)];
    let key = database.key_with(&previous_version).1;
    let balancer = LoadBalancer::start(&servers).await;
    let load = Load::start(&balancer.url, &key, &Retry::standard());
    for index in [0, 1] {
        load.wait_for_orders(50).await;
        servers[index].signal("-TERM");
        assert_eq!(block_in_place(|| servers[index].wait()), Some(0));
        load.wait_for_orders(50).await;
        servers[index] = database.serve();
        balancer.replace(index, &servers[index]);
        load.wait_for_orders(50).await;
        if index == 0 {
            // A server of the previous version crashes while a new one runs beside it.
            servers[1].kill();
            load.wait_for_orders(50).await;
            servers[1] = database.serve_with(&previous_version);
            balancer.replace(1, &servers[1]);
            revoke_with(&previous_version, &database, &servers).await;
        }
    }
    load.wait_for_orders(50).await;
    database.assert_exactly_once(&load.end().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "long: `.ci/prove postgres` runs it"]
async fn a_restart_of_postgresql_loses_nothing_and_says_when_to_retry() {
    let Some(database) = Database::new() else { return };
    let servers = [database.serve(), database.serve()];
    let key = database.key();
    let balancer = LoadBalancer::start(&servers).await;
    let load = Load::start(&balancer.url, &key, &Retry::standard().attempts(60).unbudgeted());
    for mode in ["fast", "immediate"] {
        load.wait_for_orders(50).await;
        block_in_place(|| database.cluster.control(&["restart", "-m", mode]));
        wait_for_status(&servers, 200).await;
        load.wait_for_orders(50).await;
        block_in_place(|| database.cluster.control(&["stop", "-m", mode]));
        wait_for_status(&servers, 503).await;
        for server in &servers {
            let api = server.api(&key);
            // Requests without a valid key have a lower limit for each address, but now the server cannot know whether
            // this key is valid.
            for _ in 0..60 {
                let responses =
                    [api.create(&order("meanwhile-01")).await, api.track("SB-NORMAL-0001").await];
                for response in responses {
                    assert_eq!(response.refusal(), (503, "SERVICE_UNAVAILABLE"));
                    assert_eq!(response.header("retry-after"), "1");
                }
            }
        }
        block_in_place(|| database.cluster.control(&["start"]));
        wait_for_status(&servers, 200).await;
        load.wait_for_orders(50).await;
    }
    database.assert_exactly_once(&load.end().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "long: `.ci/prove postgres` runs it"]
async fn servers_recover_when_a_frozen_postgresql_continues() {
    let Some(database) = Database::new() else { return };
    let servers = [database.serve(), database.serve()];
    let key = database.key();
    wait_for_status(&servers, 200).await;
    database.cluster.freeze(true);
    wait_for_status(&servers, 503).await;
    for server in &servers {
        let api = Api::new(server.sandbox());
        assert_eq!(api.get("/healthz").await.status, 200, "the process is not to be restarted");
        let reason = api.get("/readyz").await.text();
        assert!(reason.contains("PostgreSQL has not answered"), "{reason}");
        let unknown = server.api(&key).create(&order("frozen-01")).await;
        assert!(matches!(unknown.status, 409 | 503), "{}", unknown.text());
    }
    database.cluster.freeze(false);
    wait_for_status(&servers, 200).await;
    let mut numbers = Vec::new();
    for server in &servers {
        let api = server.api(&key);
        // A connection that was given up while it was frozen is replaced by the next request.
        let repeated = wait_for_value("the order is answered again", async || {
            let repeated = api.create(&order("frozen-01")).await;
            (!matches!(repeated.status, 409 | 503)).then_some(repeated)
        });
        let repeated = repeated.await;
        numbers.push(repeated.json()["parcel"]["trackingNumber"].as_str().unwrap().to_owned());
    }
    assert_eq!(numbers[0], numbers[1]);
    database.assert_exactly_once(&BTreeMap::from([("frozen-01".to_owned(), numbers.remove(0))]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "long: `.ci/prove postgres` runs it"]
async fn servers_follow_a_failover_and_lose_nothing() {
    let Some(mut database) = Database::new() else { return };
    let standby = database.cluster.start_standby();
    database.query("ALTER SYSTEM SET synchronous_standby_names = '*'");
    database.query("SELECT pg_reload_conf()");
    until("the standby is synchronous", async || {
        database.query("SELECT sync_state FROM pg_stat_replication") == "sync"
    })
    .await;
    // The address list includes the standby, which is skipped as long as it is one.
    database.hosts = format!("{},{}", standby.folder(), database.cluster.folder());
    let servers = [database.serve(), database.serve()];
    let key = database.key();
    let balancer = LoadBalancer::start(&servers).await;
    let load = Load::start(&balancer.url, &key, &Retry::standard().attempts(60).unbudgeted());
    load.wait_for_orders(100).await;
    block_in_place(|| database.cluster.control(&["stop", "-m", "immediate"]));
    wait_for_status(&servers, 503).await;
    block_in_place(|| standby.control(&["promote"]));
    wait_for_status(&servers, 200).await;
    load.wait_for_orders(100).await;
    let orders = load.end().await;
    database.cluster = standby;
    database.assert_exactly_once(&orders);
}

/// Sends the same request 64 times at once, distributed over both servers. Returns the responses.
async fn post_concurrently(apis: &[Api; 2], path: &str, body: &Value) -> Vec<HttpResponse> {
    let (barrier, mut tasks) = (Arc::new(Barrier::new(64)), JoinSet::new());
    for index in 0..64 {
        let (api, barrier) = (apis[index % 2].clone(), Arc::clone(&barrier));
        let (path, body) = (path.to_owned(), body.clone());
        tasks.spawn(async move {
            barrier.wait().await;
            api.post(&path, &body).await
        });
    }
    tasks.join_all().await
}

/// Returns the part of a response that is the same in every repetition.
fn data(response: &HttpResponse) -> Value {
    let mut body = response.json();
    assert!(matches!(response.status, 200 | 201), "{body}");
    if let Some(members) = body.as_object_mut() {
        members.remove("meta");
    }
    body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_same_request_on_both_servers_at_once_is_done_once() {
    let Some(database) = Database::new() else { return };
    let servers = [database.serve(), database.serve()];
    let key = database.key();
    let apis = [servers[0].api(&key), servers[1].api(&key)];
    for round in 0..10 {
        let created = Operation::CreateOrder.path();
        let created = post_concurrently(&apis, created, &order(&format!("order-{round:04}"))).await;
        assert_eq!(created.iter().filter(|response| response.status == 201).count(), 1);
        assert_eq!(created.iter().filter(|response| response.status == 200).count(), 63);
        let number = created[0].json()["parcel"]["trackingNumber"].clone();
        let number = number.as_str().unwrap();
        let serial = 1_000_000 + round;
        let awb = format!("176-{serial}{}", serial % 7);
        let other = apis[0].create_parcel(&order(&format!("void-me-{round:04}"))).await;
        let reprint = Operation::ReprintLabel.path_of(number);
        let all = [
            (reprint.as_str(), json!({ "idempotencyKey": format!("reprint-{round:04}") })),
            (
                Operation::SubmitManifest.path(),
                json!({ "awbNumber": awb, "trackingNumbers": [number] }),
            ),
            (
                Operation::VoidOrders.path(),
                json!({ "idempotencyKey": format!("void-{round:04}"), "trackingNumbers": [other] }),
            ),
        ];
        for (path, body) in all {
            let responses = post_concurrently(&apis, path, &body).await;
            let first = data(&responses[0]);
            assert!(responses.iter().all(|response| data(response) == first), "{path}");
        }
    }
    for (what, sql, expected) in [
        ("parcels", "SELECT count(*) FROM parcels", "20"),
        ("manifests", "SELECT count(*) FROM manifests", "10"),
        ("reprints and manifests", "SELECT count(*) FROM parcels WHERE label_version > 1", "10"),
        ("histories", "SELECT count(*) FROM events", "20"),
    ] {
        assert_eq!(database.query(sql), expected, "{what}");
    }
}
