//! What the store holds, compared with what is known: between two things that happen, and when all is quiet.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::FutureExt;
use parcelo::{ParcelStatus, TrackingNumber};

use super::{
    clients::SCANNED_AT,
    episodes::{REPLAYED, SETTLED_AFTER},
    receivers::Received,
    world::World,
};
use crate::{
    clock::Millis,
    domain::{Event, ParcelRow, State, webhooks::DeliveryStatus},
    store::{CreationRecord, disturbed::undisturbed},
};

/// The table of docs/api.md, States and transitions, on its own, so that a mistake in the domain's is found.
const TRANSITIONS: [(&str, &[&str]); 13] = [
    ("ORDERED", &["LABEL_GENERATED", "VOIDED"]),
    (
        "LABEL_GENERATED",
        &["MANIFEST_SUBMITTED", "PICKED_UP", "CUSTOMS_CLEARANCE", "IN_TRANSIT", "VOIDED"],
    ),
    ("MANIFEST_SUBMITTED", &["PICKED_UP", "CUSTOMS_CLEARANCE", "IN_TRANSIT"]),
    (
        "PICKED_UP",
        &[
            "CUSTOMS_CLEARANCE",
            "CUSTOMS_HOLD",
            "IN_TRANSIT",
            "OUT_FOR_DELIVERY",
            "RETURN_TO_SENDER",
        ],
    ),
    ("CUSTOMS_CLEARANCE", &["CUSTOMS_HOLD", "IN_TRANSIT", "OUT_FOR_DELIVERY", "RETURN_TO_SENDER"]),
    ("CUSTOMS_HOLD", &["CUSTOMS_CLEARANCE", "IN_TRANSIT", "RETURN_TO_SENDER"]),
    (
        "IN_TRANSIT",
        &[
            "CUSTOMS_CLEARANCE",
            "CUSTOMS_HOLD",
            "OUT_FOR_DELIVERY",
            "DELIVERY_ATTEMPTED",
            "DELIVERED",
            "DELIVERY_FAILED",
            "RETURN_TO_SENDER",
        ],
    ),
    (
        "OUT_FOR_DELIVERY",
        &["DELIVERED", "DELIVERY_ATTEMPTED", "DELIVERY_FAILED", "IN_TRANSIT", "RETURN_TO_SENDER"],
    ),
    (
        "DELIVERY_ATTEMPTED",
        &["OUT_FOR_DELIVERY", "IN_TRANSIT", "DELIVERED", "DELIVERY_FAILED", "RETURN_TO_SENDER"],
    ),
    ("DELIVERY_FAILED", &["OUT_FOR_DELIVERY", "DELIVERED", "RETURN_TO_SENDER"]),
    ("DELIVERED", &[]),
    ("RETURN_TO_SENDER", &[]),
    ("VOIDED", &[]),
];

/// After how many days the sandbox forgets a parcel; its clock may have been some hours ahead.
const RETENTION: i64 = 30 * 24 * Millis::HOUR;
const MARGIN: i64 = 24 * Millis::HOUR;

impl World {
    /// Everything that must hold at any time.
    pub(super) fn audit(&self) {
        undisturbed(|| self.audit_store());
    }

    fn audit_store(&self) {
        let listed = self.store.creations().now_or_never();
        let Some(Ok(listed)) = listed else { return };
        self.check_orders(&listed);
        for parcel in &listed {
            self.check_parcel(parcel);
        }
    }

    /// One parcel for each order, and none less than were acknowledged.
    fn check_orders(&self, listed: &[CreationRecord]) {
        let mut found: BTreeMap<&str, Vec<&CreationRecord>> = BTreeMap::new();
        for parcel in listed {
            found
                .entry(parcel.external_order_id.as_deref().unwrap_or_default())
                .or_default()
                .push(parcel);
        }
        let mut numbers = BTreeSet::new();
        let twice = listed.iter().find(|parcel| !numbers.insert(parcel.number.to_uppercase()));
        self.check(twice.is_none(), "tracking-reused", || twice.unwrap().number.clone());
        let orders = self.facts().orders.clone();
        for (id, order) in &orders {
            let parcels = found.get(id.as_str()).map(Vec::as_slice).unwrap_or_default();
            self.check(parcels.len() <= order.parcels, "one-parcel-a-key", || {
                format!("{id} has {} parcels, may have {}", parcels.len(), order.parcels)
            });
            let may_exist = order.may_exist || order.open_calls > 0;
            self.check(parcels.is_empty() || may_exist, "not-executed-but-was", || id.clone());
            let Some(number) = &order.acknowledged else { continue };
            let is_there = parcels.iter().any(|parcel| parcel.number == *number);
            self.check(is_there || self.may_be_deleted(id), "acknowledged-lost", || {
                format!("{id} {number}")
            });
        }
        for id in found.keys() {
            self.check(orders.contains_key(*id), "unknown-parcel", || (*id).to_owned());
        }
    }

    /// Whether an order's parcel need not be there any more.
    pub(super) fn may_be_deleted(&self, id: &str) -> bool {
        let facts = self.facts();
        let Some(order) = facts.orders.get(id) else { return true };
        let now = self.clocks.wall().0;
        let is_old = !self.options.production && order.made_at.0 + RETENTION - MARGIN < now;
        is_old || order.may_be_reset
    }

    fn check_parcel(&self, record: &CreationRecord) {
        let number = TrackingNumber::parse(&record.number).unwrap();
        let environment = self.options.environment();
        let found = self.store.parcel(environment, &number).now_or_never();
        let Some(Ok(Some(parcel))) = found else {
            return self.violated("parcel-not-found", record.number.clone());
        };
        let Some(Ok(mut events)) = self.store.events(&parcel).now_or_never() else { return };
        events.sort_by_key(|event| event.sequence);
        let is_whole = events.iter().zip(1..).all(|(event, at)| event.sequence == at);
        self.check(is_whole, "sequence-gap", || record.number.clone());
        let mut scans = BTreeSet::new();
        let scanned = events.iter().map(|event| &event.location);
        let twice = scanned.filter(|at| at.starts_with(SCANNED_AT)).find(|at| !scans.insert(*at));
        self.check(twice.is_none(), "scan-twice", || format!("{}: {twice:?}", record.number));
        self.check_history(&parcel, &events);
        let seen = events.iter().map(|event| {
            let status = ParcelStatus::from(event.state);
            (event.sequence, format!("{status:?} {}", event.location))
        });
        self.saw_history(&record.number, seen.collect());
        self.check_order_of(record, &parcel);
    }

    fn check_order_of(&self, record: &CreationRecord, parcel: &ParcelRow) {
        let id = record.external_order_id.clone().unwrap_or_default();
        let Some(order) = self.facts().orders.get(&id).cloned() else { return };
        let owner = self.facts().shippers.get(order.shipper).map(|it| it.tenant);
        self.check(owner == Some(parcel.tenant), "other-tenant", || id.clone());
        if order.acknowledged.as_ref() != Some(&record.number) || order.parcels > 1 {
            return;
        }
        self.check(!order.voided || parcel.state == State::Voided, "acknowledged-lost", || {
            format!("{id} was voided")
        });
        let last = order.reprints.last().copied().unwrap_or_default();
        self.check(parcel.label_version >= last, "acknowledged-lost", || {
            format!("{id} was reprinted as version {last}")
        });
        let left = matches!(parcel.state, State::Ordered | State::LabelGenerated | State::Voided);
        self.check(order.manifest.is_none() || !left, "acknowledged-lost", || {
            format!("{id} is in a manifest, and {:?}", parcel.state)
        });
    }

    /// The moves of a history are those of the table, and lead to where the parcel stands.
    fn check_history(&self, parcel: &ParcelRow, events: &[Event]) {
        let mut state = State::Ordered;
        for pair in moves(events).windows(2) {
            let (from, to) = (pair[0].state, pair[1].state);
            let name = |state| ParcelStatus::from(state).to_string();
            let next = TRANSITIONS.iter().find(|(state, _)| *state == name(from));
            let is_legal = next.is_some_and(|(_, next)| next.contains(&name(to).as_str()));
            self.check(is_legal, "history-illegal", || {
                format!("{}: {from:?} to {to:?}", parcel.tracking_number)
            });
            state = to;
        }
        self.check(state == parcel.state, "history-illegal", || {
            format!(
                "{}: {state:?} by its history, {:?} by its row",
                parcel.tracking_number, parcel.state
            )
        });
    }

    /// What was seen of a history stays as it was.
    pub(super) fn saw_history(&self, number: &str, seen: BTreeMap<u32, String>) {
        let changed = {
            let mut facts = self.facts();
            let known = facts.histories.entry(number.to_owned()).or_default();
            let differs = |(sequence, what): (&u32, &String)| {
                known.get(sequence).is_some_and(|known| known != what)
            };
            let changed = seen.iter().any(differs);
            known.extend(seen);
            changed
        };
        self.check(!changed, "history-changed", || number.to_owned());
    }

    /// When nothing went wrong for long enough: every event has arrived, and nothing waits.
    pub(super) fn audit_settled(&self) {
        let shippers = self.facts().shippers.clone();
        for shipper in &shippers {
            let Some(Ok(log)) = self.store.deliveries(shipper.tenant, 100_000).now_or_never()
            else {
                continue;
            };
            for event in log {
                let is_open = matches!(
                    event.delivery_status,
                    DeliveryStatus::Waiting | DeliveryStatus::Ready | DeliveryStatus::Held
                );
                self.check(!is_open, "not-settled", || {
                    format!("{:?} {:?}", event.tracking_number, event.delivery_status)
                });
            }
        }
        let Some(Ok(listed)) = self.store.creations().now_or_never() else { return };
        for record in &listed {
            self.check_arrived(record);
        }
    }

    /// Whether an event was too old for the last replay, after the schedule had given it up, or while its endpoint was
    /// off: then it is held for 30 days, and no longer.
    fn is_given_up(&self, sent: Option<&Received>, event: &Event, was_off: bool) -> bool {
        // The last attempt of a server that ends is written down by no one.
        let attempts = self.options.attempts() - usize::from(self.options.crashes > 0);
        let is_over = sent.is_some_and(|sent| sent.attempts.len() >= attempts);
        let days = i64::try_from(SETTLED_AFTER.as_millis()).unwrap();
        let replayed_from = self.clocks.wall().plus(-REPLAYED - days);
        (is_over || was_off) && event.at < replayed_from
    }

    /// Each move of a parcel has reached its shipper's endpoint.
    fn check_arrived(&self, record: &CreationRecord) {
        let number = TrackingNumber::parse(&record.number).unwrap();
        let found = self.store.parcel(self.options.environment(), &number).now_or_never();
        let Some(Ok(Some(parcel))) = found else { return };
        let Some(Ok(mut events)) = self.store.events(&parcel).now_or_never() else { return };
        events.sort_by_key(|event| event.sequence);
        // The second shipper asked to hear of creations.
        let second = self.facts().shippers.get(1).map(|it| it.tenant);
        let shipper = self.facts().shippers.iter().position(|it| it.tenant == parcel.tenant);
        let was_off = shipper.is_some_and(|it| self.facts().deliveries.was_off.contains_key(&it));
        let first = events.iter().take(usize::from(second == Some(parcel.tenant)));
        let created = first.map(|event| (event, "created"));
        let moved = moves(&events).into_iter().skip(1).map(|event| (event, "moved"));
        for (event, kind) in moved.chain(created) {
            let is_taken = {
                let facts = self.facts();
                let about = (record.number.clone(), event.sequence, kind);
                let sent = facts.deliveries.parcels.get(&about);
                let sent = sent.map(|id| &facts.deliveries.events[id]);
                sent.is_some_and(|sent| sent.is_taken) || self.is_given_up(sent, event, was_off)
            };
            self.check(is_taken, "event-lost", || {
                format!("{} {} {kind}", record.number, event.sequence)
            });
        }
    }

    /// No event was given up before its schedule was over, and none was tried more often than that.
    pub(super) fn audit_schedule(&self) {
        let attempts_of_all = if self.options.production { 10 } else { 3 };
        let shippers = self.facts().shippers.clone();
        for shipper in &shippers {
            let Some(Ok(log)) = self.store.deliveries(shipper.tenant, 100_000).now_or_never()
            else {
                continue;
            };
            for event in log {
                let id = crate::ids::named("evt", event.event);
                let (made, was_off) = {
                    let facts = self.facts();
                    let made = facts.deliveries.events.get(&id).map_or(0, |it| it.attempts.len());
                    (made, facts.deliveries.was_off.values().any(|off| *off))
                };
                let is_known = self.options.store + self.options.crashes == 0;
                self.check(!is_known || event.attempts.len() >= made, "attempt-not-logged", || {
                    format!("{id}: {made}, {} in the log", event.attempts.len())
                });
                let number = event.attempts.iter().map(|attempt| attempt.number).max().unwrap_or(0);
                self.check(number <= attempts_of_all, "too-many-attempts", || {
                    format!("{id}: {number}")
                });
                let is_early = event.delivery_status == DeliveryStatus::Failed
                    && made < attempts_of_all as usize
                    && !was_off;
                self.check(!is_early, "given-up-early", || format!("{id}: {made}"));
                let delivered = {
                    let facts = self.facts();
                    facts.deliveries.events.get(&id).and_then(|event| event.delivered)
                };
                let is_undone = event.delivery_status == DeliveryStatus::Failed
                    && delivered.is_some_and(|moment| self.was_undisturbed(moment));
                self.check(!is_undone, "delivery-undone", || id.clone());
            }
        }
    }
}

/// The events that moved the parcel, as they were written: a late scan and a repeated status did not. What is late is
/// judged as the domain judges it, by when the parcel was last updated: a move sets that, even to an earlier time when
/// the clock was ahead before, and an event that moves nothing only puts it off.
fn moves(events: &[Event]) -> Vec<&Event> {
    let mut moves: Vec<&Event> = Vec::new();
    let mut updated_at = Millis(i64::MIN);
    for event in events {
        let by_us =
            matches!(event.state, State::LabelGenerated | State::Voided | State::ManifestSubmitted);
        let is_new = moves.last().is_none_or(|last| event.state != last.state);
        if by_us || (is_new && event.at >= updated_at) {
            moves.push(event);
            updated_at = event.at;
        } else {
            updated_at = updated_at.max(event.at);
        }
    }
    moves
}
