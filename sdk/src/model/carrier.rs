//! The carriers' API: events and their results (docs/api.md, Carrier events).

use chrono::{DateTime, FixedOffset};
use serde::{Deserialize, Serialize};

use super::{ItemError, ParcelStatus, macros::wire_enum};

/// A carrier's request with 1-100 events (docs/api.md, Carrier events).
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
    /// The carrier's own id of the event. Sending an event again with the same id has no effect.
    pub event_id: String,
    /// The number of the parcel. An unknown number is an error of this event only.
    pub tracking_number: String,
    /// The status that the scan shows.
    pub status: ParcelStatus,
    /// The time of the event, with its offset from UTC: not before 1970, and at most 5 minutes in the future.
    pub occurred_at: DateTime<FixedOffset>,
    /// The place of the event.
    pub location: String,
    /// Further details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The carrier's own status code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carrier_code: Option<String>,
}

wire_enum! {
    /// The outcome of a carrier's event.
    CarrierOutcome {
        /// The event changed the parcel's status.
        Applied = "APPLIED",
        /// The event was added to the history, and changed nothing else.
        Recorded = "RECORDED",
        /// The carrier has sent the event before.
        Duplicate = "DUPLICATE",
        /// The event was rejected, for the reason in `error`.
        Rejected = "REJECTED",
    }
}

/// The response to a carrier: one result for each event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CarrierResults {
    /// Numbers of events by outcome.
    pub summary: CarrierSummary,
    /// The results, in the order of the request.
    pub results: Vec<CarrierResult>,
}

/// Numbers of a carrier's events by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CarrierSummary {
    /// Number of events in the request.
    pub received: u32,
    /// Number of events that changed a status.
    pub applied: u32,
    /// Number of events that were only added to a history.
    pub recorded: u32,
    /// Number of events that had been sent before.
    pub duplicates: u32,
    /// Number of rejected events.
    pub rejected: u32,
}

/// The result for one event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CarrierResult {
    /// The carrier's id of the event.
    pub event_id: String,
    /// The number of the parcel.
    pub tracking_number: String,
    /// The outcome of the event.
    pub outcome: CarrierOutcome,
    /// The reason why the event was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ItemError>,
}
