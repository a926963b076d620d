//! The server whose costs are counted, and its client. It runs on one thread, with a frozen clock and seeded ids, so
//! that every run does exactly the same.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode, header::CONTENT_TYPE},
    routing::post,
};
use bytes::Bytes;
use fastrand::Rng;
use futures_util::future::join_all;
use http_body_util::BodyExt as _;
use parcelo::Environment;
use parcelo_server::internals::{
    Actor, AllowedHosts, Api, EndpointRequest, Ids, JsonLines, Limits, Listener,
    MAX_IN_FLIGHT_PER_ENDPOINT, ManualClock, Millis, NewKeyRequest, Secrets, Service, Settings,
    Stop, Store, Tenant, WebhookAllowance, WebhookDispatcher, WebhookEventKinds, router,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    runtime::Runtime,
};
use tower::ServiceExt as _;

const ORDER: &str = r#"{"idempotencyKey":"KEY","sender":{"fullName":"Ana Ruiz","phone":"+13055550100","address":{"line1":"8400 NW 25th St","city":"Miami","state":"FL","zipCode":"33122","country":"US"}},"receiver":{"fullName":"Luis Paredes","phone":"+593991234567","nationalId":"1714307103","idType":"cedula","address":{"line1":"Av. Amazonas N34-451","city":"Quito","province":"Pichincha","zipCode":"170515","country":"EC"}},"parcelDetails":{"weightKg":1.25,"declaredValue":45.50},"customsInfo":{"description":"Cotton shirts","hsCode":"610910"}}"#;
const CREATE_PATH: &str = "/api/v1/orders/create";
const SECRET: [u8; 32] = [1; 32];
/// Creation time of the first parcel, in milliseconds since 1970; each later parcel is a millisecond younger.
const FIRST_PARCEL_TIME: i64 = 1_790_000_000_000;
/// Time at which the costs are counted; the parcels' idempotency keys have not expired by then.
const MEASUREMENT_TIME: i64 = FIRST_PARCEL_TIME + 20 * 3_600_000;
/// Number of orders in each commit while the database is filled.
const ORDERS_PER_FILL_COMMIT: usize = 250;
/// Number of parcels whose keys and tracking numbers the client knows.
const SAMPLE_SIZE: usize = 1_000;

/// A server on a prepared database, and a connection to it.
pub(crate) struct MeasuredServer {
    runtime: Runtime,
    service: Arc<Service>,
    clock: Arc<ManualClock>,
    tenant: Tenant,
    routes: Router,
    key: String,
    rng: Rng,
    connection: Connection,
    /// Idempotency keys and tracking numbers of some stored orders.
    sample: Vec<(String, String)>,
}

/// Creates a database with this many parcels, and a file beside it with a sample of their keys and numbers.
pub(crate) fn prepare_database(database: &Path, parcels: usize) {
    let mut server = MeasuredServer::from_store(Store::open(database, SECRET).unwrap(), 0, None);
    let every = (parcels / SAMPLE_SIZE).max(1);
    let mut sample = format!("{}\n", server.key);
    for first in (0..parcels).step_by(ORDERS_PER_FILL_COMMIT) {
        server.clock.set(Millis(FIRST_PARCEL_TIME + i64::try_from(first).unwrap()));
        let orders = server.create_in_one_commit(ORDERS_PER_FILL_COMMIT.min(parcels - first));
        for (key, number) in orders.iter().skip(first % every).step_by(every) {
            writeln!(sample, "{key} {number}").unwrap();
        }
    }
    fs::write(sample_file(database), sample).unwrap();
    server.finish();
}

fn sample_file(database: &Path) -> PathBuf {
    database.with_extension("known")
}

/// Copies a prepared database for one run that writes to it.
pub(crate) fn copy_database(database: &Path) -> (PathBuf, TempDir) {
    let folder = tempfile::tempdir_in(database.parent().unwrap()).unwrap();
    let copy = folder.path().join(database.file_name().unwrap());
    fs::copy(database, &copy).unwrap();
    fs::copy(sample_file(database), sample_file(&copy)).unwrap();
    (copy, folder)
}

impl MeasuredServer {
    /// Starts the server as shipped, on a prepared database.
    pub(crate) fn start(database: &Path) -> Self {
        Self::from_store(Store::open(database, SECRET).unwrap(), 1, Some(database))
    }

    /// Starts the server over a store in memory with the contents of a prepared database.
    pub(crate) fn start_in_memory(database: &Path) -> Self {
        let file = Store::open(database, SECRET).unwrap();
        Self::from_store(file.copy().unwrap(), 1, Some(database))
    }

    fn from_store(store: Store, seed: u64, prepared: Option<&Path>) -> Self {
        // Log lines are formatted as JSON, as in production, and then discarded.
        let _ =
            tracing_subscriber::fmt().event_format(JsonLines).with_writer(std::io::sink).try_init();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (clock, ids) =
            (Arc::new(ManualClock::at(Millis(MEASUREMENT_TIME))), Arc::new(Ids::seeded(seed)));
        let service = Arc::new(Service::new(store, Arc::clone(&clock) as _, ids, settings()));
        let ready = Arc::new(AtomicBool::new(true));
        let api = Api { service: Arc::clone(&service), environment: Environment::Sandbox, ready };
        let routes = router(api);
        let (key, sample) = match prepared {
            Some(database) => read_sample(database),
            None => (runtime.block_on(issue_key(&service)), Vec::new()),
        };
        let (tenant, connection) = runtime.block_on(async {
            let caller = service.authenticate(Environment::Sandbox, Some(&key)).await.unwrap();
            let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = socket.local_addr().unwrap();
            // The listener's task ends with the runtime.
            drop(Listener::start(socket, routes.clone(), Stop::default()));
            let stream = TcpStream::connect(address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            (caller.tenant(), Connection { stream, answer: Vec::new() })
        });
        let rng = Rng::with_seed(seed);
        Self { runtime, service, clock, tenant, routes, key, rng, connection, sample }
    }

    pub(crate) fn create(&mut self) {
        let order = self.new_order();
        self.post(&order.1, "201");
    }

    pub(crate) fn enable_mails(&self) {
        self.runtime.block_on(self.service.enable_mails(Millis(0))).unwrap();
    }

    pub(crate) fn create_with_emails(&mut self) {
        let (_, order) = self.new_order();
        let order = order
            .replace(r#""Ana Ruiz","#, r#""Ana Ruiz","email":"ana@sender.example","#)
            .replace(r#""Luis Paredes","#, r#""Luis Paredes","email":"luis@receiver.example","#);
        self.post(&order, "201");
    }

    pub(crate) fn repeat_order(&mut self, nth: usize) {
        let order = ORDER.replace("KEY", &self.sample[nth % self.sample.len()].0);
        self.post(&order, "200");
    }

    pub(crate) fn get(&mut self, path: &str) {
        let head = format!(
            "GET /api/v1/{path} HTTP/1.1\r\nhost: costs\r\nx-api-key: {}\r\n\r\n",
            self.key
        );
        self.runtime.block_on(self.connection.send(&head, "200"));
    }

    /// Returns the tracking number of one of the sampled parcels.
    pub(crate) fn tracking_number(&self, nth: usize) -> &str {
        &self.sample[nth % self.sample.len()].1
    }

    /// Creates this many orders in one commit.
    pub(crate) fn create_group(&mut self, orders: usize) {
        let before = self.service.store().stats();
        self.create_in_one_commit(orders);
        let after = self.service.store().stats();
        let counted = (after.commits - before.commits, after.orders - before.orders);
        // Pausing the writer counts as a commit too.
        assert_eq!(counted, (2, orders as u64), "a group was divided");
    }

    pub(crate) fn create_without_socket(&mut self) {
        let (_, order) = self.new_order();
        let answer = self.runtime.block_on(create(self.routes.clone(), &self.key, order));
        std::hint::black_box(answer);
    }

    /// Creates this many orders one after the other and delivers their events to a receiver.
    pub(crate) fn create_and_deliver(&mut self, orders: usize) {
        let received = Arc::new(AtomicUsize::new(0));
        let dispatcher =
            WebhookDispatcher::new(Arc::clone(&self.service), MAX_IN_FLIGHT_PER_ENDPOINT);
        self.runtime.block_on(async {
            let url = start_receiver(Arc::clone(&received)).await;
            // Each order has one event, for its label.
            let kinds = WebhookEventKinds::default();
            let request = EndpointRequest {
                tenant: self.tenant,
                url,
                kinds,
                allowed_hosts: AllowedHosts::PublicAndLoopback,
            };
            self.service.endpoints(Actor::Server).set(request, self.service.now()).await.unwrap();
        });
        for _ in 0..orders {
            self.create();
        }
        self.runtime.block_on(dispatcher.deliver_due()).unwrap();
        assert_eq!(received.load(Ordering::Relaxed), orders, "webhooks are missing");
    }

    pub(crate) fn finish(self) {
        self.runtime.block_on(self.service.store().clone().close());
    }

    /// Returns an idempotency key and an order for it.
    fn new_order(&mut self) -> (String, String) {
        let key: String = (0..22).map(|_| self.rng.alphanumeric()).collect();
        let order = ORDER.replace("KEY", &key);
        (key, order)
    }

    fn post(&mut self, order: &str, status: &str) {
        let head = format!(
            "POST {CREATE_PATH} HTTP/1.1\r\nhost: costs\r\nx-api-key: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{order}",
            self.key,
            order.len()
        );
        self.runtime.block_on(self.connection.send(&head, status));
    }

    /// Creates orders while the writer is paused, so that it commits them as one group. Returns their keys and numbers.
    fn create_in_one_commit(&mut self, orders: usize) -> Vec<(String, String)> {
        let orders: Vec<_> = (0..orders).map(|_| self.new_order()).collect();
        self.runtime.block_on(async {
            let pause = self.service.store().pause_writes().await;
            let creates = orders
                .iter()
                .map(|(_, order)| create(self.routes.clone(), &self.key, order.clone()));
            let mut creates = std::pin::pin!(join_all(creates));
            // After one poll of each request, all of them are in the writer's queue.
            for _ in 0..orders.len() {
                let _ = futures_util::future::select(
                    &mut creates,
                    std::pin::pin!(tokio::task::yield_now()),
                )
                .await;
            }
            drop(pause);
            let numbers = creates.await;
            orders.iter().map(|(key, _)| key.clone()).zip(numbers).collect()
        })
    }
}

/// Reads the API key that created the parcels, and the sample of their keys and numbers.
fn read_sample(database: &Path) -> (String, Vec<(String, String)>) {
    let text = fs::read_to_string(sample_file(database)).unwrap();
    let (key, sample) = text.split_once('\n').unwrap();
    let pairs = sample.lines().filter_map(|line| line.split_once(' '));
    (key.to_owned(), pairs.map(|(key, number)| (key.to_owned(), number.to_owned())).collect())
}

async fn issue_key(service: &Service) -> String {
    let request = NewKeyRequest::unrestricted("default", Environment::Sandbox, "Counted");
    let (key, _) =
        service.issuer(Actor::Server).issue_api_key(request, service.now()).await.unwrap();
    key.secret().to_owned()
}

/// Creates an order without a socket and returns its tracking number.
async fn create(routes: Router, key: &str, order: String) -> String {
    const FIELD: &str = r#""trackingNumber":""#;
    let request = Request::post(CREATE_PATH).header("x-api-key", key);
    let request = request.header(CONTENT_TYPE, "application/json").body(Body::from(order)).unwrap();
    let answer = routes.oneshot(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);
    let body: Bytes = answer.into_body().collect().await.unwrap().to_bytes();
    let (_, number) = std::str::from_utf8(&body).unwrap().split_once(FIELD).unwrap();
    number.split('"').next().unwrap().to_owned()
}

/// Starts a webhook receiver on this machine and returns its URL.
async fn start_receiver(received: Arc<AtomicUsize>) -> String {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", socket.local_addr().unwrap());
    let receipt = async move || {
        received.fetch_add(1, Ordering::Relaxed);
        StatusCode::NO_CONTENT
    };
    drop(Listener::start(socket, Router::new().route("/", post(receipt)), Stop::default()));
    url
}

/// A bare HTTP connection: a client library would cost as much as answering a tracking request.
struct Connection {
    stream: TcpStream,
    answer: Vec<u8>,
}

impl Connection {
    async fn send(&mut self, request: &str, status: &str) {
        const LENGTH: &str = "content-length: ";
        self.stream.write_all(request.as_bytes()).await.unwrap();
        self.answer.clear();
        let end = loop {
            assert!(
                self.stream.read_buf(&mut self.answer).await.unwrap() > 0,
                "the server went away"
            );
            if let Some(head) = self.answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break head;
            }
        };
        let head = std::str::from_utf8(&self.answer[..end]).unwrap();
        assert_eq!(&head[9..12], status, "{head}");
        let (_, length) = head.split_once(LENGTH).unwrap();
        let length: usize = length.lines().next().unwrap().parse().unwrap();
        while self.answer.len() < end + 4 + length {
            assert!(
                self.stream.read_buf(&mut self.answer).await.unwrap() > 0,
                "the server went away"
            );
        }
    }
}

fn settings() -> Settings {
    let limits = Limits { enforced: false, ..Limits::default() };
    let webhooks = WebhookAllowance { sandbox_loopback: true, ..WebhookAllowance::default() };
    Settings { limits, webhooks, ..Settings::new("http://127.0.0.1", Secrets::derive(&SECRET)) }
}
