//! What is asked of a server: connections that send one request after the other.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use bytes::Bytes;
use fastrand::Rng;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming, client::conn::http1, http::request::Builder};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::JoinSet};

use crate::figures::Latencies;

const ORDER: &str = r#"{"idempotencyKey":"KEY","sender":{"fullName":"Ana Ruiz","phone":"+13055550100","address":{"line1":"8400 NW 25th St","city":"Miami","state":"FL","zipCode":"33122","country":"US"}},"receiver":{"fullName":"Luis Paredes","phone":"+593991234567","nationalId":"1714307103","idType":"cedula","address":{"line1":"Av. Amazonas N34-451","city":"Quito","province":"Pichincha","zipCode":"170515","country":"EC"}},"parcelDetails":{"weightKg":1.25,"declaredValue":45.50},"customsInfo":{"description":"Cotton shirts","hsCode":"610910"}}"#;
pub(crate) const CREATE: &str = "/api/v1/orders/create";
/// As many connections as fill a database fast.
pub(crate) const LOADERS: usize = 64;
/// How many parcels of a filled database are remembered, to be asked for.
const REMEMBERED: usize = 20_000;

/// Where requests go, and as whose.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) key: Arc<str>,
}

/// What every request of a row asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// An order under a random key; the service draws the number.
    Create,
    /// An order that is there, sent again.
    Repeat,
    /// A parcel's tracking record.
    Tracking,
    /// The first page of all parcels.
    List,
    /// The first page of those with one status.
    FilteredList,
    /// A label as PDF.
    Label,
}

impl Ask {
    /// Those that leave the database as it is.
    pub(crate) const READS: [Self; 5] =
        [Self::Repeat, Self::Tracking, Self::List, Self::FilteredList, Self::Label];

    /// Whether so many connections of one tenant are answered: beyond 64 lists that wait, the server says 503.
    pub(crate) const fn is_answered_over(self, connections: usize) -> bool {
        !matches!(self, Self::List | Self::FilteredList) || connections <= 64
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Create => "creates",
            Self::Repeat => "repeats of a key",
            Self::Tracking => "tracking records",
            Self::List => "lists, page 1",
            Self::FilteredList => "lists by status, page 1",
            Self::Label => "labels, PDF",
        }
    }
}

/// Parcels that are in the database: some of them, by key and tracking number.
#[derive(Default, Clone)]
pub(crate) struct Known {
    parcels: usize,
    sample: Vec<(String, String)>,
}

impl Known {
    /// The parcels of a database that has so many, and the API key under which they were made, as [`Known::written`].
    pub(crate) fn read(text: &str, parcels: usize) -> (String, Self) {
        let (key, sample) = text.split_once('\n').unwrap();
        let sample = sample.lines().filter_map(|line| line.split_once(' '));
        let sample = sample.map(|(order, number)| (order.to_owned(), number.to_owned())).collect();
        (key.to_owned(), Self { parcels, sample })
    }

    /// How many parcels there are.
    pub(crate) const fn len(&self) -> usize {
        self.parcels
    }

    pub(crate) fn written(&self, key: &str) -> String {
        let lines = self.sample.iter().map(|(order, number)| format!("{order} {number}\n"));
        format!("{key}\n") + &lines.collect::<String>()
    }
}

/// Creates parcels until there are as many.
pub(crate) async fn fill(target: &Target, known: &mut Known, parcels: usize, connections: usize) {
    let missing = parcels.saturating_sub(known.parcels);
    let every = (missing / REMEMBERED).max(1);
    let left = Arc::new(AtomicUsize::new(missing));
    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        let (left, target) = (Arc::clone(&left), target.clone());
        tasks.spawn(async move {
            let (mut connection, mut sample) = (Connection::open(&target).await, Vec::new());
            let less = |left: usize| left.checked_sub(1);
            while let Ok(nth) = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
                let order = random_key();
                let answer = connection.send(Ask::Create, &order, "").await;
                if nth.is_multiple_of(every) {
                    sample.push((order, number_in(&answer)));
                }
                if nth.is_multiple_of(100_000) {
                    eprintln!("{nth} parcels to go");
                }
            }
            sample
        });
    }
    known.sample.extend(tasks.join_all().await.into_iter().flatten());
    known.parcels += missing;
}

/// Asks for one of the known parcels.
pub(crate) async fn ask_once(target: &Target, known: &Known) {
    let (order, number) = &known.sample[0];
    Connection::open(target).await.send(Ask::Tracking, order, number).await;
}

/// Asks the same over so many connections until a moment; how long each answer took.
pub(crate) async fn load(
    target: &Target,
    ask: Ask,
    known: &Known,
    connections: usize,
    until: Instant,
) -> Latencies {
    let known = Arc::new(known.clone());
    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        let (known, target) = (Arc::clone(&known), target.clone());
        tasks.spawn(async move {
            let (mut connection, mut rng) = (Connection::open(&target).await, Rng::new());
            let mut latencies = Latencies::default();
            while Instant::now() < until {
                let (order, number) = match ask {
                    Ask::Create => (random_key(), String::new()),
                    _ => known.sample[rng.usize(..known.sample.len())].clone(),
                };
                let begun = Instant::now();
                connection.send(ask, &order, &number).await;
                latencies.add(begun.elapsed());
            }
            latencies
        });
    }
    tasks.join_all().await.into_iter().sum()
}

/// An order under a key of its own.
pub(crate) fn order() -> Bytes {
    ORDER.replace("KEY", &random_key()).into()
}

fn random_key() -> String {
    (0..22).map(|_| fastrand::alphanumeric()).collect()
}

fn number_in(answer: &[u8]) -> String {
    let answer: serde_json::Value = serde_json::from_slice(answer).unwrap();
    answer["parcel"]["trackingNumber"].as_str().unwrap().to_owned()
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

    pub(crate) async fn get(&mut self, path: &str) -> Bytes {
        self.request(Request::get(path), Bytes::new(), 200).await
    }

    /// Sends a request, whatever the answer; returns its status.
    pub(crate) async fn status(&mut self, head: Builder, body: Bytes) -> u16 {
        let answer = self.send_request(head, body).await;
        let status = answer.status().as_u16();
        answer.into_body().collect().await.unwrap();
        status
    }

    async fn post(&mut self, order: &str, status: u16) -> Bytes {
        self.request(Request::post(CREATE), ORDER.replace("KEY", order).into(), status).await
    }

    async fn send(&mut self, ask: Ask, order: &str, number: &str) -> Bytes {
        match ask {
            Ask::Create => self.post(order, 201).await,
            Ask::Repeat => self.post(order, 200).await,
            Ask::Tracking => self.get(&format!("/api/v1/tracking/{number}")).await,
            Ask::List => self.get("/api/v1/parcels").await,
            Ask::FilteredList => self.get("/api/v1/parcels?status=LABEL_GENERATED").await,
            Ask::Label => self.get(&format!("/api/v1/labels/{number}/download")).await,
        }
    }

    async fn request(&mut self, head: Builder, body: Bytes, status: u16) -> Bytes {
        // prism answers with the document's first status unless it is asked for another.
        let answer = self.send_request(head.header("prefer", format!("code={status}")), body).await;
        assert_eq!(answer.status(), status);
        answer.into_body().collect().await.unwrap().to_bytes()
    }

    async fn send_request(&mut self, head: Builder, body: Bytes) -> Response<Incoming> {
        let head = head.header("host", "bench").header("x-api-key", &*self.key);
        let head = head.header("content-type", "application/json");
        self.sender.ready().await.unwrap();
        self.sender.send_request(head.body(Full::new(body)).unwrap()).await.unwrap()
    }
}
