//! What a carrier reports of a parcel, and what becomes of it: taken, or refused.

use super::{State, Tenant, parcel::ParcelRowId};
use crate::clock::Millis;

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
