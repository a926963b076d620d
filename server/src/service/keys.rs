//! Making API keys and their secrets: for the admin commands, the first start and the mock server.

use ipnet::IpNet;
use parcelo::{ApiKey, Environment};

use crate::{
    clock::Millis,
    domain::{
        AccountRecord, Secrets, Tenant,
        keys::{Countries, KeyRecord, MAX_OVERLAP_SECONDS, NewKey, NewSecret},
    },
    ids::{Ids, named},
    store::{Store, StoreError},
};

/// A key that is to be made (spec: API key properties).
#[derive(Debug, Clone)]
pub struct NewKeyRequest {
    /// The account it belongs to; it is made when it does not exist.
    pub account: String,
    /// The environment.
    pub environment: Environment,
    /// A name for people.
    pub name: String,
    /// Where it may ship to.
    pub countries: Countries,
    /// From where it may be used; empty is from anywhere.
    pub ip_list: Vec<IpNet>,
    /// Requests a second, when not the environment's.
    pub rate_limit: Option<u32>,
}

/// What became of a key that was to get a new secret.
#[derive(Debug)]
pub enum Rotation {
    /// It has one, which is shown this once.
    Done(ApiKey, Box<KeyRecord>),
    /// It is revoked, and stays so.
    Revoked,
    /// There is no such key.
    Unknown,
}

/// Makes API keys.
#[derive(Debug, Clone, Copy)]
pub struct KeyIssuer<'a> {
    /// Where they are kept.
    pub store: &'a Store,
    /// What they are hashed with.
    pub secrets: &'a Secrets,
    /// What they are made of.
    pub ids: &'a Ids,
}

impl KeyIssuer<'_> {
    /// The account with a name, made if there is none; and whether it is new.
    pub async fn account(
        &self,
        name: String,
        now: Millis,
    ) -> Result<(AccountRecord, bool), StoreError> {
        let id = named("acc", self.ids.ulid(now));
        let account = self.store.account(&name, id.clone(), now).await?;
        let record = self.store.account_record(account).await?;
        let is_new = record.id == id;
        Ok((record, is_new))
    }

    /// Makes a key. The whole key is in the answer and nowhere else: it is not stored.
    pub async fn issue(
        &self,
        request: NewKeyRequest,
        now: Millis,
    ) -> Result<(ApiKey, KeyRecord), StoreError> {
        let Self { store, secrets, ids } = self;
        let account = store.account(&request.account, named("acc", ids.ulid(now)), now).await?;
        let key = ApiKey::from_random(request.environment, &ids.key_bytes());
        let record = NewKey {
            id: named("key", ids.ulid(now)),
            tenant: Tenant { account, environment: request.environment },
            name: request.name,
            countries: request.countries,
            ip_list: request.ip_list,
            rate_limit: request.rate_limit,
            hash: secrets.hash_of(&key),
            last4: last4(key.secret()),
            created_at: now,
        };
        let record = store.insert_key(record).await?;
        Ok((key, record))
    }

    /// Gives a key a new secret. It stays the same key: its idempotency records, limit, countries and
    /// name are its record's. Old secrets keep working for `overlap` seconds at most.
    pub async fn rotate(
        &self,
        id: &str,
        overlap: u32,
        now: Millis,
    ) -> Result<Rotation, StoreError> {
        let Self { store, secrets, ids } = self;
        let Some(before) = store.key(id).await? else { return Ok(Rotation::Unknown) };
        let overlap = i64::from(overlap.min(MAX_OVERLAP_SECONDS)) * Millis::SECOND;
        let key = ApiKey::from_random(before.tenant.environment, &ids.key_bytes());
        let secret = NewSecret {
            hash: secrets.hash_of(&key),
            last4: last4(key.secret()),
            old_until: now.plus(overlap),
        };
        Ok(match store.rotate_key(id, secret).await? {
            Some(record) if record.revoked_at.is_none() => Rotation::Done(key, Box::new(record)),
            Some(_) => Rotation::Revoked,
            None => Rotation::Unknown,
        })
    }
}

/// By which people tell keys apart.
pub(super) fn last4(key: &str) -> String {
    key.get(key.len().saturating_sub(4)..).unwrap_or_default().to_owned()
}
