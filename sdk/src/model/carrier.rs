//! The carriers' API: events and their outcomes (docs/api.md, Carrier events).

use chrono::{DateTime, FixedOffset};
use serde::{Deserialize, Serialize};

use super::{ItemError, ParcelStatus, macros::wire_enum};

/// 1-100 events from a carrier (docs/api.md, Carrier events).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CarrierEvents {
    /// The events, in any order.
    pub events: Vec<CarrierEvent>,
}

/// One scan of a parcel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CarrierEvent {
    /// The carrier's own id of the event; sending it again is safe.
    pub event_id: String,
    /// The parcel; whether there is one is answered for each event.
    pub tracking_number: String,
    /// The status that the scan shows.
    pub status: ParcelStatus,
    /// The time of the event, with an offset; not before 1970, at most 5 minutes ahead.
    pub occurred_at: DateTime<FixedOffset>,
    /// The place of the event.
    pub location: String,
    /// Further details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The carrier's own code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carrier_code: Option<String>,
}

wire_enum! {
    /// The outcome of a carrier's event.
    CarrierOutcome {
        /// It changed the parcel's status.
        Applied = "APPLIED",
        /// It went into the history and changed nothing else.
        Recorded = "RECORDED",
        /// The same carrier has sent it before.
        Duplicate = "DUPLICATE",
        /// It was rejected; `error` says why.
        Rejected = "REJECTED",
    }
}

/// The answer to a carrier: one result for each event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CarrierResults {
    /// The counts.
    pub summary: CarrierSummary,
    /// The results, in the order of the request.
    pub results: Vec<CarrierResult>,
}

/// Counts of a carrier's events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CarrierSummary {
    /// Events sent.
    pub received: u32,
    /// Events that changed a status.
    pub applied: u32,
    /// Events that went into a history only.
    pub recorded: u32,
    /// Events sent before.
    pub duplicates: u32,
    /// Events refused.
    pub rejected: u32,
}

/// The outcome of one event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CarrierResult {
    /// The carrier's id of the event.
    pub event_id: String,
    /// The parcel.
    pub tracking_number: String,
    /// The outcome.
    pub outcome: CarrierOutcome,
    /// The reason why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ItemError>,
}
