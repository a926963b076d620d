//! Tracking: the record, its history, and the batch (spec: Tracking record; api: 4).

use chrono::{DateTime, FixedOffset, Utc};
use serde::{Deserialize, Serialize};

use super::{ItemError, ParcelStatus, TrackingNumber, time};

/// Where a parcel stands, and on request how it got there (docs/api.md, Track a parcel).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct TrackingRecord {
    /// The tracking number.
    pub tracking_number: TrackingNumber,
    /// The current status.
    pub status: ParcelStatus,
    /// The current status in words, in the language of the answer.
    pub status_name: String,
    /// The end of the promised day at the destination, with the destination's own offset.
    pub estimated_delivery: DateTime<FixedOffset>,
    /// Oldest first; there only when it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<HistoryEntry>>,
}

/// One event of a parcel's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// The status at this event.
    pub status: ParcelStatus,
    /// The status in words, in the language of the answer.
    pub status_name: String,
    /// When it happened.
    #[serde(with = "time")]
    pub timestamp: DateTime<Utc>,
    /// City and country of the event.
    pub location: String,
    /// More, when there is more to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// 1, 2, 3… within the parcel; the public page leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u32>,
}

/// A request to track up to 100 parcels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct BatchTrackingRequest {
    /// The numbers, in the order of the answer; a malformed one counts as not found.
    pub tracking_numbers: Vec<String>,
    /// Whether each record has its history.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<bool>))]
    pub include_history: bool,
}

/// The answer to a batch: one result for each number asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchTracking {
    /// How many were found.
    pub summary: BatchSummary,
    /// In the order asked.
    pub results: Vec<BatchResult>,
}

/// Counts of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct BatchSummary {
    /// Numbers asked for.
    pub requested: u32,
    /// Numbers found.
    pub found: u32,
    /// Numbers not found.
    pub not_found: u32,
}

/// One number of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct BatchResult {
    /// The number as it was asked.
    pub tracking_number: String,
    /// Whether the caller has such a parcel.
    pub found: bool,
    /// The record, when found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracking: Option<TrackingRecord>,
    /// Why not, when not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ItemError>,
}
