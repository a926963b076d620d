//! Issuing credentials and their secrets, for the admin commands, the admin API, the dashboard, the first start and
//! the mock server.

use ipnet::IpNet;
use parcelo_domain::{
    AccountRecord, ApiKeyRecord, Countries, Millis, NewCredential, Refusal, Secrets, Tenant,
    audit::{Actor, Author},
    credentials::{ApiKeyScope, Credential, MAX_OVERLAP_SECONDS, NewSecret},
    ids::public_id,
    secrets::HashedKey,
};
use parcelo_store::{Store, StoreError, StoredScope};
use parcelo_system::ids::Ids;
use parcelo_types::{ApiKey, Environment};
use ulid::Ulid;

use super::Service;

/// The properties of an API key to issue (spec: API key properties).
#[derive(Debug, Clone)]
pub struct NewKeyRequest {
    /// The account it belongs to, which is created if it does not exist.
    pub account: String,
    /// The environment.
    pub environment: Environment,
    /// The display name of the key.
    pub name: String,
    /// The countries that it may ship to.
    pub countries: Countries,
    /// The networks that it may be used from; empty for any.
    pub ip_list: Vec<IpNet>,
    /// The limit in requests per second; `None` for the default of the environment.
    pub rate_limit: Option<u32>,
}

impl NewKeyRequest {
    /// Creates a request for a key that may be used for every country, from any network.
    pub fn unrestricted(account: &str, environment: Environment, name: &str) -> Self {
        let (account, name) = (account.to_owned(), name.to_owned());
        let (countries, ip_list) = (Countries::All, Vec::new());
        Self { account, environment, name, countries, ip_list, rate_limit: None }
    }
}

/// The outcome of rotating the secret of an API key.
#[derive(Debug)]
pub enum RotationOutcome {
    /// The key has a new secret, which is shown only this once.
    Done(ApiKey, Box<ApiKeyRecord>),
    /// The key is revoked and stays revoked.
    Revoked,
    /// The key no longer has the secret that was to be replaced, and is unchanged.
    Superseded,
    /// The key does not exist.
    Unknown,
}

/// An issuer of credentials. A secret is returned once and never stored.
#[derive(Debug, Clone)]
pub struct CredentialIssuer<'a> {
    /// The store that keeps them.
    pub store: &'a Store,
    /// The secrets that hash them.
    pub secrets: &'a Secrets,
    /// The source of secrets and ids.
    pub ids: &'a Ids,
    /// The author for the audit log.
    pub by: Author,
}

impl CredentialIssuer<'_> {
    /// Returns the account with this name, and creates it if it does not exist. The flag is `true` if it is new.
    pub async fn find_or_create_account(
        &self,
        name: String,
        now: Millis,
    ) -> Result<(AccountRecord, bool), StoreError> {
        let id = public_id("acc", self.ids.ulid(now));
        let account = self.store.account(&name, id.clone(), now).await?;
        let record = self.store.account_record(account).await?;
        let is_new = record.id == id;
        Ok((record, is_new))
    }

    /// Issues an API key, and creates its account if no account has that name.
    pub async fn issue_api_key(
        &self,
        request: NewKeyRequest,
        now: Millis,
    ) -> Result<(ApiKey, ApiKeyRecord), StoreError> {
        let NewKeyRequest { account, environment, name, countries, ip_list, rate_limit } = request;
        let id = public_id("acc", self.ids.ulid(now));
        let tenant = Tenant { account: self.store.account(&account, id, now).await?, environment };
        let scope = ApiKeyScope { tenant, account, countries, ip_list, rate_limit };
        self.issue(name, scope, now).await
    }

    /// Issues a credential of any kind. Carrier keys with the same name in one environment belong to the same carrier.
    pub async fn issue<S: StoredScope>(
        &self,
        name: String,
        scope: S::New,
        now: Millis,
    ) -> Result<(S::Secret, Credential<S>), StoreError> {
        self.issue_with_id(None, (name, scope), now).await
    }

    async fn issue_with_id<S: StoredScope>(
        &self,
        id: Option<String>,
        (name, scope): (String, S::New),
        now: Millis,
    ) -> Result<(S::Secret, Credential<S>), StoreError> {
        let secret = S::generate(&scope, &self.ids.key_bytes());
        let (hash, last4) = (self.secrets.hash_credential(&secret), last4(secret.text()));
        let id = id.unwrap_or_else(|| public_id(S::ID_PREFIX, self.ids.ulid(now)));
        let new = NewCredential { id, name, hash, last4, created_at: now, scope };
        Ok((secret, self.store.insert_credential(new, &self.by).await?))
    }

    /// Gives an API key a new secret. It stays the same key, with its idempotency records, limit, countries and name.
    /// Old secrets keep working for at most `overlap` seconds. With the hash of a secret, only that one is replaced.
    pub async fn rotate(
        &self,
        id: &str,
        overlap: u32,
        replaces: Option<[u8; 32]>,
        now: Millis,
    ) -> Result<RotationOutcome, StoreError> {
        let Self { store, secrets, ids, by } = self;
        let current: Option<ApiKeyRecord> = store.credential(id).await?;
        let Some(current) = current else { return Ok(RotationOutcome::Unknown) };
        let overlap = i64::from(overlap.min(MAX_OVERLAP_SECONDS)) * Millis::SECOND;
        let key = ApiKey::from_random(current.scope.tenant.environment, &ids.key_bytes());
        let secret = NewSecret {
            hash: secrets.hash_credential(&key),
            last4: last4(key.secret()),
            old_until: now.plus(overlap),
            replaces,
        };
        let hash = secret.hash;
        Ok(match store.rotate_key(id, secret, by).await? {
            Some(record) if record.revoked_at.is_some() => RotationOutcome::Revoked,
            Some(record) if record.hash == hash => RotationOutcome::Done(key, Box::new(record)),
            Some(_) => RotationOutcome::Superseded,
            None => RotationOutcome::Unknown,
        })
    }
}

impl Service {
    /// Gives a key a new secret. The old one keeps working for `overlap` seconds.
    pub async fn rotate_key(
        &self,
        id: &str,
        overlap: u32,
        by: Actor,
    ) -> Result<RotationOutcome, Refusal> {
        Ok(self.issuer(by).rotate(id, overlap, None, self.now()).await?)
    }

    /// Issues a key for a form of the dashboard. Returns `None` if the form was sent before. The key's id derives from
    /// the form's id and the account, so no account can obtain a key of another.
    pub async fn issue_key_once(
        &self,
        form: Ulid,
        name: String,
        scope: ApiKeyScope,
    ) -> Result<Option<ApiKey>, Refusal> {
        let id = public_id("key", self.secrets().new_key_id(scope.tenant.account, form));
        let issuer = self.issuer(Actor::Session);
        let created =
            issuer.issue_with_id::<ApiKeyScope>(Some(id.clone()), (name, scope), self.now()).await;
        // An id is unique in the database, so the second of two forms at the same time is refused.
        if created.is_err() && self.store.credential::<ApiKeyScope>(&id).await?.is_some() {
            return Ok(None);
        }
        Ok(Some(created?.0))
    }

    /// Revokes a key with all its secrets from now on. Returns `None` if no key has the id.
    pub async fn revoke_key(&self, id: &str, by: Actor) -> Result<Option<ApiKeyRecord>, Refusal> {
        let now = self.now();
        Ok(self.store.revoke_credential(id, now, &by.at(now)).await?)
    }
}

/// Returns a key's last four characters, which are shown so that users can tell keys apart.
fn last4(key: &str) -> String {
    key.get(key.len().saturating_sub(4)..).unwrap_or_default().to_owned()
}
