//! The shippers' webhooks: they take events, or are slow, or refuse, or break. What comes is checked.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use fastrand::Rng;
use futures_util::{FutureExt, future::BoxFuture};
use parcelo::{model::EventData, webhook::Webhook};
use tokio::time::sleep;

use super::{
    options::Options,
    world::{Facts, WRITTEN_WITHIN, World},
};
use crate::{
    domain::webhooks::{DeliveryError, EndpointAnswer},
    service::Delivery,
    webhook::Transport,
};

/// After so many failed attempts an event holds up no later one of its parcel.
const RELEASED_AFTER: usize = 3;
/// What a receiver that is busy asks for, in milliseconds.
const RETRY_AFTER: u64 = 600_000;
/// The first pause of the schedule, a tenth shorter, in milliseconds.
const SHORTEST_PAUSE: u64 = 4_500;

/// What came of one event.
#[derive(Debug, Clone, Default)]
pub(super) struct Received {
    pub(super) body: Vec<u8>,
    /// Whether the receiver has it.
    pub(super) is_taken: bool,
    /// When the last attempt was over, and how long a pause it asked for.
    last: Option<(Duration, u64)>,
    /// Attempts that have begun.
    begun: usize,
    /// A sender was suspended with it, so that another one has sent it meanwhile.
    was_suspended: bool,
    /// When the receiver said that it has it, to the sender whose lease that was.
    pub(super) delivered: Option<Duration>,
    /// The attempts that are over, and whether each was answered with success.
    pub(super) attempts: Vec<bool>,
}

/// A parcel's event: by its number, and its place in the history; a second kind of event about the same place is apart.
pub(super) type AboutParcel = (String, u32, &'static str);

/// All that was sent.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    /// By the webhook's id.
    pub(super) events: BTreeMap<String, Received>,
    pub(super) parcels: BTreeMap<AboutParcel, String>,
    /// Whether a shipper's endpoint was off at some time: events were held, and come out of order.
    pub(super) was_off: BTreeMap<usize, bool>,
    /// An endpoint that has answered 410, until it is turned on again.
    pub(super) gone: BTreeMap<usize, Duration>,
    /// When an endpoint last answered 410, also to a sender whose lease may have ended.
    pub(super) may_be_gone: BTreeMap<usize, Duration>,
    /// Events were sent again because an operator wanted it.
    pub(super) was_replayed: bool,
}

/// All receivers.
#[derive(Debug)]
pub(super) struct Receivers {
    world: Arc<World>,
    rng: Mutex<Rng>,
}

/// How a receiver answers.
#[derive(Debug, Clone, Copy)]
enum Manner {
    Takes,
    TakesAndBreaks,
    Answers(u16),
    Never,
    Unreachable,
    /// The sender is suspended until its lease has ended; only then it reads the answer.
    Suspended(u16),
}

impl Manner {
    const fn status(self) -> Option<u16> {
        match self {
            Self::Takes => Some(204),
            Self::Answers(status) | Self::Suspended(status) => Some(status),
            Self::TakesAndBreaks | Self::Never | Self::Unreachable => None,
        }
    }
}

impl Receivers {
    pub(super) fn new(world: &Arc<World>) -> Arc<Self> {
        let rng = Mutex::new(world.random("receivers", 0));
        Arc::new(Self { world: Arc::clone(world), rng })
    }

    fn manner(&self) -> (Manner, Duration) {
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        let takes = Duration::from_millis(rng.u64(0..50));
        if self.world.is_calm() || rng.u32(..1_000) >= self.world.options.receivers {
            return (Manner::Takes, takes);
        }
        let slow = Duration::from_millis(rng.u64(0..14_000));
        match rng.u32(..10) {
            0 | 1 => (Manner::Answers(500), takes),
            2 => (Manner::Answers(503), takes),
            3 => (Manner::Answers(302), takes),
            4 => (Manner::Takes, slow),
            5 | 6 => (Manner::TakesAndBreaks, takes),
            7 => (Manner::Never, Duration::from_secs(15)),
            8 if rng.u32(..6) == 0 => (Manner::Answers(410), takes),
            9 if rng.bool() => {
                let status = [204, 410, 500, 500][rng.usize(..4)];
                (Manner::Suspended(status), Duration::from_secs(rng.u64(61..100)))
            }
            _ => (Manner::Unreachable, takes),
        }
    }

    async fn receive(&self, delivery: &Delivery) -> Result<EndpointAnswer, DeliveryError> {
        let (manner, time) = self.manner();
        let is_taken =
            matches!(manner, Manner::Takes | Manner::TakesAndBreaks | Manner::Suspended(204));
        let is_there = !matches!(manner, Manner::Unreachable);
        let shipper =
            self.world.facts().shippers.iter().position(|it| it.tenant == delivery.tenant());
        let shipper = shipper.unwrap_or_default();
        let id = delivery.headers[0].1.clone();
        let begun = self.world.delivered(shipper, delivery, is_there);
        if matches!(manner, Manner::Suspended(_)) {
            self.world.suspended(&id);
        }
        sleep(time).await;
        self.world.step(&format!("webhook {id}: {manner:?}"));
        self.world.answered_delivery(&id, is_taken, manner);
        if manner.status() == Some(410) {
            self.world.is_gone(shipper, (&id, begun), manner);
        }
        let answer = |status| EndpointAnswer {
            status,
            retry_after: (status == 503).then(|| "600".to_owned()),
            body_prefix: Vec::new(),
        };
        match manner {
            Manner::Takes => Ok(answer(204)),
            Manner::TakesAndBreaks => Err(DeliveryError::Broken),
            Manner::Answers(status) | Manner::Suspended(status) => Ok(answer(status)),
            Manner::Never => Err(DeliveryError::TimedOut),
            Manner::Unreachable => Err(DeliveryError::NotConnected),
        }
    }
}

impl Transport for Receivers {
    fn send<'a>(
        &'a self,
        delivery: &'a Delivery,
    ) -> BoxFuture<'a, (i64, Result<EndpointAnswer, DeliveryError>)> {
        async move {
            let began = self.world.clocks.elapsed();
            let answer = self.receive(delivery).await;
            let took = self.world.clocks.elapsed().saturating_sub(began);
            (i64::try_from(took.as_millis()).unwrap(), answer)
        }
        .boxed()
    }
}

impl World {
    /// An event is sent to a shipper's endpoint; answers how often it has been by now.
    fn delivered(&self, shipper: usize, delivery: &Delivery, is_there: bool) -> usize {
        let id = delivery.headers[0].1.clone();
        self.step(&format!("webhook {id} to {}", delivery.url));
        self.check(delivery.url.contains(&format!("shop-{shipper}.")), "event-foreign", || {
            delivery.url.clone()
        });
        if let Some(tag) = self.foreign_words(shipper, &delivery.body) {
            self.violated("event-foreign", format!("{id} shows shipper {shipper} {tag}"));
        }
        if is_there {
            self.check_signature(shipper, delivery);
        }
        self.check_410(shipper, &id);
        self.check_delivered_once(&id);
        let begun = self.check_schedule(&id);
        let known = {
            let mut facts = self.facts();
            let event = facts.deliveries.events.entry(id.clone()).or_default();
            if event.body.is_empty() {
                event.body.clone_from(&delivery.body);
            }
            event.body == delivery.body
        };
        self.check(known, "event-body-differs", || id.clone());
        if let Some(about) = about(&delivery.body) {
            self.check_order_of_events(shipper, &id, &about);
        }
        begun
    }

    /// What happened to a parcel is one event, and comes after what happened before.
    fn check_order_of_events(&self, shipper: usize, id: &str, about: &AboutParcel) {
        let (before, overtaken) = {
            let mut facts = self.facts();
            let before = facts.deliveries.parcels.insert(about.clone(), id.to_owned());
            let was_off = facts.deliveries.was_off.get(&shipper).copied().unwrap_or_default();
            let is_judged = before.is_none() && !was_off;
            (before, is_judged.then(|| overtaken(&facts, about)).flatten())
        };
        let is_same = before.as_ref().is_none_or(|before| before == id);
        self.check(is_same, "event-twice", || format!("{about:?}: {before:?}, {id}"));
        if let Some(detail) = overtaken {
            self.violated("event-order", detail);
        }
    }

    /// What its receiver has, and has said so, is not sent again.
    fn check_delivered_once(&self, id: &str) {
        let delivered = self.facts().deliveries.events.get(id).and_then(|event| event.delivered);
        let Some(delivered) = delivered else { return };
        let is_written = self.clocks.elapsed() > delivered + WRITTEN_WITHIN;
        self.check(!(is_written && self.was_undisturbed(delivered)), "sent-after-delivery", || {
            id.to_owned()
        });
    }

    fn suspended(&self, id: &str) {
        if let Some(event) = self.facts().deliveries.events.get_mut(id) {
            event.was_suspended = true;
        }
    }

    /// An endpoint says that it is gone. That counts unless the event was leased again since.
    fn is_gone(&self, shipper: usize, (id, begun): (&str, usize), manner: Manner) {
        let now = self.clocks.elapsed();
        let mut facts = self.facts();
        let deliveries = &mut facts.deliveries;
        if deliveries.events.get(id).is_some_and(|event| event.begun > begun) {
            return;
        }
        deliveries.may_be_gone.insert(shipper, now);
        deliveries.was_off.insert(shipper, true);
        if matches!(manner, Manner::Answers(_)) {
            deliveries.gone.insert(shipper, now);
        }
    }

    fn check_signature(&self, shipper: usize, delivery: &Delivery) {
        let secret = self.facts().shippers.get(shipper).map(|it| it.webhook.clone());
        let Some(secret) = secret else { return };
        let headers: Vec<_> =
            delivery.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let now = self.clocks.wall().to_utc();
        let verified = Webhook::new([secret]).unwrap().verify_at(&headers[..], &delivery.body, now);
        self.check(verified.is_ok(), "signature", || format!("{:?}", verified.err()));
    }

    /// Nothing is sent to an endpoint that is gone, but for what was on its way.
    fn check_410(&self, shipper: usize, id: &str) {
        let gone = self.facts().deliveries.gone.get(&shipper).copied();
        let grace = Duration::from_secs(60);
        let is_late = gone.is_some_and(|gone| self.clocks.elapsed() > gone + grace);
        let is_known = gone.is_some_and(|gone| self.was_undisturbed(gone));
        self.check(!(is_late && is_known), "disabled-410", || id.to_owned());
    }

    /// The pauses of the schedule are kept, where nothing but the receiver goes wrong.
    fn check_schedule(&self, id: &str) -> usize {
        let Options { store, crashes, jumps, .. } = self.options;
        let now = self.clocks.elapsed();
        let mut facts = self.facts();
        let is_plain = store + crashes + jumps == 0 && !facts.deliveries.was_replayed;
        let event = facts.deliveries.events.entry(id.to_owned()).or_default();
        event.begun += 1;
        let (begun, last) = (event.begun, event.last);
        let was_suspended = event.was_suspended;
        let is_busy = begun > event.attempts.len() + 1;
        drop(facts);
        if !is_plain {
            return begun;
        }
        let most = self.options.attempts();
        self.check(begun <= most || was_suspended, "too-many-attempts", || {
            format!("{id}: {begun}")
        });
        self.check(!is_busy || was_suspended, "sent-twice-at-once", || id.to_owned());
        let is_early = last.is_some_and(|(at, pause)| now < at + Duration::from_millis(pause));
        self.check(!is_early, "schedule-ignored", || id.to_owned());
        begun
    }

    fn answered_delivery(&self, id: &str, is_taken: bool, manner: Manner) {
        let is_success = manner.status() == Some(204);
        let pause =
            if matches!(manner, Manner::Answers(503)) { RETRY_AFTER } else { SHORTEST_PAUSE };
        let now = self.clocks.elapsed();
        if let Some(event) = self.facts().deliveries.events.get_mut(id) {
            if !matches!(manner, Manner::Suspended(_)) {
                event.last = Some((now, pause));
            }
            if matches!(manner, Manner::Takes) {
                event.delivered = Some(now);
            }
            event.is_taken |= is_taken;
            event.attempts.push(is_success);
        }
    }
}

/// What an event is about, if about a parcel's history.
fn about(body: &[u8]) -> Option<AboutParcel> {
    let event: parcelo::model::WebhookEvent = serde_json::from_slice(body).ok()?;
    match event.data {
        EventData::StatusChanged(change) => {
            Some((change.tracking_number.to_string(), change.sequence?, "moved"))
        }
        EventData::ParcelCreated(created) => {
            Some((created.tracking_number.to_string(), 1, "created"))
        }
        _ => None,
    }
}

/// An earlier event of the same parcel that comes only now, though a later one was sent; or one that is neither taken
/// nor has failed often enough.
fn overtaken(facts: &Facts, (number, sequence, kind): &AboutParcel) -> Option<String> {
    let of_parcel = |range| facts.deliveries.parcels.range::<AboutParcel, _>(range);
    let first = (number.clone(), 0, "");
    let own = (number.clone(), *sequence, *kind);
    let last = (number.clone(), u32::MAX, "");
    let later = of_parcel(own.clone()..last).find(|(about, _)| about.1 > *sequence);
    if let Some(((_, later, _), _)) = later {
        return Some(format!("{number}: {sequence} after {later}"));
    }
    let earlier = of_parcel(first..own).find(|(_, id)| {
        let event = facts.deliveries.events.get(*id);
        event.is_some_and(|event| {
            !event.attempts.contains(&true) && event.attempts.len() < RELEASED_AFTER
        })
    });
    earlier.map(|((_, earlier, _), _)| format!("{number}: {sequence} before {earlier} was settled"))
}
