//! The receiver of all webhooks. It verifies and records every message, and sometimes answers as real receivers do:
//! late, with an error, or never.

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

/// Interval within which a repeated message needs an explanation. A lease, during which only one server may send an
/// event, lasts a minute. An event is sent again sooner only if its lease was ended early or its sender was stopped.
const EARLY_REPEAT: Duration = Duration::from_secs(50);
/// Number of attempts after which an undelivered event no longer delays later events of its parcel.
const ATTEMPTS_UNTIL_RELEASE: u32 = 3;

/// The HTTP server for all webhooks.
pub(crate) struct Receiver {
    address: SocketAddr,
    delivery_log: Arc<DeliveryLog>,
}

/// The record of all messages by parcel, and the violations found in them.
pub(crate) struct DeliveryLog {
    /// The verifiers of the accounts, by index.
    verifiers: RwLock<Vec<Webhook>>,
    parcels: Mutex<HashMap<String, Vec<ReceivedEvent>>>,
    random: Mutex<Rng>,
    /// Set if some messages are refused or not answered.
    is_unreliable: bool,
    pub(crate) counts: Counts,
    violations: Mutex<Vec<String>>,
    /// The repetitions within `EARLY_REPEAT`: the moment of the acknowledgement, and that of the repetition.
    pub(crate) early_repeats: Mutex<Vec<(Instant, Instant)>>,
}

#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) messages: AtomicU64,
    pub(crate) events: AtomicU64,
    pub(crate) refused: AtomicU64,
    /// The number of messages that were sent again after they had been acknowledged.
    pub(crate) repeated: AtomicU64,
    /// The number of messages whose timestamp was off by more than five minutes.
    pub(crate) with_wrong_clock: AtomicU64,
}

/// An event, as described by its messages.
struct ReceivedEvent {
    id: String,
    sequence: u64,
    previous: String,
    new: String,
    attempts: u32,
    acknowledged: Option<Instant>,
}

/// A change of a parcel's status, from its history.
#[derive(Debug)]
pub(crate) struct StatusChange {
    pub(crate) sequence: u64,
    pub(crate) status: String,
}

#[derive(Clone, Copy)]
enum Reply {
    Acknowledge,
    AcknowledgeSlowly,
    Refuse,
    HangUp,
}

impl Receiver {
    pub(crate) async fn start(mut random: Rng, is_unreliable: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let delivery_log = Arc::new(DeliveryLog::new(random.fork(), is_unreliable));
        let listening = Arc::clone(&delivery_log);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let delivery_log = Arc::clone(&listening);
                tokio::spawn(async move {
                    let service = service_fn(|request| delivery_log.receive(request));
                    let stream = TokioIo::new(stream);
                    let _ended = http1::Builder::new().serve_connection(stream, service).await;
                });
            }
        });
        Self { address, delivery_log }
    }

    /// Returns the URL for the events of the account with this index.
    pub(crate) fn url(&self, account: usize) -> String {
        format!("http://{}/{account}", self.address)
    }

    /// Adds the webhook secret of the next account.
    pub(crate) fn add_account(&self, secret: &str) {
        let webhook = Webhook::new([secret]).expect("a secret");
        self.delivery_log.verifiers.write().unwrap_or_else(PoisonError::into_inner).push(webhook);
    }

    pub(crate) fn delivery_log(&self) -> &DeliveryLog {
        &self.delivery_log
    }
}

impl DeliveryLog {
    fn new(random: Rng, is_unreliable: bool) -> Self {
        Self {
            verifiers: RwLock::default(),
            parcels: Mutex::default(),
            random: Mutex::new(random),
            is_unreliable,
            counts: Counts::default(),
            violations: Mutex::default(),
            early_repeats: Mutex::default(),
        }
    }

    async fn receive(&self, request: Request<Incoming>) -> io::Result<Response<Empty<Bytes>>> {
        let (head, body) = request.into_parts();
        let account = head.uri.path().trim_start_matches('/').parse().unwrap_or(usize::MAX);
        let Ok(body) = body.collect().await else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let reply = match self.record_message(account, &head.headers, &body.to_bytes()) {
            Ok(reply) => reply,
            Err(violation) => {
                self.add_violation(violation);
                Reply::Refuse
            }
        };
        let status = match reply {
            Reply::Acknowledge => StatusCode::NO_CONTENT,
            Reply::AcknowledgeSlowly => {
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
    fn record_message(
        &self,
        account: usize,
        headers: &hyper::HeaderMap,
        body: &[u8],
    ) -> Result<Reply, String> {
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
        let sent: u64 = header("webhook-timestamp").parse().unwrap_or(0);
        let sent = SystemTime::UNIX_EPOCH + Duration::from_secs(sent);
        let verifiers = self.verifiers.read().unwrap_or_else(PoisonError::into_inner);
        // A server may send a webhook before its secret has been added here.
        let Some(verifier) = verifiers.get(account) else { return Ok(Reply::Refuse) };
        let verified = verifier.verify_at(headers, body, sent.into());
        verified.map_err(|error| format!("a message cannot be verified: {error}"))?;
        let age = SystemTime::now().duration_since(sent).unwrap_or_else(|ahead| ahead.duration());
        if age > Duration::from_secs(300) {
            self.counts.with_wrong_clock.fetch_add(1, Ordering::Relaxed);
        }
        self.counts.messages.fetch_add(1, Ordering::Relaxed);
        let event: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        self.record_event(header("webhook-id"), &event["data"])
    }

    fn record_event(&self, id: &str, data: &Value) -> Result<Reply, String> {
        let text = |name: &str| data[name].as_str().unwrap_or("").to_owned();
        let sequence = data["sequence"].as_u64().unwrap_or(0);
        let (number, previous, new) =
            (text("trackingNumber"), text("previousStatus"), text("newStatus"));
        let mut parcels = self.parcels();
        let events = parcels.entry(number.clone()).or_default();
        let reply = match events.iter_mut().find(|event| event.sequence == sequence) {
            Some(event) => self.record_repeat(event, id, &new)?,
            None => {
                let waits = |event: &&ReceivedEvent| {
                    event.sequence < sequence
                        && event.acknowledged.is_none()
                        && event.attempts < ATTEMPTS_UNTIL_RELEASE
                };
                if let Some(earlier) = events.iter().find(waits) {
                    let earlier = earlier.sequence;
                    self.add_violation(format!(
                        "{number}: event {sequence} overtakes event {earlier}"
                    ));
                }
                if events
                    .iter()
                    .any(|event| event.sequence > sequence && event.acknowledged.is_some())
                {
                    self.add_violation(format!(
                        "{number}: event {sequence} comes after a later one"
                    ));
                }
                self.counts.events.fetch_add(1, Ordering::Relaxed);
                let reply = self.choose_reply();
                let acknowledged = None;
                let id = id.to_owned();
                events.push(ReceivedEvent {
                    id,
                    sequence,
                    previous,
                    new,
                    attempts: 1,
                    acknowledged,
                });
                reply
            }
        };
        let event = events.iter_mut().find(|event| event.sequence == sequence);
        match reply {
            Reply::Acknowledge | Reply::AcknowledgeSlowly => {
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
    fn record_repeat(
        &self,
        event: &mut ReceivedEvent,
        id: &str,
        new: &str,
    ) -> Result<Reply, String> {
        if event.id != id || event.new != new {
            return Err(format!("{} and {id} are both event {}", event.id, event.sequence));
        }
        event.attempts += 1;
        if let Some(acknowledged) = event.acknowledged {
            self.counts.repeated.fetch_add(1, Ordering::Relaxed);
            if acknowledged.elapsed() < EARLY_REPEAT {
                let mut early_repeats =
                    self.early_repeats.lock().unwrap_or_else(PoisonError::into_inner);
                early_repeats.push((acknowledged, Instant::now()));
            }
        }
        Ok(Reply::Acknowledge)
    }

    fn choose_reply(&self) -> Reply {
        if !self.is_unreliable {
            return Reply::Acknowledge;
        }
        match self.random.lock().unwrap_or_else(PoisonError::into_inner).u32(..2_000) {
            0..10 => Reply::Refuse,
            10..14 => Reply::HangUp,
            14..16 => Reply::AcknowledgeSlowly,
            _ => Reply::Acknowledge,
        }
    }

    /// Checks that exactly the changes of a parcel's status were delivered. Returns `None` if some are still missing.
    pub(crate) fn check_deliveries(
        &self,
        number: &str,
        changes: &[StatusChange],
    ) -> Option<Result<(), String>> {
        let parcels = self.parcels();
        let events = parcels.get(number).map_or(&[][..], Vec::as_slice);
        let is_delivered = |it: &StatusChange| {
            events.iter().any(|event| event.sequence == it.sequence && event.acknowledged.is_some())
        };
        if !changes.iter().all(is_delivered) {
            return None;
        }
        let mut sorted: Vec<_> = events.iter().collect();
        sorted.sort_by_key(|event| event.sequence);
        let mut previous = "ORDERED";
        for event in &sorted {
            let is_in_history =
                changes.iter().any(|it| it.sequence == event.sequence && it.status == event.new);
            if !is_in_history || event.previous != previous {
                let ReceivedEvent { sequence, previous, new, .. } = event;
                return Some(Err(format!(
                    "{number}: event {sequence} from {previous} to {new} is not in {changes:?}"
                )));
            }
            previous = &event.new;
        }
        let ids: HashSet<_> = sorted.iter().map(|event| &event.id).collect();
        Some(if ids.len() == sorted.len() {
            Ok(())
        } else {
            Err(format!("{number}: two events have the same id"))
        })
    }

    /// Returns the violations found in messages.
    pub(crate) fn violations(&self) -> MutexGuard<'_, Vec<String>> {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_violation(&self, violation: String) {
        println!("webhooks: {violation}");
        self.violations().push(violation);
    }

    fn parcels(&self) -> MutexGuard<'_, HashMap<String, Vec<ReceivedEvent>>> {
        self.parcels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const STATUSES: [&str; 4] = ["ORDERED", "LABEL_GENERATED", "PICKED_UP", "IN_TRANSIT"];

    /// Returns the violations found in messages about one parcel, each given by its event's id and sequence; `None` if
    /// an event is missing.
    fn find_violations(messages: &[(&str, usize)]) -> Option<Vec<String>> {
        let delivery_log = DeliveryLog::new(Rng::with_seed(1), false);
        for (id, sequence) in messages {
            let data = json!({ "trackingNumber": "EC1", "sequence": sequence,
                "previousStatus": STATUSES[sequence - 2], "newStatus": STATUSES[sequence - 1] });
            if let Err(violation) = delivery_log.record_event(id, &data) {
                delivery_log.add_violation(violation);
            }
        }
        let step = |sequence: usize| StatusChange {
            sequence: sequence as u64,
            status: STATUSES[sequence - 1].to_owned(),
        };
        let result = delivery_log.check_deliveries("EC1", &[step(2), step(3)])?;
        let mut violations = delivery_log.violations().clone();
        violations.extend(result.err());
        Some(violations)
    }

    #[test]
    fn each_event_must_arrive_in_order_under_one_id() {
        assert_eq!(find_violations(&[("a", 2), ("b", 3)]), Some(vec![]));
        assert_eq!(find_violations(&[("a", 2), ("b", 3), ("a", 2)]), Some(vec![]), "at least once");
        assert_eq!(find_violations(&[("a", 2)]), None, "one is missing");
        let violations = |messages: &[(&str, usize)]| {
            find_violations(messages).map_or(0, |violations| violations.len())
        };
        assert_eq!(violations(&[("b", 3), ("a", 2)]), 1, "out of order");
        assert_eq!(violations(&[("a", 2), ("b", 3), ("c", 3)]), 1, "one event under two ids");
        assert_eq!(violations(&[("a", 2), ("a", 3)]), 1, "two events under one id");
        assert_eq!(violations(&[("a", 2), ("b", 3), ("c", 4)]), 1, "an event without a change");
    }

    #[test]
    fn an_event_sent_before_its_predecessor_is_a_violation() {
        let delivery_log = DeliveryLog::new(Rng::with_seed(1), true);
        let event = |number: usize, sequence: usize| {
            let data = json!({ "trackingNumber": format!("EC{number}"), "sequence": sequence,
                "previousStatus": STATUSES[sequence - 2], "newStatus": STATUSES[sequence - 1] });
            delivery_log
                .record_event(&format!("{number}-{sequence}"), &data)
                .expect("a sound event")
        };
        let is_refused = |number: &usize| matches!(event(*number, 2), Reply::Refuse);
        let refused = (0..10_000).find(is_refused).expect("a receiver that refuses");
        event(refused, 3);
        assert_eq!(delivery_log.violations().len(), 1);
    }
}
