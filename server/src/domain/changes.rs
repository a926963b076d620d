//! What a decision wants done to the store, as plain data: all of it is committed, or none.

use parcelo::{Awb, CountryCode, TrackingNumber};
use ulid::Ulid;

use super::{
    IdempotencyRecord, Tenant,
    carrier_event::{AcceptedCarrierEvent, CarrierException},
    mail::{NewMail, mails_of},
    parcel::{Event, ParcelRowId, Step, Version},
    tracking_numbers::Redraws,
};
use crate::clock::Millis;

/// One mutation: committed whole, together with the answer it will be replayed with.
#[derive(Debug, Clone)]
pub struct Changes {
    /// When it was decided.
    pub now: Millis,
    /// The idempotency record to be kept, for keyed writes.
    pub idempotency_record: Option<IdempotencyRecord>,
    /// The parcels it was decided on, at the versions that were seen.
    pub expect: Vec<(ParcelRowId, Version)>,
    /// What to do, in this order.
    pub ops: Vec<Op>,
}

impl Changes {
    /// Counts the orders among them.
    pub(crate) fn orders(&self) -> usize {
        self.ops.iter().filter(|op| matches!(op, Op::InsertParcel(_))).count()
    }

    /// Returns the body that is kept with them; an empty one if none is.
    pub(crate) fn into_body(self) -> Vec<u8> {
        self.idempotency_record.map(|record| record.body).unwrap_or_default()
    }

    /// Adds the e-mails that they bring.
    pub(crate) fn add_mails(&mut self) {
        let at = self.now;
        let moves = self.ops.iter().filter_map(|op| match op {
            Op::Move { parcel, event } => Some((*parcel, event)),
            _ => None,
        });
        let mails: Vec<_> = moves.flat_map(|(parcel, event)| mails_of(parcel, event, at)).collect();
        self.ops.extend(mails.into_iter().map(Op::InsertMail));
    }
}

/// One change of the store.
#[derive(Debug, Clone)]
pub enum Op {
    /// A new parcel; its first two events are implied by its row.
    InsertParcel(Box<NewParcel>),
    /// A new manifest; its parcels move by operations of their own.
    InsertManifest(Box<NewManifest>),
    /// The parcel takes the event's state, and the event joins its history.
    Move {
        /// The parcel.
        parcel: ParcelRowId,
        /// What happened.
        event: Event,
    },
    /// The event joins the parcel's history; its state stays.
    AddEvent {
        /// The parcel.
        parcel: ParcelRowId,
        /// What happened.
        event: Event,
    },
    /// The carrier's event is taken and will not be again.
    RecordCarrierEvent(AcceptedCarrierEvent),
    /// A carrier's event was refused; it joins the log.
    LogCarrierException(Box<CarrierException>),
    /// The parcel's next simulated step.
    Schedule {
        /// The parcel.
        parcel: ParcelRowId,
        /// The step.
        step: Step,
    },
    /// The parcel's label is reprinted.
    Reprint {
        /// The parcel.
        parcel: ParcelRowId,
        /// When.
        at: Millis,
    },
    /// An e-mail about a change of the parcel, unless it has had it.
    InsertMail(NewMail),
    /// The parcel has no further simulated steps.
    CancelSteps {
        /// The parcel.
        parcel: ParcelRowId,
    },
}

/// A parcel that does not exist yet. It starts with two events at `created_at` in `origin`:
/// `ORDERED` (sequence 1) and `LABEL_GENERATED` (sequence 2).
#[derive(Debug, Clone)]
pub struct NewParcel {
    /// The public id, without its prefix; the label's id is the same with another prefix.
    pub id: Ulid,
    /// Whose it is.
    pub tenant: Tenant,
    /// Its number, unique in its environment whatever the case.
    pub tracking_number: TrackingNumber,
    /// The numbers to be had instead if that one is taken; none for a number that the caller gave.
    pub(crate) redraws: Option<Redraws>,
    /// When it was created.
    pub created_at: Millis,
    /// Where its first events happened: `Miami, US`.
    pub origin: String,
    /// Where simulated events happen: `Quito, EC`.
    pub destination: String,
    /// The destination country.
    pub country: CountryCode,
    /// The promised day at the destination, in days since 1970 began.
    pub promised_day: i32,
    /// Its first simulated step.
    pub step: Option<Step>,
    /// The order as it was accepted, as [`StoredOrder::to_json`] writes it.
    pub order: String,
    /// The order's id in the caller's system.
    pub external_order_id: Option<String>,
}

/// A manifest that does not exist yet.
#[derive(Debug, Clone)]
pub struct NewManifest {
    /// The public id, without its prefix.
    pub id: Ulid,
    /// Whose it is.
    pub tenant: Tenant,
    /// Its air waybill; a tenant has one manifest under it.
    pub awb: Awb,
    /// When it was submitted.
    pub submitted_at: Millis,
    /// The [`Manifest`](parcelo::model::Manifest) as JSON.
    pub document: Vec<u8>,
    /// Its parcels.
    pub parcels: Vec<ParcelRowId>,
}
