//! Clients that work on the same orders at once, and write down what they asked and heard.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use fastrand::Rng;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use crate::{
    linearizability::Record,
    model::{Answer, Call, Status},
};

/// How many clients work on one order.
const CLIENTS: usize = 3;
/// How many calls each of them makes.
const CALLS: usize = 4;

/// What all clients share.
pub(crate) struct Clients {
    http: Client,
    addresses: Vec<String>,
    key: String,
    /// The moments of the history.
    clock: AtomicU64,
    /// Numbers for keys and air waybills.
    serial: AtomicU64,
    pub(crate) acknowledged_writes: AtomicU64,
    pub(crate) without_answer: AtomicU64,
}

/// An order, and what was asked of it.
pub(crate) struct OrderHistory {
    pub(crate) key: String,
    number: OnceLock<String>,
    records: Mutex<Vec<Record<Call, Answer>>>,
}

impl OrderHistory {
    pub(crate) fn records(&self) -> Vec<Record<Call, Answer>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Clients {
    pub(crate) fn new(addresses: Vec<String>, key: String) -> Self {
        let http = Client::builder().timeout(Duration::from_secs(12)).build().expect("a client");
        let (clock, serial, acknowledged_writes, without_answer) = Default::default();
        Self { http, addresses, key, clock, serial, acknowledged_writes, without_answer }
    }

    /// A new order, with several clients at it until each has made its calls.
    pub(crate) async fn work(self: &Arc<Self>, random: &mut Rng) -> Arc<OrderHistory> {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let key = format!("torture-{serial:010}");
        let order =
            Arc::new(OrderHistory { key, number: OnceLock::new(), records: Mutex::default() });
        let mut clients = tokio::task::JoinSet::new();
        for _ in 0..CLIENTS {
            clients.spawn(Arc::clone(self).one_client(Arc::clone(&order), random.fork()));
        }
        clients.join_all().await;
        order
    }

    async fn one_client(self: Arc<Self>, order: Arc<OrderHistory>, mut random: Rng) {
        for _ in 0..CALLS {
            let call = match order.number.get() {
                None => Call::Create,
                Some(_) => match random.u8(..8) {
                    0 | 1 => Call::Create,
                    2 => Call::Void,
                    3 | 4 => Call::Reprint,
                    5 => Call::Manifest,
                    _ => Call::Track,
                },
            };
            self.call(&order, call, &mut random).await;
        }
    }

    /// Makes a call to any of the servers, and writes it down.
    pub(crate) async fn call(
        &self,
        order: &OrderHistory,
        call: Call,
        random: &mut Rng,
    ) -> Option<Answer> {
        let address = &self.addresses[random.usize(..self.addresses.len())];
        let request = self.request(address, order, call);
        let started = self.moment();
        let answer = match send(request).await {
            Some((status, body)) => understand(call, status, &body, order),
            None => None,
        };
        let answered = answer.map(|answer| (self.moment(), answer));
        match answer {
            Some(
                Answer::Created(_) | Answer::Voided | Answer::Reprinted(_) | Answer::Submitted,
            ) => {
                self.acknowledged_writes.fetch_add(1, Ordering::Relaxed);
            }
            Some(_) => {}
            None => {
                self.without_answer.fetch_add(1, Ordering::Relaxed);
                // A server that is down refuses at once; the others are to have the time.
                tokio::time::sleep(Duration::from_millis(random.u64(1..50))).await;
            }
        }
        let record = Record { call, started, answered };
        order.records.lock().unwrap_or_else(PoisonError::into_inner).push(record);
        answer
    }

    /// How many parcels the service lists, by one of the servers.
    pub(crate) async fn parcels(&self) -> u64 {
        let url = format!("{}/api/v1/parcels?limit=1", self.addresses[0]);
        let answer = send(self.http.get(url).header("X-API-Key", &self.key)).await;
        let (_, bytes) = answer.expect("servers that answer");
        let body: Value = serde_json::from_slice(&bytes).expect("the service answers JSON");
        body["meta"]["total"].as_u64().unwrap_or_else(|| panic!("no total: {body}"))
    }

    fn request(&self, address: &str, order: &OrderHistory, call: Call) -> RequestBuilder {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let own_key = format!("torture-{serial:010}");
        let number = order.number.get().map_or("", String::as_str);
        let (path, body) = match call {
            Call::Track => {
                let url = format!("{address}/api/v1/tracking/{number}");
                return self.http.get(url).header("X-API-Key", &self.key);
            }
            Call::Create => ("orders/create".to_owned(), an_order(&order.key)),
            Call::Void => (
                "orders/void".to_owned(),
                json!({ "idempotencyKey": own_key, "trackingNumbers": [number] }),
            ),
            Call::Reprint => {
                (format!("labels/{number}/reprint"), json!({ "idempotencyKey": own_key }))
            }
            Call::Manifest => {
                let awb = air_waybill(serial);
                (
                    "manifests/submit".to_owned(),
                    json!({ "awbNumber": awb, "trackingNumbers": [number] }),
                )
            }
        };
        let request =
            self.http.post(format!("{address}/api/v1/{path}")).header("X-API-Key", &self.key);
        request.header("content-type", "application/json").body(body.to_string())
    }

    fn moment(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }
}

async fn send(request: RequestBuilder) -> Option<(u16, Vec<u8>)> {
    let response = request.send().await.ok()?;
    let status = response.status().as_u16();
    Some((status, response.bytes().await.ok()?.to_vec()))
}

/// What an answer says of the order; none if it leaves open whether the call took effect.
fn understand(call: Call, status: u16, bytes: &[u8], order: &OrderHistory) -> Option<Answer> {
    if status >= 500 {
        return None;
    }
    let body: Value = serde_json::from_slice(bytes).expect("the service answers JSON");
    let code = body["error"]["code"].as_str().unwrap_or_default();
    if code == "IDEMPOTENCY_IN_PROGRESS" {
        return None;
    }
    let understood = match (call, status) {
        (Call::Create, 200 | 201) => {
            let number = body["parcel"]["trackingNumber"].as_str().expect("a number").to_owned();
            let _known = order.number.set(number);
            let mut hasher = DefaultHasher::new();
            bytes.hash(&mut hasher);
            let hash = hasher.finish();
            Some(if status == 201 { Answer::Created(hash) } else { Answer::Repeated(hash) })
        }
        (Call::Void, 200) if body["data"]["results"][0]["alreadyVoided"] == true => {
            Some(Answer::AlreadyVoided)
        }
        (Call::Void, 200) => Some(Answer::Voided),
        (Call::Reprint, 200) => {
            let version =
                body["data"]["version"].as_u64().and_then(|version| version.try_into().ok());
            version.map(Answer::Reprinted)
        }
        (Call::Manifest, 201) => Some(Answer::Submitted),
        (Call::Track, 200) => tracked(&body).map(Answer::Stands),
        (Call::Void | Call::Reprint | Call::Manifest, 409) => Some(Answer::Refused),
        _ => None,
    };
    assert!(understood.is_some(), "{call:?} of {}: {status} {body}", order.key);
    understood
}

fn tracked(body: &Value) -> Option<Status> {
    let status = body["tracking"]["status"].as_str().or(body["status"].as_str())?;
    match status {
        "LABEL_GENERATED" => Some(Status::Labelled),
        "MANIFEST_SUBMITTED" => Some(Status::Manifested),
        "VOIDED" => Some(Status::Voided),
        _ => None,
    }
}

/// Seven digits, and the remainder of their division by seven.
fn air_waybill(serial: u64) -> String {
    let (prefix, number) = (100 + serial / 10_000_000, serial % 10_000_000);
    format!("{prefix}-{number:07}{}", number % 7)
}

fn an_order(key: &str) -> Value {
    json!({
        "idempotencyKey": key,
        "sender": {
            "fullName": "Ana Ruiz", "phone": "+13055550100",
            "address": { "line1": "8400 NW 25th St", "city": "Miami", "state": "FL", "zipCode": "33122", "country": "US" }
        },
        "receiver": {
            "fullName": "José Ángel Muñoz", "phone": "+593991234567", "nationalId": "1714307103", "idType": "cedula",
            "address": { "line1": "Av. Amazonas N34-451", "city": "Quito", "province": "Pichincha", "zipCode": "170515", "country": "EC" }
        },
        "parcelDetails": { "weightKg": 1.25, "declaredValue": 45.5 },
        "customsInfo": { "description": "Cotton shirts", "hsCode": "610910" }
    })
}
