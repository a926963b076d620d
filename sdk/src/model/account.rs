//! What an API key sees of itself and its parcels: health, the list, the sandbox's reset
//! (spec: health, parcels, sandbox/reset; api: 4).

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    CountryCode, Environment, ManifestId, MaybeKnown, ParcelId, ParcelStatus, TrackingNumber,
    lenient, time,
};

/// The answer to a health check: which key this is and what it may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// Always true.
    #[serde(default)]
    pub success: bool,
    /// `ok`.
    pub status: String,
    /// Always true: without a valid key the answer is an error.
    pub authenticated: bool,
    /// The name given to the key when it was made.
    pub key_name: String,
    /// The countries it may ship to; `["*"]` is every supported one.
    #[serde(deserialize_with = "lenient::words")]
    pub allowed_countries: Vec<String>,
    /// The environment it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Environment>))]
    pub environment: Option<MaybeKnown<Environment>>,
}

/// A parcel in a list; lists carry no personal data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ParcelSummary {
    /// The parcel's id, `par_…`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub id: ParcelId,
    /// The tracking number.
    pub tracking_number: TrackingNumber,
    /// Where it stands.
    pub status: ParcelStatus,
    /// The status in words, in the language of the answer.
    pub status_name: String,
    /// The order's id in the caller's system.
    #[serde(default)]
    pub external_order_id: Option<String>,
    /// The customer's reference.
    #[serde(default)]
    pub customer_reference: Option<String>,
    /// Where it goes.
    #[cfg_attr(feature = "openapi", schema(value_type = CountryCode))]
    pub destination_country: MaybeKnown<CountryCode>,
    /// Where the label file lies.
    #[serde(default)]
    pub label_url: Option<String>,
    /// The manifest it belongs to.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub manifest_id: Option<ManifestId>,
    /// The manifest's air waybill.
    #[serde(default)]
    pub awb_number: Option<String>,
    /// When it was created.
    #[serde(with = "time")]
    pub created_at: DateTime<Utc>,
    /// When its status last changed.
    #[serde(with = "time")]
    pub updated_at: DateTime<Utc>,
}

/// Where a page stands in its list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PageMeta {
    /// This page, from 1.
    pub page: u32,
    /// Items on a full page.
    pub limit: u32,
    /// Items in the whole list.
    pub total: u64,
    /// Pages in the whole list; 0 when it is empty.
    pub total_pages: u64,
}

/// What a reset of the sandbox deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SandboxReset {
    /// How much of each kind.
    pub deleted: Deleted,
    /// When.
    #[serde(with = "time")]
    pub reset_at: DateTime<Utc>,
}

/// Counts of what a reset deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Deleted {
    /// Parcels.
    pub parcels: u64,
    /// Labels.
    pub labels: u64,
    /// Manifests.
    pub manifests: u64,
    /// Tracking events.
    pub tracking_events: u64,
    /// Idempotency keys.
    pub idempotency_keys: u64,
    /// Webhook deliveries.
    pub webhook_deliveries: u64,
}
