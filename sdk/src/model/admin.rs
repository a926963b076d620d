//! The requests of the admin API (docs/api.md, Admin API).

use chrono::{DateTime, Utc};

use super::{CountryCode, Environment, EventKind};

/// The account of requests that do not name one.
pub const DEFAULT_ACCOUNT: &str = "default";

/// A request to create an API key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(rename_all = "camelCase"))]
pub struct KeyRequest {
    /// Its name: 1-100 visible characters.
    pub name: String,
    /// The environment it works in.
    pub environment: Environment,
    /// The destinations it may create orders for, or `*` alone for all.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub allowed_countries: AllowedCountries,
    /// The addresses and networks it may be used from, at most 50; any if the list is empty.
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = Option<Vec<String>>))]
    pub ip_whitelist: Vec<String>,
    /// The account it belongs to, which is created if it does not exist. `default` when absent.
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = Option<String>))]
    pub account: String,
}

/// The destinations that a key may create orders for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedCountries {
    /// Every supported destination: `["*"]`.
    All,
    /// These.
    Only(Vec<CountryCode>),
}

/// A request to configure a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WebhookRequest {
    /// The address that events are sent to: at most 500 characters, https in production.
    pub url: String,
    /// Kinds of events sent besides `parcel.status_changed`, which always is.
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = Option<Vec<EventKind>>))]
    pub events: Vec<EventKind>,
}

/// A request to create a carrier key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CarrierKeyRequest {
    /// The carrier's name, 1-100 characters, all of which can be seen: keys of one name in one
    /// environment are one carrier's.
    pub name: String,
    /// The environment whose parcels it may report on.
    pub environment: Environment,
}

/// A request to create an account.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccountRequest {
    /// Its name: 1-100 visible characters.
    pub name: String,
}

/// A request to resend events to a webhook: by default every failed or held one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(rename_all = "camelCase"))]
pub struct ReplayRequest {
    /// This event only, delivered or not: `evt_…`
    pub event_id: Option<String>,
    /// Only events that failed or were held since this time.
    pub since: Option<DateTime<Utc>>,
}
