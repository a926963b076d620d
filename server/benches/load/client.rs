//! Connections that send requests one at a time. Each order has its own idempotency key.

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
pub(crate) const ORDERS: &str = "/api/v1/orders/create";
/// Number of connections that fill a database.
const LOADERS: usize = 64;
/// Interval between created parcels that are remembered for later requests.
const REMEMBERED: usize = 20;

/// An address to send to, and the key to send with.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) key: Arc<str>,
}

/// The idempotency keys of stored orders, with their tracking numbers.
pub(crate) type Known = Vec<(String, String)>;

/// A kind of request that a row measures: its name, method, path and expected status.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ask(pub(crate) &'static str, &'static str, &'static str, u16);

/// An order with a random key, for which the service generates the tracking number.
pub(crate) const CREATE: Ask = Ask("creates", "POST", ORDERS, 201);
const LIST: &str = "/api/v1/parcels";
/// The requests to measure. Creates come last, because they change the number of parcels that reads are measured with.
pub(crate) const ASKS: [Ask; 6] = [
    Ask("repeats of a key", "POST", ORDERS, 200),
    Ask("tracking records", "GET", "/api/v1/tracking/NUMBER", 200),
    Ask("lists, page 1", "GET", LIST, 200),
    Ask("lists by status, page 1", "GET", "/api/v1/parcels?status=LABEL_GENERATED", 200),
    Ask("labels, PDF", "GET", "/api/v1/labels/NUMBER/download", 200),
    CREATE,
];

impl Ask {
    /// Returns `true` if the server answers this many connections: it refuses more than 64 waiting lists of one tenant.
    pub(crate) fn is_answered_over(self, connections: usize) -> bool {
        !self.2.starts_with(LIST) || connections <= 64
    }
}

/// Runs the same work on this many connections at once.
pub(crate) async fn over<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    (target, connections): (&Target, usize),
    work: impl Fn(Connection) -> F,
) -> Vec<T> {
    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        tasks.spawn(work(Connection::open(target).await));
    }
    tasks.join_all().await
}

/// Creates this many parcels and returns some of them.
pub(crate) async fn fill(target: &Target, parcels: usize) -> Known {
    let (left, less) = (Arc::new(AtomicUsize::new(parcels)), |left: usize| left.checked_sub(1));
    let is_more = move || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
    load((target, LOADERS.min(parcels)), CREATE, &Arc::default(), is_more).await.1
}

/// Sends a request again and again while `is_more`. Returns the latencies in ms, and some of the created parcels.
pub(crate) async fn load(
    at: (&Target, usize),
    ask: Ask,
    known: &Arc<Known>,
    is_more: impl Fn() -> bool + Clone + Send + 'static,
) -> (Vec<f64>, Known) {
    let each = over(at, |mut connection| {
        let (known, is_more) = (Arc::clone(known), is_more.clone());
        async move {
            let (mut took, mut made) = (Vec::new(), Known::new());
            while is_more() {
                let known = fastrand::choice(known.iter()).filter(|_| ask != CREATE);
                let (key, number) = known.cloned().unwrap_or_else(|| (random_key(), String::new()));
                let begun = Instant::now();
                let answer = connection.ask(ask, &key, &number).await;
                took.push(millis_since(begun));
                if ask == CREATE && took.len() % REMEMBERED == 1 {
                    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
                    let number = answer["parcel"]["trackingNumber"].as_str().unwrap_or_default();
                    made.push((key, number.to_owned()));
                }
            }
            (took, made)
        }
    });
    let (took, made): (Vec<_>, Vec<_>) = each.await.into_iter().unzip();
    (took.concat(), made.concat())
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

    async fn ask(&mut self, Ask(_, method, path, expected): Ask, key: &str, number: &str) -> Bytes {
        let body = if method == "POST" { ORDER.replace("KEY", key) } else { String::new() };
        let (status, answer) = self.send(method, &path.replace("NUMBER", number), body).await;
        assert_eq!(status, expected, "{path}");
        answer
    }

    /// Sends a request, and returns the answer's status and body.
    pub(crate) async fn send(&mut self, method: &str, path: &str, body: String) -> (u16, Bytes) {
        let head = Request::builder().method(method).uri(path).header("host", "bench");
        let head = head.header("x-api-key", &*self.key).header("content-type", "application/json");
        // prism answers with the first status in the document unless the request asks for another.
        let request = head.header("prefer", "code=201").body(Full::new(body.into())).unwrap();
        self.sender.ready().await.unwrap();
        let answer = self.sender.send_request(request).await.unwrap();
        (answer.status().as_u16(), answer.into_body().collect().await.unwrap().to_bytes())
    }
}
