//! The receiver of all webhooks: it checks and records each message, and answers as real receivers do.

use std::{
    collections::{HashMap, HashSet},
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use fastrand::Rng;
use http_body_util::{BodyExt, Empty};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use parcelo::webhook::Webhook;
use serde_json::Value;
use tokio::net::TcpListener;

/// Maximum interval of a repetition that needs an explanation. A lease lasts a minute: nothing is sent again so soon
/// unless a lease was ended or a sender was stopped.
const SOON: Duration = Duration::from_secs(50);
/// The attempt from which on an event does not hold up later ones of its parcel.
const RELEASED_AFTER: u32 = 3;

/// The HTTP server for all webhooks.
pub(crate) struct Receiver {
    address: SocketAddr,
    ledger: Arc<Ledger>,
}

/// The record of all messages.
pub(crate) struct Ledger {
    /// The verifiers of the accounts, by index.
    verifiers: RwLock<Vec<Webhook>>,
    parcels: Mutex<HashMap<String, Vec<Arrived>>>,
    random: Mutex<Rng>,
    /// Set if some messages are refused or not answered.
    is_moody: bool,
    pub(crate) counts: Counts,
    faults: Mutex<Vec<String>>,
    /// The repetitions sooner than a lease ends, each with the moments of its acknowledgement and of the repetition.
    pub(crate) soon: Mutex<Vec<(Instant, Instant)>>,
}

#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) messages: AtomicU64,
    pub(crate) events: AtomicU64,
    pub(crate) refused: AtomicU64,
    /// Messages that were repeated although they had been acknowledged.
    pub(crate) repeated: AtomicU64,
    /// Messages with a clock that was more than five minutes wrong.
    pub(crate) of_another_time: AtomicU64,
}

/// An event, as its messages describe it.
struct Arrived {
    id: String,
    sequence: u64,
    previous: String,
    new: String,
    attempts: u32,
    acknowledged: Option<Instant>,
}

/// A change of a parcel's status, from its history.
#[derive(Debug)]
pub(crate) struct Move {
    pub(crate) sequence: u64,
    pub(crate) status: String,
}

#[derive(Clone, Copy)]
enum Reply {
    Acknowledge,
    Slowly,
    Refuse,
    HangUp,
}

impl Receiver {
    pub(crate) async fn start(mut random: Rng, is_moody: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let ledger = Arc::new(Ledger::new(random.fork(), is_moody));
        let receiving = Arc::clone(&ledger);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let ledger = Arc::clone(&receiving);
                tokio::spawn(async move {
                    let service = service_fn(|request| ledger.receive(request));
                    let stream = TokioIo::new(stream);
                    let _ended = http1::Builder::new().serve_connection(stream, service).await;
                });
            }
        });
        Self { address, ledger }
    }

    /// Returns the URL for the events of the account with this index.
    pub(crate) fn url(&self, account: usize) -> String {
        format!("http://{}/{account}", self.address)
    }

    /// Adds the secret of the next account.
    pub(crate) fn add_account(&self, secret: &str) {
        let webhook = Webhook::new([secret]).expect("a secret");
        self.ledger.verifiers.write().unwrap_or_else(PoisonError::into_inner).push(webhook);
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

impl Ledger {
    fn new(random: Rng, is_moody: bool) -> Self {
        Self {
            verifiers: RwLock::default(),
            parcels: Mutex::default(),
            random: Mutex::new(random),
            is_moody,
            counts: Counts::default(),
            faults: Mutex::default(),
            soon: Mutex::default(),
        }
    }

    async fn receive(&self, request: Request<Incoming>) -> io::Result<Response<Empty<Bytes>>> {
        let (head, body) = request.into_parts();
        let account = head.uri.path().trim_start_matches('/').parse().unwrap_or(usize::MAX);
        let Ok(body) = body.collect().await else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let reply = match self.take(account, &head.headers, &body.to_bytes()) {
            Ok(reply) => reply,
            Err(fault) => {
                self.add_fault(fault);
                Reply::Refuse
            }
        };
        let status = match reply {
            Reply::Acknowledge => StatusCode::NO_CONTENT,
            Reply::Slowly => {
                tokio::time::sleep(Duration::from_millis(1_500)).await;
                StatusCode::NO_CONTENT
            }
            Reply::Refuse => StatusCode::INTERNAL_SERVER_ERROR,
            Reply::HangUp => return Err(io::ErrorKind::BrokenPipe.into()),
        };
        let mut response = Response::new(Empty::new());
        *response.status_mut() = status;
        Ok(response)
    }

    /// Records a message and chooses its answer.
    fn take(
        &self,
        account: usize,
        headers: &hyper::HeaderMap,
        body: &[u8],
    ) -> Result<Reply, String> {
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
        let sent: u64 = header("webhook-timestamp").parse().unwrap_or(0);
        let sent = SystemTime::UNIX_EPOCH + Duration::from_secs(sent);
        let verifiers = self.verifiers.read().unwrap_or_else(PoisonError::into_inner);
        // A server has the account's webhook before this receiver has its secret.
        let Some(verifier) = verifiers.get(account) else { return Ok(Reply::Refuse) };
        let verified = verifier.verify_at(headers, body, sent.into());
        verified.map_err(|error| format!("a message cannot be verified: {error}"))?;
        let age = SystemTime::now().duration_since(sent).unwrap_or_else(|ahead| ahead.duration());
        if age > Duration::from_secs(300) {
            self.counts.of_another_time.fetch_add(1, Ordering::Relaxed);
        }
        self.counts.messages.fetch_add(1, Ordering::Relaxed);
        let event: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        self.enter(header("webhook-id"), &event["data"])
    }

    fn enter(&self, id: &str, data: &Value) -> Result<Reply, String> {
        let text = |name: &str| data[name].as_str().unwrap_or("").to_owned();
        let sequence = data["sequence"].as_u64().unwrap_or(0);
        let (number, previous, new) =
            (text("trackingNumber"), text("previousStatus"), text("newStatus"));
        let mut parcels = self.parcels();
        let arrived = parcels.entry(number.clone()).or_default();
        let reply = match arrived.iter_mut().find(|event| event.sequence == sequence) {
            Some(event) => self.again(event, id, &new)?,
            None => {
                let waits = |event: &&Arrived| {
                    event.sequence < sequence
                        && event.acknowledged.is_none()
                        && event.attempts < RELEASED_AFTER
                };
                if let Some(earlier) = arrived.iter().find(waits) {
                    let earlier = earlier.sequence;
                    self.add_fault(format!("{number}: event {sequence} overtakes event {earlier}"));
                }
                if arrived
                    .iter()
                    .any(|event| event.sequence > sequence && event.acknowledged.is_some())
                {
                    self.add_fault(format!("{number}: event {sequence} comes after a later one"));
                }
                self.counts.events.fetch_add(1, Ordering::Relaxed);
                let reply = self.reply();
                let acknowledged = None;
                let id = id.to_owned();
                arrived.push(Arrived { id, sequence, previous, new, attempts: 1, acknowledged });
                reply
            }
        };
        let event = arrived.iter_mut().find(|event| event.sequence == sequence);
        match reply {
            Reply::Acknowledge | Reply::Slowly => {
                if let Some(event) = event {
                    event.acknowledged = Some(Instant::now());
                }
            }
            Reply::Refuse | Reply::HangUp => {
                self.counts.refused.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(reply)
    }

    /// Checks a repeated event against the first one, and acknowledges it.
    fn again(&self, event: &mut Arrived, id: &str, new: &str) -> Result<Reply, String> {
        if event.id != id || event.new != new {
            return Err(format!("{} and {id} are both event {}", event.id, event.sequence));
        }
        event.attempts += 1;
        if let Some(acknowledged) = event.acknowledged {
            self.counts.repeated.fetch_add(1, Ordering::Relaxed);
            if acknowledged.elapsed() < SOON {
                let mut soon = self.soon.lock().unwrap_or_else(PoisonError::into_inner);
                soon.push((acknowledged, Instant::now()));
            }
        }
        Ok(Reply::Acknowledge)
    }

    fn reply(&self) -> Reply {
        if !self.is_moody {
            return Reply::Acknowledge;
        }
        match self.random.lock().unwrap_or_else(PoisonError::into_inner).u32(..2_000) {
            0..10 => Reply::Refuse,
            10..14 => Reply::HangUp,
            14..16 => Reply::Slowly,
            _ => Reply::Acknowledge,
        }
    }

    /// Checks that every change of a parcel's status was delivered, and no further ones. Returns `None` if some are
    /// still missing.
    pub(crate) fn judge(&self, number: &str, moves: &[Move]) -> Option<Result<(), String>> {
        let parcels = self.parcels();
        let arrived = parcels.get(number).map_or(&[][..], Vec::as_slice);
        let is_delivered = |it: &Move| {
            arrived
                .iter()
                .any(|event| event.sequence == it.sequence && event.acknowledged.is_some())
        };
        if !moves.iter().all(is_delivered) {
            return None;
        }
        let mut sorted: Vec<_> = arrived.iter().collect();
        sorted.sort_by_key(|event| event.sequence);
        let mut previous = "ORDERED";
        for event in &sorted {
            let is_of_history =
                moves.iter().any(|it| it.sequence == event.sequence && it.status == event.new);
            if !is_of_history || event.previous != previous {
                let Arrived { sequence, previous, new, .. } = event;
                return Some(Err(format!(
                    "{number}: event {sequence} from {previous} to {new} is not in {moves:?}"
                )));
            }
            previous = &event.new;
        }
        let ids: HashSet<_> = sorted.iter().map(|event| &event.id).collect();
        Some(if ids.len() == sorted.len() {
            Ok(())
        } else {
            Err(format!("{number}: one id twice"))
        })
    }

    /// Returns the faults found in messages.
    pub(crate) fn faults(&self) -> MutexGuard<'_, Vec<String>> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_fault(&self, fault: String) {
        println!("webhooks: {fault}");
        self.faults().push(fault);
    }

    fn parcels(&self) -> MutexGuard<'_, HashMap<String, Vec<Arrived>>> {
        self.parcels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const WAY: [&str; 4] = ["ORDERED", "LABEL_GENERATED", "PICKED_UP", "IN_TRANSIT"];

    /// Returns the faults found in messages of one parcel, each with its event's id and sequence; `None` if an event is
    /// missing.
    fn judged(messages: &[(&str, usize)]) -> Option<Vec<String>> {
        let ledger = Ledger::new(Rng::with_seed(1), false);
        for (id, sequence) in messages {
            let data = json!({ "trackingNumber": "EC1", "sequence": sequence,
                "previousStatus": WAY[sequence - 2], "newStatus": WAY[sequence - 1] });
            if let Err(fault) = ledger.enter(id, &data) {
                ledger.add_fault(fault);
            }
        }
        let step = |sequence: usize| Move {
            sequence: sequence as u64,
            status: WAY[sequence - 1].to_owned(),
        };
        let judged = ledger.judge("EC1", &[step(2), step(3)])?;
        let mut faults = ledger.faults().clone();
        faults.extend(judged.err());
        Some(faults)
    }

    #[test]
    fn each_event_must_come_in_order_under_one_id_and_no_other_may() {
        assert_eq!(judged(&[("a", 2), ("b", 3)]), Some(vec![]));
        assert_eq!(judged(&[("a", 2), ("b", 3), ("a", 2)]), Some(vec![]), "at least once");
        assert_eq!(judged(&[("a", 2)]), None, "one is missing");
        let faults = |messages: &[(&str, usize)]| judged(messages).map_or(0, |faults| faults.len());
        assert_eq!(faults(&[("b", 3), ("a", 2)]), 1, "out of order");
        assert_eq!(faults(&[("a", 2), ("b", 3), ("c", 3)]), 1, "one event under two ids");
        assert_eq!(faults(&[("a", 2), ("a", 3)]), 1, "two events under one id");
        assert_eq!(faults(&[("a", 2), ("b", 3), ("c", 4)]), 1, "of what did not happen");
    }

    #[test]
    fn an_event_that_was_refused_holds_up_the_next_one() {
        let ledger = Ledger::new(Rng::with_seed(1), true);
        let event = |number: usize, sequence: usize| {
            let data = json!({ "trackingNumber": format!("EC{number}"), "sequence": sequence,
                "previousStatus": WAY[sequence - 2], "newStatus": WAY[sequence - 1] });
            ledger.enter(&format!("{number}-{sequence}"), &data).expect("a sound event")
        };
        let is_refused = |number: &usize| matches!(event(*number, 2), Reply::Refuse);
        let refused = (0..10_000).find(is_refused).expect("a receiver that refuses");
        event(refused, 3);
        assert_eq!(ledger.faults().len(), 1);
    }
}
