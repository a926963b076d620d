//! Credentials as the admin API and the admin commands show them to operators: records without their
//! secrets, and new secrets, which are shown once.

use parcelo_types::{ApiKey, Environment};
use parcelo_wire::{AdminToken, CarrierKey};
use serde::Serialize;

use super::{
    AdminTokenRecord, ApiKeyRecord, CarrierKeyRecord,
    admin::timestamp,
    credentials::{AdminScope, ApiKeyScope, CarrierScope, Credential, Scope},
    key_uses::{LastUseDays, date_text},
};
use crate::Millis;

/// A kind of credential that is shown to operators.
pub trait ViewableScope: Scope {
    /// The credential without its secret.
    type View: Serialize;
    /// A new credential with its secret.
    type Created: Serialize;

    /// Returns the credential as of `now`. The days of last uses are those of API keys.
    fn view(record: &Credential<Self>, uses: &LastUseDays, now: Millis) -> Self::View;
    /// Returns a new credential with its secret.
    fn created(secret: &Self::Secret, record: &Credential<Self>) -> Self::Created;
}

impl ViewableScope for ApiKeyScope {
    type View = ApiKeyView;
    type Created = NewApiKey;

    fn view(record: &ApiKeyRecord, uses: &LastUseDays, now: Millis) -> ApiKeyView {
        ApiKeyView {
            key_id: record.id.clone(),
            last4: record.last4.clone(),
            account: record.scope.account.clone(),
            environment: record.scope.tenant.environment,
            name: record.name.clone(),
            allowed_countries: record.scope.countries.to_wire(),
            ip_whitelist: record.scope.ip_list.iter().map(ToString::to_string).collect(),
            created_at: timestamp(record.created_at),
            last_used: uses.get(&record.row).copied().map(date_text),
            revoked_at: record.revoked_at.map(timestamp),
            old_secret_until: record.old_secret_until(now).map(timestamp),
        }
    }

    fn created(key: &ApiKey, record: &ApiKeyRecord) -> NewApiKey {
        NewApiKey {
            key_id: record.id.clone(),
            key: key.secret().to_owned(),
            environment: record.scope.tenant.environment,
            name: record.name.clone(),
            allowed_countries: record.scope.countries.to_wire(),
            ip_whitelist: record.scope.ip_list.iter().map(ToString::to_string).collect(),
        }
    }
}

impl ViewableScope for CarrierScope {
    type View = CarrierKeyView;
    type Created = NewCarrierKeyView;

    fn view(record: &CarrierKeyRecord, _: &LastUseDays, _: Millis) -> CarrierKeyView {
        CarrierKeyView {
            key_id: record.id.clone(),
            last4: record.last4.clone(),
            environment: record.scope.environment,
            name: record.name.clone(),
            created_at: timestamp(record.created_at),
            revoked_at: record.revoked_at.map(timestamp),
        }
    }

    fn created(key: &CarrierKey, record: &CarrierKeyRecord) -> NewCarrierKeyView {
        NewCarrierKeyView {
            key_id: record.id.clone(),
            key: key.secret().to_owned(),
            environment: record.scope.environment,
            name: record.name.clone(),
        }
    }
}

impl ViewableScope for AdminScope {
    type View = TokenView;
    type Created = NewTokenView;

    fn view(record: &AdminTokenRecord, _: &LastUseDays, _: Millis) -> TokenView {
        TokenView {
            token_id: record.id.clone(),
            last4: record.last4.clone(),
            name: record.name.clone(),
            created_at: timestamp(record.created_at),
            revoked_at: record.revoked_at.map(timestamp),
        }
    }

    fn created(token: &AdminToken, record: &AdminTokenRecord) -> NewTokenView {
        let (token_id, name) = (record.id.clone(), record.name.clone());
        NewTokenView { token_id, token: token.secret().to_owned(), name }
    }
}

/// A newly created API key. No other response contains the whole key.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewApiKey {
    key_id: String,
    /// The whole key, shown this once.
    key: String,
    environment: Environment,
    name: String,
    /// Country codes, or `*` alone for all.
    allowed_countries: Vec<&'static str>,
    ip_whitelist: Vec<String>,
}

/// An API key with its new secret. No other response contains the new secret.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RotatedApiKey {
    key_id: String,
    /// The whole key with its new secret, shown this once.
    key: String,
    /// The time until which the old secret still works; null if it no longer does.
    old_secret_until: Option<String>,
}

impl RotatedApiKey {
    /// Combines the key with its record.
    pub fn new(key: &ApiKey, record: &ApiKeyRecord, now: Millis) -> Self {
        Self {
            key_id: record.id.clone(),
            key: key.secret().to_owned(),
            old_secret_until: record.old_secret_until(now).map(timestamp),
        }
    }
}

/// An API key.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyView {
    key_id: String,
    /// The key's last four characters.
    last4: String,
    account: String,
    environment: Environment,
    name: String,
    /// Country codes, or `*` alone for all.
    allowed_countries: Vec<&'static str>,
    /// Empty when the key works from anywhere.
    ip_whitelist: Vec<String>,
    created_at: String,
    /// The day of its last use in UTC, such as 2026-01-30; null if it was never used.
    last_used: Option<String>,
    revoked_at: Option<String>,
    /// The time until which an old secret still works; null if none does.
    old_secret_until: Option<String>,
}

/// A newly created carrier key. No other response contains the whole key.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewCarrierKeyView {
    key_id: String,
    /// The whole key, shown this once.
    key: String,
    environment: Environment,
    name: String,
}

/// A carrier key.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CarrierKeyView {
    key_id: String,
    /// The key's last four characters.
    last4: String,
    environment: Environment,
    /// The carrier's name.
    name: String,
    created_at: String,
    revoked_at: Option<String>,
}

/// A newly created admin token. No other place shows the whole token.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewTokenView {
    token_id: String,
    token: String,
    name: String,
}

/// An admin token.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenView {
    token_id: String,
    /// The token's last four characters.
    last4: String,
    name: String,
    created_at: String,
    revoked_at: Option<String>,
}
