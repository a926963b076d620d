//! Who calls: an API key becomes a caller, or it is refused (spec: Authentication).
//!
//! Keys are known in memory ([`super::key_cache`]); a revocation, also one by another process, is in force
//! within a second.

use std::{net::IpAddr, sync::Arc};

use parcelo::{ApiKey, Environment, ErrorCode};

use super::{Rotation, Service, key_cache::CachedKey};
use crate::{
    domain::{Refusal, access, keys::KeyRecord},
    store::{KeyChanges, Store, StoreError},
};

/// Somebody whose key is valid.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The key.
    pub key: Arc<KeyRecord>,
}

/// A request as it is known before its key is looked up.
#[derive(Debug, Clone, Copy)]
pub struct Visitor<'a> {
    /// The environment whose address was called.
    pub environment: Environment,
    /// The `X-API-Key` header.
    pub key: Option<&'a str>,
}

impl CachedKey for KeyRecord {
    fn row(&self) -> i64 {
        self.row
    }

    fn hashes(&self) -> Vec<[u8; 32]> {
        if self.revoked_at.is_some() { Vec::new() } else { Self::hashes(self).collect() }
    }

    async fn since(store: &Store, version: i64) -> Result<KeyChanges<Self>, StoreError> {
        store.keys_since(version).await
    }
}

impl Service {
    /// Who the visitor is, by the key alone.
    pub async fn authenticate(&self, visitor: Visitor<'_>) -> Result<Caller, Refusal> {
        let text = visitor.key.ok_or(ErrorCode::AuthMissingApiKey)?;
        let key = ApiKey::parse(text).map_err(|_| ErrorCode::AuthInvalidApiKey)?;
        let hash = self.secrets().hash_of(&key);
        let found = self.callers.find(&self.store, &hash).await?;
        // An old secret ends by the clock, without anything being written.
        let opened = found.filter(|record| record.is_opened_by(&hash, self.expiry()));
        let record = opened.ok_or(ErrorCode::AuthInvalidApiKey)?;
        let environment = record.tenant.environment;
        if environment != visitor.environment {
            let address = &self.site(environment).base_url;
            return Err(Refusal::other_environment(environment, address));
        }
        Ok(Caller { key: record })
    }

    /// Gives a key a new secret; the old one keeps working for `overlap` seconds.
    pub async fn rotate_key(&self, id: &str, overlap: u32) -> Result<Rotation, Refusal> {
        Ok(self.issuer().rotate(id, overlap, self.now()).await?)
    }

    /// Revokes a key with all its secrets, from now on. None if there is no such key.
    pub async fn revoke_key(&self, id: &str) -> Result<Option<KeyRecord>, Refusal> {
        Ok(self.store.revoke_key(id, self.now()).await?)
    }

    /// Whether the caller's key may be used from this address.
    pub fn check_address(&self, caller: &Caller, client: IpAddr) -> Result<(), Refusal> {
        if access::is_allowed(&caller.key.ip_list, client) {
            Ok(())
        } else {
            Err(Refusal::address(client))
        }
    }
}
