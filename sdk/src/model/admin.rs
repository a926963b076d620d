//! The requests of the admin API (docs/api.md, Admin API).

use chrono::{DateTime, Utc};

use super::{CountryCode, Environment, EventKind};

/// The account of a request that does not name one.
pub const DEFAULT_ACCOUNT: &str = "default";

/// A request to create an API key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(rename_all = "camelCase"))]
pub struct KeyRequest {
    /// The name of the key: 1-100 visible characters.
    pub name: String,
    /// The environment in which the key works.
    pub environment: Environment,
    /// The destinations that the key may create orders for, or only `*` for all.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub allowed_countries: AllowedCountries,
    /// The addresses and networks that the key may be used from, at most 50; any if the list is empty.
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = Option<Vec<String>>))]
    pub ip_whitelist: Vec<String>,
    /// The account that the key belongs to, which is created if it does not exist. The default is `default`.
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = Option<String>))]
    pub account: String,
}

/// The destinations that a key may create orders for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedCountries {
    /// Every supported destination; `["*"]` in JSON.
    All,
    /// Only these destinations.
    Only(Vec<CountryCode>),
}

/// A request to configure a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WebhookRequest {
    /// The address that events are sent to: at most 500 characters, https in production.
    pub url: String,
    /// The kinds of events to send in addition to `parcel.status_changed`, which is always sent.
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = Option<Vec<EventKind>>))]
    pub events: Vec<EventKind>,
}

/// A request to create a carrier key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CarrierKeyRequest {
    /// The carrier's name: 1-100 visible characters. Keys with the same name in one environment belong to one carrier.
    pub name: String,
    /// The environment whose parcels the carrier may report on.
    pub environment: Environment,
}

/// A request to create an account.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccountRequest {
    /// The name of the account: 1-100 visible characters.
    pub name: String,
}

/// A request to resend events to a webhook. Without a filter, all failed and held events are resent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(rename_all = "camelCase"))]
pub struct ReplayRequest {
    /// Only the event with this id, `evt_…`, whether or not it was delivered.
    pub event_id: Option<String>,
    /// Only events that have failed or been held since this time.
    pub since: Option<DateTime<Utc>>,
}
