//! Authentication: an API key becomes a [`Caller`], a carrier key a [`Carrier`], and an admin token opens the admin
//! API (spec: Authentication; docs/api.md, Carrier events, Admin API).
//!
//! API keys are looked up in memory (`key_cache.rs`), where a revocation by another process arrives within
//! 250 ms. A known carrier key is read from the database too, and a token every time, so that their revocation takes
//! effect at once.

use std::{net::IpAddr, sync::Arc};

use parcelo_domain::{
    AdminTokenRecord, ApiKeyRecord, CarrierKeyRecord, Refusal, Tenant, TraceContext, access,
};
use parcelo_types::{ApiKey, Environment, ErrorCode};
use parcelo_wire::{AdminToken, CarrierKey};

use super::Service;

/// A caller whose API key is valid.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The key.
    pub key: Arc<ApiKeyRecord>,
    /// The trace of the present request.
    pub trace: Option<TraceContext>,
}

impl Caller {
    /// Returns the tenant whose parcels the caller works on.
    pub fn tenant(&self) -> Tenant {
        self.key.scope.tenant
    }
}

/// A carrier whose key is valid.
#[derive(Debug, Clone)]
pub struct Carrier {
    /// The key.
    pub key: Arc<CarrierKeyRecord>,
    /// The trace of the present request.
    pub trace: Option<TraceContext>,
}

impl Service {
    /// Returns the caller whose key is in the `X-API-Key` header of a request to an environment's address.
    pub async fn authenticate(
        &self,
        environment: Environment,
        key: Option<&str>,
    ) -> Result<Caller, Refusal> {
        let text = key.ok_or(ErrorCode::AuthMissingApiKey)?;
        // A key that this service cannot have issued is refused without a read of the database.
        let issued = ApiKey::parse(text).ok().filter(|key| !key.looks_mistyped());
        let key = issued.ok_or(ErrorCode::AuthInvalidApiKey)?;
        let hash = self.secrets().hash_credential(&key);
        let found = self.callers.find(&self.store, &hash).await?;
        // An old secret expires by time alone: nothing is written when it does.
        let valid = found.filter(|record| record.accepts_secret(&hash, self.expiry_now()));
        let record = valid.ok_or(ErrorCode::AuthInvalidApiKey)?;
        let key_environment = record.scope.tenant.environment;
        if key_environment != environment {
            let address = &self.site(key_environment).base_url;
            return Err(Refusal::wrong_environment(key_environment, address.as_deref()));
        }
        Ok(Caller { key: record, trace: None })
    }

    /// Returns the carrier whose key is in the `X-Carrier-Key` header of a request to an environment's address.
    pub async fn authenticate_carrier(
        &self,
        environment: Environment,
        key: Option<&str>,
    ) -> Result<Carrier, Refusal> {
        let unknown = ErrorCode::CarrierAuthFailed;
        let key = CarrierKey::parse(key.ok_or(unknown)?).map_err(|_| unknown)?;
        let hash = self.secrets().hash_credential(&key);
        // An unknown key is refused without a read of the database.
        self.carriers.find(&self.store, &hash).await?.ok_or(unknown)?;
        let found: Option<CarrierKeyRecord> = self.store.credential_by_hash(&hash).await?;
        let is_valid = |key: &CarrierKeyRecord| {
            key.revoked_at.is_none() && key.scope.environment == environment
        };
        Ok(Carrier { key: Arc::new(found.filter(is_valid).ok_or(unknown)?), trace: None })
    }

    /// Returns the id of the admin token in a request's `Authorization` header, if the token is valid.
    pub async fn authenticate_admin(&self, authorization: Option<&str>) -> Result<String, Refusal> {
        let token =
            authorization.and_then(bearer_token).and_then(|text| AdminToken::parse(text).ok());
        let token = token.ok_or(ErrorCode::AdminAuthFailed)?;
        let hash = self.secrets().hash_credential(&token);
        let found: Option<AdminTokenRecord> = self.store.credential_by_hash(&hash).await?;
        match found {
            Some(record) if record.revoked_at.is_none() => Ok(record.id),
            Some(_) | None => Err(ErrorCode::AdminAuthFailed.into()),
        }
    }

    /// Refuses a client address from which the caller's key may not be used.
    pub fn check_address(&self, caller: &Caller, client: IpAddr) -> Result<(), Refusal> {
        if access::is_allowed(&caller.key.scope.ip_list, client) {
            Ok(())
        } else {
            Err(Refusal::ip_not_allowed(client))
        }
    }
}

/// Returns the token of a `Bearer` header. The scheme is case-insensitive (RFC 9110, 11.1).
fn bearer_token(header: &str) -> Option<&str> {
    let (scheme, token) = header.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bearer_tokens_are_parsed() {
        let table = [
            ("Bearer adm_1", Some("adm_1")),
            ("bearer  adm_1 ", Some("adm_1")),
            ("adm_1", None),
            ("Basic adm_1", None),
            ("", None),
        ];
        for (header, token) in table {
            assert_eq!(bearer_token(header), token, "{header}");
        }
    }
}
