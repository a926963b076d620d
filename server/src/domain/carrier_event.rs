//! Carriers' reports about parcels, accepted or refused.

use super::{State, Tenant, parcel::ParcelRowId};
use crate::clock::Millis;

/// A carrier's row id in the database. All keys of a carrier share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CarrierRowId(pub i64);

/// A scan of a parcel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// The state it shows.
    pub state: State,
    /// The time.
    pub at: Millis,
    /// The place.
    pub location: String,
    /// A further description, if there is one.
    pub description: Option<String>,
}

/// A scan as a carrier reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarrierReport {
    /// The carrier.
    pub carrier: CarrierRowId,
    /// The carrier's id of the event.
    pub event_id: String,
    /// The carrier's own code.
    pub code: Option<String>,
    /// The scan.
    pub scan: Scan,
}

/// A carrier's event that was accepted. The same event is not accepted again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedCarrierEvent {
    /// The carrier.
    pub carrier: CarrierRowId,
    /// The carrier's id of the event.
    pub event_id: String,
    /// The parcel.
    pub parcel: ParcelRowId,
    /// Its place in the parcel's history.
    pub sequence: u32,
    /// The carrier's own code.
    pub code: Option<String>,
}

/// A carrier's event that was refused, for people to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarrierException {
    /// The tenant that owns the parcel.
    pub tenant: Tenant,
    /// The parcel.
    pub parcel: ParcelRowId,
    /// The parcel's state at that time.
    pub from: State,
    /// The carrier's report.
    pub report: CarrierReport,
    /// The time of the refusal.
    pub refused_at: Millis,
}
