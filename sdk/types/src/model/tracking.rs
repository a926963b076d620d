//! Tracking: the record, its history, and the batch (spec: Tracking record).

use chrono::{DateTime, FixedOffset, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{
    Arrival, ItemError, Language, ParcelStatus, Row, TrackingNumber, Unreadable, lenient,
    lenient::rows, macros::setters, time,
};

/// A parcel's status, and its history on request (docs/api.md, Track a parcel).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TrackingRecord {
    /// The tracking number.
    pub tracking_number: TrackingNumber,
    /// The current status.
    pub status: ParcelStatus,
    /// The name of the current status, in the language of the response.
    pub status_name: String,
    /// The end of the promised day at the destination, with the destination's own offset.
    #[serde(serialize_with = "time::serialize_with_offset")]
    pub estimated_delivery: DateTime<FixedOffset>,
    /// The arrival that can be stated now; absent while no day can be promised.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub arrival: Option<Arrival>,
    /// The history, oldest event first; present only when it was requested.
    #[serde(default, with = "rows::option", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "utoipa", schema(value_type = Option<Vec<HistoryEntry>>))]
    pub history: Option<Vec<Row<HistoryEntry>>>,
}

#[doc(hidden)]
impl TrackingRecord {
    /// Returns a parcel's status, named in English, and its estimated delivery, without a history.
    pub fn new(
        tracking_number: TrackingNumber,
        status: ParcelStatus,
        estimated_delivery: DateTime<FixedOffset>,
    ) -> Self {
        let status_name = status.name(Language::En).to_owned();
        Self {
            tracking_number,
            status,
            status_name,
            estimated_delivery,
            arrival: None,
            history: None,
        }
    }

    setters! {
        /// Sets the status's name.
        with_status_name(status_name: string);
        /// Sets the forecast of the arrival.
        with_arrival(arrival: some Arrival);
        /// Sets the history, oldest event first.
        with_history(history: some Vec<Row<HistoryEntry>>);
    }
}

/// One event of a parcel's history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HistoryEntry {
    /// The status at this event.
    pub status: ParcelStatus,
    /// The status's name, in the language of the response.
    pub status_name: String,
    /// Time of the event.
    #[serde(with = "time")]
    pub timestamp: DateTime<Utc>,
    /// City and country of the event.
    pub location: String,
    /// Further details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The position of the event in the parcel's history, from 1; not on the public page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u32>,
}

#[doc(hidden)]
impl HistoryEntry {
    /// Returns an event at a time and place; its status is named in English.
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

    setters! {
        /// Sets the status's name.
        with_status_name(status_name: string);
        /// Sets further details.
        with_description(description: text);
        /// Sets the position in the parcel's history, from 1.
        with_sequence(sequence: some u32);
    }
}

/// A request to track up to 100 parcels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BatchTrackingRequest {
    /// The numbers, in the order of the results; a malformed number counts as not found.
    pub tracking_numbers: Vec<String>,
    /// True if the records should include their history.
    #[serde(default)]
    #[cfg_attr(feature = "utoipa", schema(value_type = Option<bool>))]
    pub include_history: bool,
}

#[doc(hidden)]
impl BatchTrackingRequest {
    /// Returns a request for the records of these parcels, without their history.
    pub fn new(tracking_numbers: Vec<String>) -> Self {
        Self { tracking_numbers, include_history: false }
    }

    setters! {
        /// Sets whether the records include their history.
        with_include_history(include_history: bool);
    }
}

/// The response to a batch: one result for each requested number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(from = "BatchResponse")]
#[non_exhaustive]
pub struct BatchTracking {
    /// Numbers of parcels that were found and that were not.
    pub summary: BatchSummary,
    /// The results, in the order of the request.
    pub results: Vec<BatchResult>,
}

#[doc(hidden)]
impl BatchTracking {
    /// Returns the response with these results, and computes the counts.
    pub fn new(results: Vec<BatchResult>) -> Self {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let is_missing = |result: &&BatchResult| matches!(result, BatchResult::NotFound { .. });
        let summary = BatchSummary {
            requested: count(results.len()),
            found: count(results.iter().filter(|result| result.tracking().is_some()).count()),
            not_found: count(results.iter().filter(is_missing).count()),
        };
        Self { summary, results }
    }
}

/// The response in JSON. Counts that cannot be parsed are computed.
#[derive(Deserialize)]
struct BatchResponse {
    #[serde(default, deserialize_with = "lenient::option")]
    summary: Option<BatchSummary>,
    #[serde(deserialize_with = "lenient::list")]
    results: Vec<BatchResult>,
}

impl From<BatchResponse> for BatchTracking {
    fn from(BatchResponse { summary, results }: BatchResponse) -> Self {
        let counted = Self::new(results);
        Self { summary: summary.unwrap_or(counted.summary), ..counted }
    }
}

/// Numbers of results by outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BatchSummary {
    /// Number of requested parcels.
    pub requested: u32,
    /// Number of parcels that were found.
    pub found: u32,
    /// Number of parcels that were not found.
    pub not_found: u32,
}

#[doc(hidden)]
impl BatchSummary {
    /// Returns the counts for this many requested numbers, of which `found` were found.
    pub fn new(requested: u32, found: u32) -> Self {
        Self { requested, found, not_found: requested.saturating_sub(found) }
    }
}

/// The result for one number of a batch.
///
/// ```
/// # use parcelo::model::BatchResult;
/// let result: BatchResult = serde_json::from_str(r#"{
///     "trackingNumber": "EC7K2M9QX4T8WD0", "found": false,
///     "error": {"code": "PARCEL_NOT_FOUND", "message": "No.", "message_es": "No."}}"#)?;
/// match &result {
///     BatchResult::Found { tracking, .. } => println!("{}", tracking.status_name),
///     BatchResult::NotFound { error, .. } => println!("{}", error.message),
///     BatchResult::Unreadable { row, .. } => println!("{}", row.json()),
/// }
/// assert_eq!((result.tracking_number(), result.tracking()), (Some("EC7K2M9QX4T8WD0"), None));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum BatchResult {
    /// The caller has a parcel with this number.
    #[non_exhaustive]
    Found {
        /// The number as requested.
        tracking_number: String,
        /// The record of the parcel.
        tracking: Box<TrackingRecord>,
    },
    /// The caller has no such parcel, or the service cannot say.
    #[non_exhaustive]
    NotFound {
        /// The number as requested.
        tracking_number: String,
        /// The reason why there is no record.
        error: ItemError,
    },
    /// A result that this version cannot read.
    #[non_exhaustive]
    Unreadable {
        /// The number as requested, if it can be read.
        tracking_number: Option<String>,
        /// The result, unchanged.
        row: Unreadable,
    },
}

impl BatchResult {
    /// Returns the result for a number with a record.
    #[doc(hidden)]
    pub fn found(tracking_number: impl Into<String>, tracking: TrackingRecord) -> Self {
        let (tracking_number, tracking) = (tracking_number.into(), Box::new(tracking));
        Self::Found { tracking_number, tracking }
    }

    /// Returns the result for a number without a record, with the reason.
    #[doc(hidden)]
    pub fn not_found(tracking_number: impl Into<String>, error: ItemError) -> Self {
        Self::NotFound { tracking_number: tracking_number.into(), error }
    }

    /// Returns the number as requested; `None` only if it cannot be read.
    pub fn tracking_number(&self) -> Option<&str> {
        match self {
            Self::Found { tracking_number, .. } | Self::NotFound { tracking_number, .. } => {
                Some(tracking_number)
            }
            Self::Unreadable { tracking_number, .. } => tracking_number.as_deref(),
        }
    }

    /// Returns the record, if the parcel was found.
    pub fn tracking(&self) -> Option<&TrackingRecord> {
        match self {
            Self::Found { tracking, .. } => Some(tracking),
            Self::NotFound { .. } | Self::Unreadable { .. } => None,
        }
    }
}

/// A result in JSON, for deserialization.
#[derive(Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "utoipa",
    schema(as = BatchResult, description = "One number of a batch.")
)]
#[serde(rename_all = "camelCase")]
struct BatchRow {
    /// The number as requested.
    tracking_number: String,
    /// True if the caller has a parcel with this number.
    found: bool,
    /// The record, if the parcel was found.
    #[serde(default)]
    tracking: Option<TrackingRecord>,
    /// The reason, if it was not found.
    #[serde(default)]
    error: Option<ItemError>,
}

/// A result in JSON, for serialization.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BatchRowView<'a> {
    tracking_number: &'a str,
    found: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracking: Option<&'a TrackingRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ItemError>,
}

impl Serialize for BatchResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (tracking_number, tracking, error) = match self {
            Self::Found { tracking_number, tracking } => (tracking_number, Some(&**tracking), None),
            Self::NotFound { tracking_number, error } => (tracking_number, None, Some(error)),
            Self::Unreadable { row, .. } => return row.serialize(serializer),
        };
        let found = tracking.is_some();
        BatchRowView { tracking_number, found, tracking, error }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for BatchResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Value::deserialize(deserializer)?;
        Ok(match BatchRow::deserialize(&json) {
            Ok(BatchRow { tracking_number, found: true, tracking: Some(tracking), .. }) => {
                Self::Found { tracking_number, tracking: Box::new(tracking) }
            }
            Ok(BatchRow { tracking_number, found: false, error: Some(error), .. }) => {
                Self::NotFound { tracking_number, error }
            }
            Ok(_) | Err(_) => {
                let row = Unreadable::new(json);
                Self::Unreadable { tracking_number: row.member("trackingNumber"), row }
            }
        })
    }
}

#[cfg(feature = "utoipa")]
impl utoipa::PartialSchema for BatchResult {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        BatchRow::schema()
    }
}

#[cfg(feature = "utoipa")]
impl utoipa::ToSchema for BatchResult {
    fn schemas(
        schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::schema::Schema>)>,
    ) {
        BatchRow::schemas(schemas);
    }
}
