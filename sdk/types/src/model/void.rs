//! Voiding orders (spec: Endpoint list).

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    IdempotencyKey, ItemError, ParcelStatus, Row, TrackingNumber, lenient, lenient::rows,
    macros::setters, time,
};

/// A request to void 1-100 orders (docs/api.md, Void orders).
///
/// Read from JSON alone, its key has no history; [`Saved`](super::Saved) reads it too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "utoipa",
    derive(utoipa::ToSchema),
    schema(description = "A request to void 1-100 orders (docs/api.md, Void orders).")
)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct VoidRequest {
    /// The idempotency key of this write.
    #[cfg_attr(feature = "utoipa", schema(value_type = Option<IdempotencyKey>))]
    pub idempotency_key: IdempotencyKey,
    /// The numbers to void, without repetition.
    pub tracking_numbers: Vec<String>,
    /// The reason; at most 255 characters, shown in the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl VoidRequest {
    /// Returns a request to void the orders with these numbers.
    pub fn new<'n>(
        idempotency_key: IdempotencyKey,
        tracking_numbers: impl IntoIterator<Item = &'n TrackingNumber>,
    ) -> Self {
        let tracking_numbers = tracking_numbers.into_iter().map(ToString::to_string).collect();
        Self { idempotency_key, tracking_numbers, reason: None }
    }

    setters! {
        /// Sets the reason, at most 255 characters, which the history shows.
        with_reason(reason: text);
    }
}

/// Maximum number of orders in one request.
const MAX_VOIDS_PER_REQUEST: usize = 100;

/// A request to void any number of orders, which the client's `Orders::void_many` sends in
/// batches of 100.
///
/// Each hundred is a [`VoidRequest`] with a separate key, which follows from the given key and from the hundred's
/// numbers. So the same key and the same numbers, in the same order, are the same writes in every process; a hundred
/// that has changed is another write, and an order that was void before counts as voided. The keys are made here, and
/// not when sending. They begin with the memory of the given key, which remembers their outcomes: a second request that
/// is made with it knows of the first. Read from JSON alone, they have no history; [`Saved`](super::Saved) reads it
/// too.
///
/// ```
/// use parcelo::{IdempotencyKey, TrackingNumber, VoidManyRequest};
///
/// let numbers: Vec<_> = (0..250)
///     .map(|i| TrackingNumber::parse(&format!("SB-RECALL-{i:04}")))
///     .collect::<Result<_, _>>()?;
/// let key = IdempotencyKey::derive("recalls", "2026-01-10");
/// let request = VoidManyRequest::new(&key, &numbers).with_reason("Recalled");
/// assert_eq!(request.requests().len(), 3);
/// let again = VoidManyRequest::new(&key, &numbers).with_reason("Recalled");
/// assert_eq!(request, again);
/// # Ok::<(), parcelo::InvalidValue>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VoidManyRequest {
    pub(super) requests: Vec<VoidRequest>,
}

impl VoidManyRequest {
    /// Returns a request to void the orders with these numbers.
    pub fn new<'n>(
        key: &IdempotencyKey,
        tracking_numbers: impl IntoIterator<Item = &'n TrackingNumber>,
    ) -> Self {
        let numbers: Vec<_> = tracking_numbers.into_iter().map(ToString::to_string).collect();
        let request = |numbers: &[String]| VoidRequest {
            // A number contains no line feed. The reason is not part of the key: another one for the same write is a
            // conflict, as everywhere.
            idempotency_key: key.part("void", &numbers.join("\n")),
            tracking_numbers: numbers.to_vec(),
            reason: None,
        };
        Self { requests: numbers.chunks(MAX_VOIDS_PER_REQUEST).map(request).collect() }
    }

    /// Sets the reason, at most 255 characters, which the history shows.
    #[must_use]
    pub fn with_reason(self, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        let with_reason = |request: VoidRequest| request.with_reason(reason.clone());
        Self { requests: self.requests.into_iter().map(with_reason).collect() }
    }

    /// Returns the requests, sent one after the other: at most 100 orders each.
    pub fn requests(&self) -> &[VoidRequest] {
        &self.requests
    }
}

/// The response to a void: one result for each requested number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(from = "VoidResponse")]
#[non_exhaustive]
pub struct VoidedOrders {
    /// Numbers of orders that were voided and that were not.
    pub summary: VoidSummary,
    /// The results, in the order of the request.
    #[serde(with = "rows")]
    #[cfg_attr(feature = "utoipa", schema(value_type = Vec<VoidResult>))]
    pub results: Vec<Row<VoidResult>>,
}

#[doc(hidden)]
impl VoidedOrders {
    /// Returns the response with these results, and computes the counts. An unreadable row counts as requested, but
    /// neither as voided nor as failed.
    pub fn new(results: Vec<Row<VoidResult>>) -> Self {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let voided = results.iter().flatten().filter(|result| result.voided).count();
        let summary = VoidSummary {
            requested: count(results.len()),
            voided: count(voided),
            failed: count(results.iter().flatten().count() - voided),
        };
        Self { summary, results }
    }
}

/// The response in JSON. Counts that cannot be parsed are computed.
#[derive(Deserialize)]
struct VoidResponse {
    #[serde(default, deserialize_with = "lenient::option")]
    summary: Option<VoidSummary>,
    #[serde(with = "rows")]
    results: Vec<Row<VoidResult>>,
}

impl From<VoidResponse> for VoidedOrders {
    fn from(VoidResponse { summary, results }: VoidResponse) -> Self {
        let counted = Self::new(results);
        Self { summary: summary.unwrap_or(counted.summary), ..counted }
    }
}

/// Numbers of results by outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct VoidSummary {
    /// Number of requested orders.
    pub requested: u32,
    /// Number of orders that are void now.
    pub voided: u32,
    /// Number of orders that are not void.
    pub failed: u32,
}

#[doc(hidden)]
impl VoidSummary {
    /// Returns the counts for this many requested numbers, of which `voided` are void now.
    pub fn new(requested: u32, voided: u32) -> Self {
        Self { requested, voided, failed: requested.saturating_sub(voided) }
    }
}

/// The result for one order of a void.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct VoidResult {
    /// The number as requested.
    pub tracking_number: String,
    /// True if the order is void now.
    pub voided: bool,
    /// True if the order was void before this request.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub already_voided: Option<bool>,
    /// The status before this request.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub previous_status: Option<ParcelStatus>,
    /// The current status.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub status: Option<ParcelStatus>,
    /// The time at which the order was voided.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        serialize_with = "time::serialize_option",
        skip_serializing_if = "Option::is_none"
    )]
    pub voided_at: Option<DateTime<Utc>>,
    /// The reason why the order was not voided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ItemError>,
}

#[doc(hidden)]
impl VoidResult {
    setters! {
        /// Sets whether the order was void before this request.
        with_already_voided(already_voided: some bool);
        /// Sets the current status.
        with_status(status: some ParcelStatus);
    }
}

#[doc(hidden)]
impl VoidResult {
    /// Returns the result for an order that this request voided at this time.
    pub fn voided(
        tracking_number: impl Into<String>,
        previous_status: ParcelStatus,
        voided_at: DateTime<Utc>,
    ) -> Self {
        Self {
            tracking_number: tracking_number.into(),
            voided: true,
            already_voided: Some(false),
            previous_status: Some(previous_status),
            status: Some(ParcelStatus::Voided),
            voided_at: Some(voided_at),
            error: None,
        }
    }

    /// Returns the result for an order that could not be voided, with the reason.
    pub fn failed(tracking_number: impl Into<String>, error: ItemError) -> Self {
        Self {
            tracking_number: tracking_number.into(),
            voided: false,
            already_voided: None,
            previous_status: None,
            status: None,
            voided_at: None,
            error: Some(error),
        }
    }
}
