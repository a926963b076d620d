//! What operators ask of the admin API (api: 12).

use chrono::{DateTime, Utc};

use super::{CountryCode, Environment, EventKind};

/// The account that is meant when none is named.
pub const DEFAULT_ACCOUNT: &str = "default";

/// A request to make an API key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(rename_all = "camelCase"))]
pub struct KeyRequest {
    /// What its owner calls it: 1-100 characters, all of which can be seen.
    pub name: String,
    /// The environment it works in.
    pub environment: Environment,
    /// The destinations it may create orders for, or `*` alone for all.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub allowed_countries: AllowedCountries,
    /// The addresses and networks it works from, at most 50; from anywhere when there is none.
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = Option<Vec<String>>))]
    pub ip_whitelist: Vec<String>,
    /// The account it belongs to; it is made when it does not exist. `default` when absent.
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

/// A request to set a webhook up.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WebhookRequest {
    /// Where events are sent: at most 500 characters, https in production.
    pub url: String,
    /// Kinds that are sent besides `parcel.status_changed`, which always is.
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = Option<Vec<EventKind>>))]
    pub events: Vec<EventKind>,
}

/// A request to make a carrier key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CarrierKeyRequest {
    /// The carrier's name, 1-100 characters, all of which can be seen: keys of one name in one
    /// environment are one carrier's.
    pub name: String,
    /// The environment whose parcels it may report on.
    pub environment: Environment,
}

/// A request to make an account.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccountRequest {
    /// Its name: 1-100 characters, all of which can be seen.
    pub name: String,
}

/// A request to send events to a webhook again: all that failed or were held, unless it says which.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(rename_all = "camelCase"))]
pub struct ReplayRequest {
    /// This event only, delivered or not: `evt_…`
    pub event_id: Option<String>,
    /// What failed or was held since then.
    pub since: Option<DateTime<Utc>>,
}
