//! Sends a mock server's webhooks, with the fault that a test planned: duplicates, events out of order or late, wrong and
//! old signatures. It also keeps the deliveries with their responses.
//!
//! The service sends an event until it gets a 2xx response, and a parcel's next event only then. So an event is
//! duplicated by losing its response. One that is held back counts as delivered, and is replayed when it is due: the
//! service signs it with that time, and sends it again if the receiver fails.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use parcelo::webhook::Secret;
use parcelo_domain::{
    Millis, Refusal, Tenant,
    audit::Actor,
    webhooks::{DeliveryError, EndpointResponse},
};
use parcelo_store::EventsToReplay;
use parcelo_system::ids::Ids;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::{
    service::{Delivery, Endpoints, Service},
    webhook::{HttpTransport, WebhookDispatcher, WebhookTransport},
};

/// Age of an old signature: twice the age that the SDK accepts.
const OLD_SIGNATURE_MILLIS: i64 = 10 * Millis::MINUTE;
/// Maximum number of deliveries that are kept, the newest.
pub(super) const MAX_DELIVERIES: usize = 10_000;
/// Maximum number of bytes of a response that are kept.
const MAX_ANSWER_BYTES: usize = 1_024;

/// A fault of webhooks. It hits the first attempt of every event; further attempts are without a fault.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct WebhookFault {
    pub(super) fault: WebhookFaultKind,
    /// Time in seconds for which events are held back. Only `reorder` and `delay` take it, and both need it.
    #[cfg_attr(test, schema(exclusive_minimum = 0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seconds: Option<f64>,
}

/// A kind of fault of webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub(super) enum WebhookFaultKind {
    /// Its response is lost, so it is sent again.
    Duplicate,
    /// Events are collected for `seconds` and sent in a random order.
    Reorder,
    /// It is sent `seconds` later.
    Delay,
    /// It is signed with a secret that the receiver does not have.
    WrongSignature,
    /// Its timestamp is ten minutes old.
    OldSignature,
}

impl WebhookFaultKind {
    /// Returns its name in JSON.
    const fn name(self) -> &'static str {
        match self {
            Self::Duplicate => "duplicate",
            Self::Reorder => "reorder",
            Self::Delay => "delay",
            Self::WrongSignature => "wrongSignature",
            Self::OldSignature => "oldSignature",
        }
    }
}

impl fmt::Display for WebhookFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.fault.name())?;
        self.seconds.map_or(Ok(()), |seconds| write!(f, " of {seconds} s"))
    }
}

impl WebhookFault {
    /// Returns in English and Spanish what is wrong with its seconds, if anything.
    pub(super) fn violation(self) -> Option<(&'static str, &'static str)> {
        let holds = matches!(self.fault, WebhookFaultKind::Reorder | WebhookFaultKind::Delay);
        match self.seconds {
            Some(_) if !holds => Some((
                "only reorder and delay take seconds: leave them out",
                "solo reorder y delay admiten seconds: omítalo",
            )),
            None if !holds => None,
            Some(seconds) if seconds > 0.0 => None,
            Some(_) | None => Some((
                "reorder and delay need the seconds that events are held back, above 0",
                "reorder y delay requieren en seconds los segundos de retención, más de 0",
            )),
        }
    }

    /// Returns when an event that is held back `now` is due.
    fn due(self, now: Millis) -> Millis {
        let hold = Duration::try_from_secs_f64(self.seconds.unwrap_or_default());
        let millis = hold.ok().and_then(|hold| i64::try_from(hold.as_millis()).ok());
        now.plus(millis.unwrap_or(i64::MAX))
    }
}

/// A webhook as the mock server sent it, and the response that it got.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WebhookDelivery {
    /// `webhook-id`: the same at every attempt.
    pub id: String,
    /// The time of the attempt, by the server's clock.
    pub at: DateTime<Utc>,
    /// The receiver's address.
    pub url: String,
    /// The headers that the receiver verifies: `webhook-id`, `webhook-timestamp` and `webhook-signature`.
    pub headers: [(&'static str, String); 3],
    /// The `traceparent` header, if the request that caused the event had one.
    pub traceparent: Option<String>,
    /// The body, byte for byte.
    pub body: Vec<u8>,
    /// The status of the response; 0 if there was none.
    pub status: u16,
    /// The first 1,024 bytes of the response's body, or the reason why there was no response.
    pub answer: String,
    /// The fault that it had: `duplicate`, `reorder`, `delay`, `wrongSignature` or `oldSignature`.
    pub fault: Option<&'static str>,
}

/// The dispatcher of a mock server's webhooks.
#[derive(Debug)]
pub(super) struct ChaosDispatcher {
    dispatcher: WebhookDispatcher,
    transport: Arc<ChaosTransport>,
    /// Held while events are sent, so that two tasks do not mix up the order of events that were held back.
    send_lock: tokio::sync::Mutex<()>,
}

impl ChaosDispatcher {
    pub(super) fn new(service: &Arc<Service>, seed: u64) -> Self {
        let transport = Arc::new(ChaosTransport {
            http: HttpTransport::default(),
            service: Arc::clone(service),
            random: Ids::seeded(!seed),
            state: Mutex::default(),
        });
        let sender: Arc<dyn WebhookTransport> = transport.clone();
        // One message at a time, so that a receiver gets them in the same order in every run.
        let dispatcher = WebhookDispatcher::with_transport(sender, Arc::clone(service), 1);
        Self { dispatcher, transport, send_lock: tokio::sync::Mutex::default() }
    }

    /// Sends due events, and those that were held back until now, until the last response is stored.
    pub(super) async fn deliver_due(&self) -> Result<(), Refusal> {
        let _lock = self.send_lock.lock().await;
        self.dispatcher.deliver_due().await?;
        for held in self.transport.take_due() {
            self.transport.replay(held).await;
            self.dispatcher.deliver_due().await?;
        }
        Ok(())
    }

    /// Sends nothing until the guard is dropped.
    pub(super) async fn pause(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.send_lock.lock().await
    }

    /// Returns when the next event that is held back falls due.
    pub(super) fn next_held_due(&self) -> Option<Millis> {
        self.transport.lock().held.iter().map(|held| held.due).min()
    }

    /// Sets the fault of the events from now on.
    pub(super) fn plan(&self, fault: Option<WebhookFault>) {
        let mut state = self.transport.lock();
        (state.fault, state.has_hit) = (fault, false);
    }

    /// Returns the fault of the events from now on.
    pub(super) fn fault(&self) -> Option<WebhookFault> {
        self.transport.lock().fault
    }

    /// Returns the fault if it has hit no event since it was planned.
    pub(super) fn unused_fault(&self) -> Option<WebhookFault> {
        let state = self.transport.lock();
        state.fault.filter(|_| !state.has_hit)
    }

    /// Drops the events that are held back, when the store's data is replaced.
    pub(super) fn forget_events(&self) {
        let mut state = self.transport.lock();
        state.held.clear();
        state.hit.clear();
        state.released_after.clear();
    }

    /// Returns the kept deliveries, oldest first.
    pub(super) fn deliveries(&self) -> Vec<WebhookDelivery> {
        self.transport.lock().sent.iter().cloned().collect()
    }
}

/// A transport that sends over HTTP, with the planned fault.
#[derive(Debug)]
struct ChaosTransport {
    http: HttpTransport,
    service: Arc<Service>,
    random: Ids,
    state: Mutex<ChaosState>,
}

#[derive(Debug, Default)]
struct ChaosState {
    fault: Option<WebhookFault>,
    /// `true` once that fault has hit an event.
    has_hit: bool,
    /// The events that a fault has hit.
    hit: HashSet<Ulid>,
    /// The names of the faults that hold or held events back, until the first attempt.
    released_after: HashMap<Ulid, &'static str>,
    held: Vec<HeldEvent>,
    sent: VecDeque<WebhookDelivery>,
}

/// An event that is held back until it is due; those that are due together are sent by their order.
#[derive(Debug, Clone, Copy)]
struct HeldEvent {
    due: Millis,
    order: [u8; 8],
    tenant: Tenant,
    event: Ulid,
}

/// The duration of an attempt in milliseconds, and the endpoint's response.
type SendResult = (i64, Result<EndpointResponse, DeliveryError>);

impl WebhookTransport for ChaosTransport {
    fn send<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, SendResult> {
        Box::pin(async move {
            let Some(planned) = self.next_fault(delivery) else {
                let held_by = self.lock().released_after.remove(&delivery.event());
                return self.post(delivery, held_by).await;
            };
            let name = planned.fault.name();
            match planned.fault {
                WebhookFaultKind::Duplicate => {
                    let (millis, _lost) = self.post(delivery, Some(name)).await;
                    (millis, Err(DeliveryError::Broken))
                }
                WebhookFaultKind::Delay | WebhookFaultKind::Reorder => self.hold(delivery, planned),
                WebhookFaultKind::WrongSignature => {
                    let wrong = with_wrong_signature(delivery.clone(), self.service.now());
                    self.post(&wrong, Some(name)).await
                }
                WebhookFaultKind::OldSignature => {
                    let old = self.with_old_signature(delivery.clone()).await;
                    self.post(&old, Some(name)).await
                }
            }
        })
    }
}

impl ChaosTransport {
    fn lock(&self) -> MutexGuard<'_, ChaosState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the planned fault, unless the event has had one already.
    fn next_fault(&self, delivery: &Delivery) -> Option<WebhookFault> {
        let mut state = self.lock();
        let planned = state.fault?;
        let is_first = state.hit.insert(delivery.event());
        state.has_hit |= is_first;
        is_first.then_some(planned)
    }

    /// Sends a delivery and keeps it with its response.
    async fn post(&self, delivery: &Delivery, fault: Option<&'static str>) -> SendResult {
        let at = self.service.now().to_utc();
        let (millis, response) = self.http.send(delivery).await;
        let (status, answer) = match &response {
            Ok(response) => {
                let body = &response.body_prefix;
                let start = body.get(..MAX_ANSWER_BYTES).unwrap_or(body);
                (response.status, String::from_utf8_lossy(start).into_owned())
            }
            Err(error) => (0, error.to_string()),
        };
        let [(_, id), ..] = &delivery.headers;
        let sent = WebhookDelivery {
            id: id.clone(),
            at,
            url: delivery.url.clone(),
            headers: delivery.headers.clone(),
            traceparent: delivery.traceparent.clone(),
            body: delivery.body.clone(),
            status,
            answer,
            fault,
        };
        push_delivery(&mut self.lock().sent, sent);
        (millis, response)
    }

    /// Holds an event back, and reports it as delivered. Events to reorder are due with the first of them, which is
    /// sent last: so any two of them are sent out of order, whatever the seed.
    fn hold(&self, delivery: &Delivery, planned: WebhookFault) -> SendResult {
        let now = self.service.now();
        let mut state = self.lock();
        let collecting = state.held.last().map(|held| held.due).filter(|due| now < *due);
        let is_reordered = planned.fault == WebhookFaultKind::Reorder;
        let (due, order) = match collecting {
            Some(due) if is_reordered => (due, self.random.array()),
            None if is_reordered => (planned.due(now), [u8::MAX; 8]),
            Some(_) | None => (planned.due(now), [0; 8]),
        };
        let (tenant, event) = (delivery.tenant(), delivery.event());
        state.held.push(HeldEvent { due, order, tenant, event });
        state.released_after.insert(event, planned.fault.name());
        (0, Ok(EndpointResponse { status: 202, retry_after: None, body_prefix: Vec::new() }))
    }

    /// Removes the events that are due, in the order in which they are to be sent.
    fn take_due(&self) -> Vec<HeldEvent> {
        let now = self.service.now();
        let mut state = self.lock();
        let held = std::mem::take(&mut state.held).into_iter();
        let (mut due, held): (Vec<_>, Vec<_>) = held.partition(|event| event.due <= now);
        state.held = held;
        // The sort is stable: delayed events keep their order.
        due.sort_by_key(|event| (event.due, event.order));
        due
    }

    /// Sends an event again, as an operator would.
    async fn replay(&self, held: HeldEvent) {
        let (store, now) = (self.service.store(), self.service.now());
        let endpoints =
            Endpoints { store, ids: &self.random, by: Actor::Server.at(now), trace: None };
        // Otherwise a reset has deleted the event, or its endpoint is off.
        let _ = endpoints.replay(held.tenant, EventsToReplay::One(held.event), now).await;
    }

    /// Signs a delivery as ten minutes ago.
    async fn with_old_signature(&self, mut delivery: Delivery) -> Delivery {
        let sent = self.service.now().plus(-OLD_SIGNATURE_MILLIS);
        // A store in memory does not fail, and an endpoint that was removed meanwhile gets nothing.
        if let Ok(Some(endpoint)) = self.service.store().endpoint(delivery.tenant()).await {
            let [(_, id), (_, timestamp), (_, signature)] = &mut delivery.headers;
            *timestamp = sent.second().to_string();
            *signature = endpoint.sign(id, sent, &delivery.body);
        }
        delivery
    }
}

/// Signs a delivery with another secret.
fn with_wrong_signature(mut delivery: Delivery, now: Millis) -> Delivery {
    let [(_, id), _, (_, signature)] = &mut delivery.headers;
    *signature = Secret::from_random(&[0; 32]).sign(id, now.second(), &delivery.body);
    delivery
}

/// Adds a delivery, and removes the oldest if there are too many.
pub(super) fn push_delivery<T>(all: &mut VecDeque<T>, delivery: T) {
    if all.len() == MAX_DELIVERIES {
        all.pop_front();
    }
    all.push_back(delivery);
}
