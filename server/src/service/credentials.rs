//! Making credentials and their secrets: for the admin commands, the admin API, the dashboard, the first
//! start and the mock server.

use ipnet::IpNet;
use parcelo::{ApiKey, Environment};

use super::Service;
use crate::{
    clock::Millis,
    domain::{
        AccountRecord, ApiKeyRecord, Countries, NewCredential, Refusal, Secrets, Tenant,
        audit::{Actor, Author},
        credentials::{ApiKeyScope, Credential, MAX_OVERLAP_SECONDS, NewSecret},
        secrets::HashedKey,
    },
    ids::{Ids, named},
    store::{Store, StoreError, StoredScope},
};

/// An API key that is to be made (spec: API key properties).
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

/// What became of an API key that was to get a new secret.
#[derive(Debug)]
pub enum Rotation {
    /// It has one, which is shown this once.
    Done(ApiKey, Box<ApiKeyRecord>),
    /// It is revoked, and stays so.
    Revoked,
    /// There is no such key.
    Unknown,
}

/// Makes credentials. The whole secret is in its answers and nowhere else: it is not stored.
#[derive(Debug, Clone)]
pub struct CredentialIssuer<'a> {
    /// Where they are kept.
    pub store: &'a Store,
    /// What they are hashed with.
    pub secrets: &'a Secrets,
    /// What they are made of.
    pub ids: &'a Ids,
    /// Who makes them.
    pub by: Author,
}

impl CredentialIssuer<'_> {
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

    /// Makes an API key, and its account unless one has the name.
    pub async fn issue_api_key(
        &self,
        request: NewKeyRequest,
        now: Millis,
    ) -> Result<(ApiKey, ApiKeyRecord), StoreError> {
        let NewKeyRequest { account, environment, name, countries, ip_list, rate_limit } = request;
        let id = named("acc", self.ids.ulid(now));
        let tenant = Tenant { account: self.store.account(&account, id, now).await?, environment };
        let scope = ApiKeyScope { tenant, account, countries, ip_list, rate_limit };
        self.issue(name, scope, now).await
    }

    /// Makes a credential of any kind. A second carrier key of one name in one environment is the same
    /// carrier's.
    pub async fn issue<S: StoredScope>(
        &self,
        name: String,
        scope: S::New,
        now: Millis,
    ) -> Result<(S::Secret, Credential<S>), StoreError> {
        let secret = S::generate(&scope, &self.ids.key_bytes());
        let (hash, last4) = (self.secrets.hash_of(&secret), last4(secret.text()));
        let id = named(S::ID_PREFIX, self.ids.ulid(now));
        let new = NewCredential { id, name, hash, last4, created_at: now, scope };
        Ok((secret, self.store.insert_credential(new, &self.by).await?))
    }

    /// Gives an API key a new secret. It stays the same key: its idempotency records, limit, countries and
    /// name are its record's. Old secrets keep working for `overlap` seconds at most.
    pub async fn rotate(
        &self,
        id: &str,
        overlap: u32,
        now: Millis,
    ) -> Result<Rotation, StoreError> {
        let Self { store, secrets, ids, by } = self;
        let before: Option<ApiKeyRecord> = store.credential(id).await?;
        let Some(before) = before else { return Ok(Rotation::Unknown) };
        let overlap = i64::from(overlap.min(MAX_OVERLAP_SECONDS)) * Millis::SECOND;
        let key = ApiKey::from_random(before.scope.tenant.environment, &ids.key_bytes());
        let secret = NewSecret {
            hash: secrets.hash_of(&key),
            last4: last4(key.secret()),
            old_until: now.plus(overlap),
        };
        Ok(match store.rotate_key(id, secret, by).await? {
            Some(record) if record.revoked_at.is_none() => Rotation::Done(key, Box::new(record)),
            Some(_) => Rotation::Revoked,
            None => Rotation::Unknown,
        })
    }
}

impl Service {
    /// Gives a key a new secret; the old one keeps working for `overlap` seconds.
    pub async fn rotate_key(&self, id: &str, overlap: u32, by: Actor) -> Result<Rotation, Refusal> {
        Ok(self.issuer(by).rotate(id, overlap, self.now()).await?)
    }

    /// Revokes a key with all its secrets, from now on. None if no key has the id.
    pub async fn revoke_key(&self, id: &str, by: Actor) -> Result<Option<ApiKeyRecord>, Refusal> {
        let now = self.now();
        Ok(self.store.revoke_credential(id, now, &by.at(now)).await?)
    }
}

/// The last four characters, by which people tell keys apart.
fn last4(key: &str) -> String {
    key.get(key.len().saturating_sub(4)..).unwrap_or_default().to_owned()
}
