//! Operations on the account of an API key: health, the list of parcels, the sandbox's reset (spec: health, parcels,
//! sandbox/reset).

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    Arrival, Awb, CountryCode, Environment, LabelLink, Language, ManifestId, MaybeKnown, ParcelId,
    ParcelStatus, TrackingNumber, lenient, macros::setters, time,
};

/// The response to a health check: the API key that was used, and its permissions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Health {
    /// Always true.
    #[doc(hidden)]
    #[serde(default)]
    pub success: bool,
    /// Always `ok`.
    pub status: String,
    /// Always true: without a valid key the response is an error.
    pub authenticated: bool,
    /// The name of the API key.
    pub key_name: String,
    /// The countries that the key may ship to; `["*"]` stands for every supported one.
    #[serde(deserialize_with = "lenient::words")]
    pub allowed_countries: Vec<String>,
    /// The environment that the key belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "utoipa", schema(value_type = Option<Environment>))]
    pub environment: Option<MaybeKnown<Environment>>,
}

#[doc(hidden)]
impl Health {
    /// Returns the response for a key that may ship to every country.
    pub fn new(key_name: impl Into<String>, environment: Environment) -> Self {
        Self {
            success: true,
            status: "ok".to_owned(),
            authenticated: true,
            key_name: key_name.into(),
            allowed_countries: vec!["*".to_owned()],
            environment: Some(environment.into()),
        }
    }

    /// Sets the countries that the key may ship to.
    #[must_use]
    pub fn with_allowed_countries<C: Into<String>>(
        self,
        countries: impl IntoIterator<Item = C>,
    ) -> Self {
        Self { allowed_countries: countries.into_iter().map(Into::into).collect(), ..self }
    }
}

/// A parcel in a list. Lists contain no personal data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ParcelSummary {
    /// The parcel's id, `par_…`.
    #[cfg_attr(feature = "utoipa", schema(value_type = String))]
    pub id: ParcelId,
    /// The tracking number.
    pub tracking_number: TrackingNumber,
    /// The status of the parcel.
    pub status: ParcelStatus,
    /// The name of the status, in the language of the response.
    pub status_name: String,
    /// The order's id in the caller's system.
    #[serde(default)]
    pub external_order_id: Option<String>,
    /// The customer's reference.
    #[serde(default)]
    pub customer_reference: Option<String>,
    /// The destination country.
    #[cfg_attr(feature = "utoipa", schema(value_type = CountryCode))]
    pub destination_country: MaybeKnown<CountryCode>,
    /// The URL of the label file.
    #[serde(default)]
    #[cfg_attr(feature = "utoipa", schema(value_type = Option<String>))]
    pub label_url: Option<LabelLink>,
    /// The manifest that the parcel belongs to.
    #[serde(default)]
    #[cfg_attr(feature = "utoipa", schema(value_type = Option<String>))]
    pub manifest_id: Option<ManifestId>,
    /// The air waybill of the manifest.
    #[serde(default)]
    #[cfg_attr(feature = "utoipa", schema(value_type = Option<Awb>))]
    pub awb_number: Option<MaybeKnown<Awb>>,
    /// The current forecast of the arrival; absent while no day can be promised.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub arrival: Option<Arrival>,
    /// Time of creation.
    #[serde(with = "time")]
    pub created_at: DateTime<Utc>,
    /// Time of the last change of status.
    #[serde(with = "time")]
    pub updated_at: DateTime<Utc>,
}

#[doc(hidden)]
impl ParcelSummary {
    /// Returns a parcel in a list, created at the beginning of 1970, with its status named in English.
    pub fn new(
        id: ParcelId,
        tracking_number: TrackingNumber,
        status: ParcelStatus,
        destination_country: CountryCode,
    ) -> Self {
        Self {
            id,
            tracking_number,
            status_name: status.name(Language::En).to_owned(),
            status,
            external_order_id: None,
            customer_reference: None,
            destination_country: destination_country.into(),
            label_url: None,
            manifest_id: None,
            awb_number: None,
            arrival: None,
            created_at: DateTime::UNIX_EPOCH,
            updated_at: DateTime::UNIX_EPOCH,
        }
    }

    setters! {
        /// Sets the status's name.
        with_status_name(status_name: string);
        /// Sets the order's id in the caller's system.
        with_external_order_id(external_order_id: text);
        /// Sets the customer's reference.
        with_customer_reference(customer_reference: text);
        /// Sets the URL of the label file.
        with_label_url(label_url: link);
        /// Sets the manifest.
        with_manifest_id(manifest_id: some ManifestId);
        /// Sets the air waybill.
        with_awb_number(awb_number: some MaybeKnown<Awb>);
        /// Sets the forecast of the arrival.
        with_arrival(arrival: some Arrival);
        /// Sets the time of creation.
        with_created_at(created_at: DateTime<Utc>);
        /// Sets the time of the last change of status.
        with_updated_at(updated_at: DateTime<Utc>);
    }
}

/// The position of a page in its list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PageMeta {
    /// The number of this page, from 1.
    pub page: u32,
    /// Number of items on a full page.
    pub limit: u32,
    /// Number of items in the whole list.
    pub total: u64,
    /// Number of pages of the whole list; 0 if it is empty.
    pub total_pages: u64,
    /// True if there may be more items than `total` says: the search has very many matches, or older parcels are still
    /// being added to its index.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_partial: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

#[doc(hidden)]
impl PageMeta {
    /// Returns a page, from 1, of a list with `total` items; the number of pages is computed.
    pub fn new(page: u32, limit: u32, total: u64) -> Self {
        let total_pages = total.div_ceil(u64::from(limit.max(1)));
        Self { page, limit, total, total_pages, is_partial: false }
    }
}

/// The result of a sandbox reset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SandboxReset {
    /// Number of deleted objects of each kind.
    pub deleted: Deleted,
    /// Time of the reset.
    #[serde(with = "time")]
    pub reset_at: DateTime<Utc>,
}

#[doc(hidden)]
impl SandboxReset {
    /// Returns a reset at this time.
    pub fn new(deleted: Deleted, reset_at: DateTime<Utc>) -> Self {
        Self { deleted, reset_at }
    }
}

/// Numbers of the objects that a reset deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Deleted {
    /// Number of deleted parcels.
    pub parcels: u64,
    /// Number of deleted labels.
    pub labels: u64,
    /// Number of deleted manifests.
    pub manifests: u64,
    /// Number of deleted tracking events.
    pub tracking_events: u64,
    /// Number of deleted idempotency keys.
    pub idempotency_keys: u64,
    /// Number of deleted webhook deliveries.
    pub webhook_deliveries: u64,
}

#[doc(hidden)]
impl Deleted {
    setters! {
        /// Sets the number of parcels.
        with_parcels(parcels: u64);
        /// Sets the number of labels.
        with_labels(labels: u64);
        /// Sets the number of manifests.
        with_manifests(manifests: u64);
        /// Sets the number of tracking events.
        with_tracking_events(tracking_events: u64);
        /// Sets the number of idempotency keys.
        with_idempotency_keys(idempotency_keys: u64);
        /// Sets the number of webhook deliveries.
        with_webhook_deliveries(webhook_deliveries: u64);
    }
}
