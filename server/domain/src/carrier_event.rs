//! Carriers' reports about parcels, accepted or refused.

use super::{State, Tenant, parcel::ParcelRowId};
use crate::Millis;

/// A carrier's row id in the database. All keys of a carrier share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CarrierRowId(pub i64);

/// A scan of a parcel: its state at a time and a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// The state of the parcel at the scan.
    pub state: State,
    /// The time of the scan, according to the carrier.
    pub at: Millis,
    /// The place of the scan: city and country.
    pub location: String,
    /// A further description, if there is one.
    pub description: Option<String>,
}

/// A scan as a carrier reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarrierReport {
    /// The carrier that sent the report.
    pub carrier: CarrierRowId,
    /// The carrier's id of the event.
    pub event_id: String,
    /// The carrier's own status code.
    pub code: Option<String>,
    /// The scan that is reported.
    pub scan: Scan,
}

/// A carrier's event that was accepted. The same event is not accepted again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedCarrierEvent {
    /// The carrier that sent the event.
    pub carrier: CarrierRowId,
    /// The carrier's id of the event.
    pub event_id: String,
    /// The parcel that the event is about.
    pub parcel: ParcelRowId,
    /// Its place in the parcel's history.
    pub sequence: u32,
    /// The carrier's own status code.
    pub code: Option<String>,
}

/// A carrier's event that was refused, and that an operator should check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarrierException {
    /// The tenant that owns the parcel.
    pub tenant: Tenant,
    /// The parcel that the event is about.
    pub parcel: ParcelRowId,
    /// The parcel's state when the event was refused.
    pub from: State,
    /// The carrier's report.
    pub report: CarrierReport,
    /// The time of the refusal.
    pub refused_at: Millis,
}
