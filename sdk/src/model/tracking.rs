//! Tracking: the record, its history, and the batch (spec: Tracking record; api: 4).

use chrono::{DateTime, FixedOffset, Utc};
use serde::{Deserialize, Serialize};

use super::{ItemError, Language, ParcelStatus, TrackingNumber, macros::setters, time};

/// Where a parcel stands, and on request how it got there (docs/api.md, Track a parcel).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
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

impl TrackingRecord {
    /// Where a parcel stands, in English, and when it should arrive; without a history.
    ///
    /// ```
    /// use parcelo::{ParcelStatus, TrackingNumber};
    /// use parcelo::chrono::DateTime;
    /// use parcelo::model::TrackingRecord;
    ///
    /// let number = TrackingNumber::parse("EC7K2M9QX4T8WD0")?;
    /// let day = DateTime::UNIX_EPOCH.fixed_offset();
    /// let record = TrackingRecord::new(number, ParcelStatus::OutForDelivery, day);
    /// assert_eq!(record.status_name, "Out for delivery");
    /// # Ok::<(), parcelo::InvalidValue>(())
    /// ```
    pub fn new(
        tracking_number: TrackingNumber,
        status: ParcelStatus,
        estimated_delivery: DateTime<FixedOffset>,
    ) -> Self {
        let status_name = status.name(Language::En).to_owned();
        Self { tracking_number, status, status_name, estimated_delivery, history: None }
    }
}

setters! { TrackingRecord {
    /// The same with its status in other words.
    with_status_name(status_name: string);
    /// The same with its history, oldest event first.
    with_history(history: some Vec<HistoryEntry>);
} }

/// One event of a parcel's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
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

impl HistoryEntry {
    /// An event at a time and place; its status is named in English.
    pub fn new(
        status: ParcelStatus,
        timestamp: DateTime<Utc>,
        location: impl Into<String>,
    ) -> Self {
        Self {
            status_name: status.name(Language::En).to_owned(),
            status,
            timestamp,
            location: location.into(),
            description: None,
            sequence: None,
        }
    }
}

setters! { HistoryEntry {
    /// The same with its status in other words.
    with_status_name(status_name: string);
    /// The same with more to say.
    with_description(description: text);
    /// The same with its number within the parcel's history, from 1.
    with_sequence(sequence: some u32);
} }

/// A request to track up to 100 parcels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BatchTrackingRequest {
    /// The numbers, in the order of the answer; a malformed one counts as not found.
    pub tracking_numbers: Vec<String>,
    /// Whether each record has its history.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<bool>))]
    pub include_history: bool,
}

impl BatchTrackingRequest {
    /// A request for the records of these parcels, without their history.
    pub fn new(tracking_numbers: Vec<String>) -> Self {
        Self { tracking_numbers, include_history: false }
    }
}

setters! { BatchTrackingRequest {
    /// The same with the history of each parcel, or without.
    with_include_history(include_history: bool);
} }

/// The answer to a batch: one result for each number asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct BatchTracking {
    /// How many were found.
    pub summary: BatchSummary,
    /// In the order asked.
    pub results: Vec<BatchResult>,
}

impl BatchTracking {
    /// The answer with these results, of which so many were found.
    pub fn new(summary: BatchSummary, results: Vec<BatchResult>) -> Self {
        Self { summary, results }
    }
}

/// Counts of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BatchSummary {
    /// Numbers asked for.
    pub requested: u32,
    /// Numbers found.
    pub found: u32,
    /// Numbers not found.
    pub not_found: u32,
}

impl BatchSummary {
    /// So many numbers asked for, of which so many were found.
    pub fn new(requested: u32, found: u32) -> Self {
        Self { requested, found, not_found: requested.saturating_sub(found) }
    }
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
