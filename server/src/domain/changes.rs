//! What a decision wants done to the store, as plain data: all of it is committed, or none.

use parcelo::{Awb, CountryCode, OrderRequest, TrackingNumber};
use ulid::Ulid;

use super::{IdempotencyRecord, State, Tenant};
use crate::clock::Millis;

/// A parcel's row id in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParcelRowId(pub i64);

/// How often a parcel's row has been written; a decision names the version it was made on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub i64);

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
    /// Its row, which no other parcel ever had.
    pub row: ParcelRowId,
    /// The public id, without its prefix; the label's id is the same with another prefix.
    pub id: Ulid,
    /// Whose it is.
    pub tenant: Tenant,
    /// Its number, unique in its environment whatever the case.
    pub tracking_number: TrackingNumber,
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
    /// The order as it was accepted.
    pub order: OrderRequest,
}

/// A simulated step that is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Its place in the scenario, from 0.
    pub index: u8,
    /// When it happens.
    pub due: Millis,
}

/// One event of a parcel's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// 1, 2, 3… within the parcel.
    pub sequence: u32,
    /// The state at this event.
    pub state: State,
    /// When it happened.
    pub at: Millis,
    /// City and country.
    pub location: String,
    /// More, when there is more to say.
    pub description: Option<String>,
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

/// A carrier's number inside the database; all keys of one carrier share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CarrierRowId(pub i64);

/// A parcel was seen somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// The state it shows.
    pub state: State,
    /// When.
    pub at: Millis,
    /// Where.
    pub location: String,
    /// More, when there is more to say.
    pub description: Option<String>,
}

/// A scan as a carrier reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarrierReport {
    /// The carrier.
    pub carrier: CarrierRowId,
    /// The carrier's own id of the event.
    pub event_id: String,
    /// The carrier's own code.
    pub code: Option<String>,
    /// The scan.
    pub scan: Scan,
}

/// A carrier's event that was taken; the same one is not taken again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedCarrierEvent {
    /// The carrier.
    pub carrier: CarrierRowId,
    /// The carrier's own id of the event.
    pub event_id: String,
    /// The parcel.
    pub parcel: ParcelRowId,
    /// Its place in the parcel's history.
    pub sequence: u32,
    /// The carrier's own code.
    pub code: Option<String>,
}

/// A carrier's event that was refused, for people to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarrierException {
    /// Whose parcel it is.
    pub tenant: Tenant,
    /// The parcel.
    pub parcel: ParcelRowId,
    /// Where the parcel stood.
    pub from: State,
    /// What the carrier had reported.
    pub report: CarrierReport,
    /// When it was refused.
    pub refused_at: Millis,
}

/// A parcel as the store gives it to a decision; the order itself is read on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParcelRow {
    /// Its number inside the database.
    pub key: ParcelRowId,
    /// How often it has been written.
    pub version: Version,
    /// The public id, without its prefix.
    pub id: Ulid,
    /// Whose it is.
    pub tenant: Tenant,
    /// Its number, as it was given.
    pub tracking_number: TrackingNumber,
    /// Where it stands.
    pub state: State,
    /// When it was created.
    pub created_at: Millis,
    /// When the newest event of its history happened.
    pub updated_at: Millis,
    /// Where its first events happened.
    pub origin: String,
    /// Where simulated events happen.
    pub destination: String,
    /// The destination country.
    pub country: CountryCode,
    /// The promised day at the destination, in days since 1970 began.
    pub promised_day: i32,
    /// 1, and one more with each reprint.
    pub label_version: u32,
    /// When its label was last reprinted.
    pub reprinted_at: Option<Millis>,
    /// The sequence of its last event.
    pub last_sequence: u32,
    /// Its next simulated step.
    pub step: Option<Step>,
}
