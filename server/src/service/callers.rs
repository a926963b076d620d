//! Who calls: an API key becomes a caller, or it is refused (spec: Authentication).
//!
//! A key that was read from the store is believed for a quarter of a second, so that a revocation,
//! also one by another process, is in force within one.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use parcelo::{ApiKey, Environment, ErrorCode};

use super::Service;
use crate::{
    clock::{is_older, stopwatch},
    core::{Refusal, access, keys::KeyRecord},
};

const BELIEVED: Duration = Duration::from_millis(250);
const MOST_KEYS: usize = 10_000;

/// Somebody whose key is valid.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The key.
    pub key: Arc<KeyRecord>,
}

/// Somebody at the door: what is known before the key is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Visitor<'a> {
    /// The environment whose address was called.
    pub environment: Environment,
    /// The `X-API-Key` header.
    pub key: Option<&'a str>,
}

#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<HashMap<[u8; 32], Known>>);

/// A key, and when it was read.
type Known = (Arc<KeyRecord>, Instant);

impl Cache {
    fn get(&self, hash: &[u8; 32]) -> Option<Arc<KeyRecord>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (key, read) = known.get(hash)?;
        (!is_older(*read, BELIEVED)).then(|| Arc::clone(key))
    }

    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn put(&self, key: &Arc<KeyRecord>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_KEYS {
            known.clear();
        }
        known.insert(key.hash, (Arc::clone(key), stopwatch()));
    }
}

impl Service {
    /// Who the visitor is, by the key alone.
    pub fn authenticate(&self, visitor: Visitor<'_>) -> Result<Caller, Refusal> {
        let text = visitor.key.ok_or(ErrorCode::AuthMissingApiKey)?;
        let key = ApiKey::parse(text).map_err(|_| ErrorCode::AuthInvalidApiKey)?;
        let record = self.key_record(&key)?.filter(|record| record.revoked_at.is_none());
        let record = record.ok_or(ErrorCode::AuthInvalidApiKey)?;
        let environment = record.tenant.environment;
        if environment != visitor.environment {
            let address = &self.site(environment).base_url;
            return Err(Refusal::other_environment(environment, address));
        }
        Ok(Caller { key: record })
    }

    /// Revokes a key, from now on. None if there is no such key.
    pub async fn revoke_key(&self, id: &str) -> Result<Option<KeyRecord>, Refusal> {
        let revoked = self.store.revoke_key(id, self.now()).await?;
        self.callers.clear();
        Ok(revoked)
    }

    /// Whether the caller's key may be used from this address.
    pub fn check_address(&self, caller: &Caller, client: IpAddr) -> Result<(), Refusal> {
        if access::is_allowed(&caller.key.ip_list, client) {
            Ok(())
        } else {
            Err(Refusal::address(client))
        }
    }

    fn key_record(&self, key: &ApiKey) -> Result<Option<Arc<KeyRecord>>, Refusal> {
        let hash = self.secrets().hash_of(key);
        if let Some(known) = self.callers.get(&hash) {
            return Ok(Some(known));
        }
        let found = self.store.key_by_hash(&hash)?.map(Arc::new);
        if let Some(record) = &found {
            self.callers.put(record);
        }
        Ok(found)
    }
}
