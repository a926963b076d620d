//! The clients of the load test: connections that send one request after the other. Each order has its own idempotency
//! key.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::JoinSet};

pub(crate) const ORDER: &str = r#"{"idempotencyKey":"KEY","sender":{"fullName":"Ana Ruiz","phone":"+13055550100","address":{"line1":"8400 NW 25th St","city":"Miami","state":"FL","zipCode":"33122","country":"US"}},"receiver":{"fullName":"Luis Paredes","phone":"+593991234567","nationalId":"1714307103","idType":"cedula","address":{"line1":"Av. Amazonas N34-451","city":"Quito","province":"Pichincha","zipCode":"170515","country":"EC"}},"parcelDetails":{"weightKg":1.25,"declaredValue":45.50},"customsInfo":{"description":"Cotton shirts","hsCode":"610910"}}"#;
pub(crate) const CREATE_PATH: &str = "/api/v1/orders/create";
/// Number of connections over which parcels are created before the measurement.
const FILL_CONNECTIONS: usize = 64;
/// Number of created parcels of which one is remembered for later requests.
const SAMPLE_INTERVAL: usize = 20;

/// An address to send to, and the key to send with.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) key: Arc<str>,
}

/// The idempotency keys of stored orders, with their tracking numbers.
pub(crate) type StoredOrders = Vec<(String, String)>;

/// A kind of request to measure: its name, method, path and expected status. `KEY` and `NUMBER` stand for those of a
/// stored order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestKind(pub(crate) &'static str, &'static str, &'static str, u16);

/// An order with a random key, for which the service generates the tracking number.
pub(crate) const CREATE: RequestKind = RequestKind("creates", "POST", CREATE_PATH, 201);
const LIST_PATH: &str = "/api/v1/parcels";
/// The requests to measure. Creates come last, because they change the number of parcels that reads are measured with.
pub(crate) const REQUEST_KINDS: [RequestKind; 6] = [
    RequestKind("repeats of a key", "POST", CREATE_PATH, 200),
    RequestKind("tracking records", "GET", "/api/v1/tracking/NUMBER", 200),
    RequestKind("lists, page 1", "GET", LIST_PATH, 200),
    RequestKind("lists by status, page 1", "GET", "/api/v1/parcels?status=LABEL_GENERATED", 200),
    RequestKind("labels, PDF", "GET", "/api/v1/labels/NUMBER/download", 200),
    CREATE,
];

impl RequestKind {
    /// Returns `true` if the server answers this many connections: it refuses more than 64 waiting list requests of a
    /// tenant.
    pub(crate) fn supports_connections(self, connections: usize) -> bool {
        !self.2.starts_with(LIST_PATH) || connections <= 64
    }
}

/// Runs the same work on this many connections to the target at once.
pub(crate) async fn run_connections<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    (target, connections): (&Target, usize),
    work: impl Fn(Connection) -> F,
) -> Vec<T> {
    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        tasks.spawn(work(Connection::open(target).await));
    }
    tasks.join_all().await
}

/// Creates this many parcels and returns a sample of them.
pub(crate) async fn create_parcels(target: &Target, parcels: usize) -> StoredOrders {
    let (left, decrement) =
        (Arc::new(AtomicUsize::new(parcels)), |left: usize| left.checked_sub(1));
    let has_more =
        move || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, decrement).is_ok();
    send_repeatedly((target, FILL_CONNECTIONS.min(parcels)), CREATE, &Arc::default(), has_more)
        .await
        .1
}

/// Sends requests of this kind until `has_more` returns `false`. Returns the latencies in ms, and a sample of the
/// created parcels.
pub(crate) async fn send_repeatedly(
    (target, connections): (&Target, usize),
    kind: RequestKind,
    stored_orders: &Arc<StoredOrders>,
    has_more: impl Fn() -> bool + Clone + Send + 'static,
) -> (Vec<f64>, StoredOrders) {
    let each = run_connections((target, connections), |mut connection| {
        let (stored_orders, has_more) = (Arc::clone(stored_orders), has_more.clone());
        async move {
            let (mut latencies, mut created) = (Vec::new(), StoredOrders::new());
            while has_more() {
                let stored_orders =
                    fastrand::choice(stored_orders.iter()).filter(|_| kind != CREATE);
                let (key, number) =
                    stored_orders.cloned().unwrap_or_else(|| (random_key(), String::new()));
                let begun = Instant::now();
                let answer = connection.request(kind, &key, &number).await;
                latencies.push(millis_since(begun));
                if kind == CREATE && latencies.len() % SAMPLE_INTERVAL == 1 {
                    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
                    let number = answer["parcel"]["trackingNumber"].as_str().unwrap_or_default();
                    created.push((key, number.to_owned()));
                }
            }
            (latencies, created)
        }
    });
    let (latencies, created): (Vec<_>, Vec<_>) = each.await.into_iter().unzip();
    (latencies.concat(), created.concat())
}

pub(crate) fn millis_since(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1_000.0
}

pub(crate) fn random_key() -> String {
    (0..22).map(|_| fastrand::alphanumeric()).collect()
}

pub(crate) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    key: Arc<str>,
}

impl Connection {
    pub(crate) async fn open(target: &Target) -> Self {
        let stream = TcpStream::connect(target.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(driver);
        Self { sender, key: Arc::clone(&target.key) }
    }

    async fn request(
        &mut self,
        RequestKind(_, method, path, expected): RequestKind,
        key: &str,
        number: &str,
    ) -> Bytes {
        let body = if method == "POST" { ORDER.replace("KEY", key) } else { String::new() };
        let (status, answer) = self.send(method, &path.replace("NUMBER", number), body).await;
        assert_eq!(status, expected, "{path}");
        answer
    }

    /// Sends a request, and returns the answer's status and body.
    pub(crate) async fn send(&mut self, method: &str, path: &str, body: String) -> (u16, Bytes) {
        let head = Request::builder().method(method).uri(path).header("host", "bench");
        let head = head.header("x-api-key", &*self.key).header("content-type", "application/json");
        // prism answers with the first status in the document unless the request asks for another one.
        let request = head.header("prefer", "code=201").body(Full::new(body.into())).unwrap();
        self.sender.ready().await.unwrap();
        let answer = self.sender.send_request(request).await.unwrap();
        (answer.status().as_u16(), answer.into_body().collect().await.unwrap().to_bytes())
    }
}
