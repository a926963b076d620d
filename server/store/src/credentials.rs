//! Credentials in the database: API keys, carrier keys, admin tokens. This module reads and writes the part that they
//! have in common; a table for each kind holds the rest.

use std::{collections::HashMap, sync::atomic::Ordering};

use ipnet::IpNet;
use parcelo_domain::{
    AccountRowId, ApiKeyRecord, CarrierRowId, Millis, NewCredential, Tenant,
    audit::{AuditAction, AuditedChange, Author},
    credentials::{
        AdminScope, ApiKeyScope, CarrierScope, Credential, MAX_OLD_SECRETS, NewSecret, OldSecret,
        Scope,
    },
};
use parcelo_types::Environment;

use super::{
    Store, StoreError, audit,
    columns::{
        environment_number, format_countries, join_with_commas, parse_countries, parse_list,
    },
    sql::{Row, Sql, SqlResult, params},
    values::Value,
};

/// The credentials that were written since an earlier read, and the version to pass to the next read.
#[derive(Debug)]
pub struct CredentialChanges<K> {
    /// The version of the newest of these credentials, or the passed version if there are none.
    pub version: i64,
    /// Credentials as they are now.
    pub credentials: Vec<K>,
}

/// The version to pass in order to read every credential.
pub const ALL_CREDENTIALS: i64 = -1;

/// The class of the locks for writing keys, which has one lock for each kind: "keys" in ASCII.
const KEYS_LOCK: i32 = 0x6B65_7973;
/// The column with the number of a key's last change.
const CHANGED_COLUMN: usize = 7;
/// The first column of the part that is special to a kind.
const FIRST_SCOPE_COLUMN: usize = 8;

/// A kind of credential, and how its special part is stored.
pub trait StoredScope: Scope + Sync {
    /// Name of its table.
    const TABLE: &str;
    /// `true` if the table numbers its changes, for [`Store::credentials_since`].
    const NUMBERS_CHANGES: bool;
    /// The audit log's action for a new credential.
    const CREATED: AuditAction;
    /// The audit log's action for a revoked credential.
    const REVOKED: AuditAction;
    /// Column with its name.
    const NAME_COLUMN: &str = "k.name";
    /// Columns after those that every kind has, and its tables, of which its own is called `k`.
    const COLUMNS_FROM: &str;

    /// Returns the account that the credential belongs to.
    fn account(&self) -> Option<AccountRowId> {
        None
    }
    /// Returns the statements that insert a new credential, with their values.
    fn insertion(new: &NewCredential<Self::New>) -> Vec<(&'static str, Vec<Value>)>;
    /// Reads the columns of the special part.
    fn read(row: &Row<'_>) -> SqlResult<Self>;
}

impl StoredScope for ApiKeyScope {
    const TABLE: &str = "api_keys";
    const NUMBERS_CHANGES: bool = true;
    const CREATED: AuditAction = AuditAction::KeyCreated;
    const REVOKED: AuditAction = AuditAction::KeyRevoked;
    const COLUMNS_FROM: &str = ", k.changed, k.tenant, a.name, k.countries, k.ip_list, k.rate_limit \
         FROM api_keys AS k JOIN accounts AS a ON a.id = k.tenant / 2";

    fn account(&self) -> Option<AccountRowId> {
        Some(self.tenant.account)
    }

    fn insertion(new: &NewCredential<Self>) -> Vec<(&'static str, Vec<Value>)> {
        let sql = "INSERT INTO api_keys (public_id, tenant, name, countries, ip_list, rate_limit, hash, \
             last4, created_at, changed) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, \
             (SELECT coalesce(max(changed), 0) + 1 FROM api_keys))";
        let params = params![
            &new.id,
            new.scope.tenant.number(),
            &new.name,
            &format_countries(&new.scope.countries),
            &join_with_commas(&new.scope.ip_list),
            new.scope.rate_limit,
            new.hash,
            &new.last4,
            new.created_at,
        ];
        vec![(sql, params.into())]
    }

    fn read(row: &Row<'_>) -> SqlResult<Self> {
        let [tenant, account, countries, ip_list, rate_limit] =
            [0, 1, 2, 3, 4].map(|offset| FIRST_SCOPE_COLUMN + offset);
        Ok(Self {
            tenant: Tenant::from_number(row.get(tenant)?),
            account: row.get(account)?,
            countries: row.parse(countries, parse_countries)?,
            ip_list: row.parse(ip_list, parse_list::<IpNet>)?,
            rate_limit: row.get(rate_limit)?,
        })
    }
}

impl StoredScope for CarrierScope {
    const TABLE: &str = "carrier_keys";
    const NUMBERS_CHANGES: bool = true;
    const CREATED: AuditAction = AuditAction::CarrierKeyCreated;
    const REVOKED: AuditAction = AuditAction::CarrierKeyRevoked;
    const NAME_COLUMN: &str = "c.name";
    const COLUMNS_FROM: &str = ", k.changed, k.carrier, c.environment \
         FROM carrier_keys AS k JOIN carriers AS c ON c.id = k.carrier";

    fn insertion(new: &NewCredential<Environment>) -> Vec<(&'static str, Vec<Value>)> {
        let environment = environment_number(new.scope);
        let carrier =
            "INSERT INTO carriers (environment, name) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        let key = "INSERT INTO carrier_keys (public_id, carrier, hash, last4, created_at, changed) \
             SELECT $3, id, $4, $5, $6, (SELECT coalesce(max(changed), 0) + 1 FROM carrier_keys) \
             FROM carriers WHERE environment = $1 AND name = $2";
        let params = params![environment, &new.name, &new.id, new.hash, &new.last4, new.created_at];
        vec![(carrier, params![environment, &new.name].into()), (key, params.into())]
    }

    fn read(row: &Row<'_>) -> SqlResult<Self> {
        let carrier = CarrierRowId(row.get(FIRST_SCOPE_COLUMN)?);
        Ok(Self { carrier, environment: row.get(FIRST_SCOPE_COLUMN + 1)? })
    }
}

impl StoredScope for AdminScope {
    const TABLE: &str = "admin_tokens";
    const NUMBERS_CHANGES: bool = false;
    const CREATED: AuditAction = AuditAction::TokenCreated;
    const REVOKED: AuditAction = AuditAction::TokenRevoked;
    const COLUMNS_FROM: &str = " FROM admin_tokens AS k";

    fn insertion(new: &NewCredential<Self>) -> Vec<(&'static str, Vec<Value>)> {
        let sql = "INSERT INTO admin_tokens (public_id, name, hash, last4, created_at) \
             VALUES ($1, $2, $3, $4, $5)";
        vec![(sql, params![&new.id, &new.name, new.hash, &new.last4, new.created_at].into())]
    }

    fn read(_row: &Row<'_>) -> SqlResult<Self> {
        Ok(Self)
    }
}

impl Store {
    /// Stores a new credential.
    pub async fn insert_credential<S: StoredScope>(
        &self,
        new: NewCredential<S::New>,
        by: &Author,
    ) -> Result<Credential<S>, StoreError> {
        let by = by.clone();
        self.write_credentials(async move |db| {
            lock_keys::<S>(db).await?;
            for (sql, params) in S::insertion(&new) {
                db.execute(sql, &params).await?;
            }
            let created = db.require(find_by_id(db, &new.id).await?)?;
            audit::record(db, &by, &audited_change(&created, S::CREATED)).await?;
            Ok(created)
        })
        .await
    }

    /// Returns the credential with an id, revoked or not.
    pub async fn credential<S: StoredScope>(
        &self,
        id: &str,
    ) -> Result<Option<Credential<S>>, StoreError> {
        let id = id.to_owned();
        self.query(async move |db| find_by_id(db, &id).await).await
    }

    /// Returns the credential whose current secret has this hash, revoked or not.
    pub async fn credential_by_hash<S: StoredScope>(
        &self,
        hash: &[u8; 32],
    ) -> Result<Option<Credential<S>>, StoreError> {
        let hash = *hash;
        let read = self.query(async move |db| find(db, ("k.hash = $1", ""), params![hash]).await);
        Ok(read.await?.credentials.pop())
    }

    /// Returns every credential of a kind, oldest first, revoked or not.
    pub async fn credentials<S: StoredScope>(&self) -> Result<Vec<Credential<S>>, StoreError> {
        let read = self.query(async |db| find(db, ("TRUE", "ORDER BY k.id"), &[]).await);
        Ok(read.await?.credentials)
    }

    /// Returns the API or carrier keys that were created, rotated or revoked after `version`. If there are none, the
    /// call costs one index lookup.
    pub async fn credentials_since<S: StoredScope>(
        &self,
        version: i64,
    ) -> Result<CredentialChanges<Credential<S>>, StoreError> {
        self.query(async move |db| {
            let filter = ("k.changed > $1", "ORDER BY k.changed");
            let found = find(db, filter, params![version]).await?;
            Ok(CredentialChanges { version: found.version.max(version), ..found })
        })
        .await
    }

    /// Revokes a credential with all its secrets. A second call changes nothing. Returns `None` if it is unknown.
    pub async fn revoke_credential<S: StoredScope>(
        &self,
        id: &str,
        now: Millis,
        by: &Author,
    ) -> Result<Option<Credential<S>>, StoreError> {
        let (id, by) = (id.to_owned(), by.clone());
        self.write_credentials(async move |db| revoke(db, &id, now, &by).await).await
    }

    /// Returns an account's API keys, newest first, revoked or not.
    pub async fn api_keys(&self, account: AccountRowId) -> Result<Vec<ApiKeyRecord>, StoreError> {
        // `Tenant::number` packs account * 2 + environment.
        let filter = ("k.tenant / 2 = $1", "ORDER BY k.id DESC");
        let read = self.query(async move |db| find(db, filter, params![account]).await);
        Ok(read.await?.credentials)
    }

    /// Replaces the secret of an API key; old secrets keep working as long as `secret` says. If the key is revoked, or
    /// its secret is not the one to replace, nothing changes. Returns `None` if no key has the id.
    pub async fn rotate_key(
        &self,
        id: &str,
        secret: NewSecret,
        by: &Author,
    ) -> Result<Option<ApiKeyRecord>, StoreError> {
        let (id, by) = (id.to_owned(), by.clone());
        self.write_credentials(async move |db| rotate(db, &id, &secret, &by).await).await
    }

    /// Writes credentials. The write is counted whatever its outcome, because after a timeout it may still be done.
    async fn write_credentials<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(Sql<'_>) -> SqlResult<T> + Send + 'static,
    {
        let written = self.write(run).await;
        self.state().credential_writes.fetch_add(1, Ordering::Release);
        written
    }
}

/// Waits for other servers' writes of keys. Changes of keys are numbered, and a server that has seen a number never
/// looks for lower ones, so they must be committed in order. A table lock is no alternative: orders in the same
/// transaction would wait for a VACUUM.
async fn lock_keys<S: StoredScope>(db: Sql<'_>) -> SqlResult<()> {
    db.lock(KEYS_LOCK, S::TABLE).await
}

/// Replaces a key's secret. Old secrets expire at `old_until`, or earlier if an earlier rotation said so. So after the
/// latest `old_until`, all of them have expired.
async fn rotate(
    db: Sql<'_>,
    id: &str,
    secret: &NewSecret,
    by: &Author,
) -> SqlResult<Option<ApiKeyRecord>> {
    lock_keys::<ApiKeyScope>(db).await?;
    let keep = "INSERT INTO api_key_old_secrets (key, hash, until) SELECT id, hash, $3 FROM api_keys \
         WHERE public_id = $1 AND revoked_at IS NULL AND hash = coalesce($2, hash) RETURNING key";
    let until = secret.old_until;
    let kept = db.first(keep, params![id, secret.replaces, until], |row| row.get::<i64>(0)).await?;
    let Some(key) = kept else { return find_by_id(db, id).await };
    let expire = "UPDATE api_key_old_secrets SET until = $2 WHERE key = $1 AND until > $2";
    db.execute(expire, params![key, until]).await?;
    let forget = "DELETE FROM api_key_old_secrets WHERE key = $1 AND id NOT IN \
         (SELECT id FROM api_key_old_secrets WHERE key = $1 ORDER BY id DESC LIMIT $2)";
    db.execute(forget, params![key, MAX_OLD_SECRETS]).await?;
    let replace = "UPDATE api_keys SET hash = $2, last4 = $3, \
         changed = (SELECT max(changed) + 1 FROM api_keys) WHERE id = $1";
    db.execute(replace, params![key, secret.hash, &secret.last4]).await?;
    let rotated = find_by_id(db, id).await?;
    if let Some(key) = &rotated {
        audit::record(db, by, &audited_change(key, AuditAction::KeyRotated)).await?;
    }
    Ok(rotated)
}

/// Revokes a credential. If it is already revoked, the time of its revocation stays.
async fn revoke<S: StoredScope>(
    db: Sql<'_>,
    id: &str,
    now: Millis,
    by: &Author,
) -> SqlResult<Option<Credential<S>>> {
    lock_keys::<S>(db).await?;
    let table = S::TABLE;
    let changed = if S::NUMBERS_CHANGES {
        format!(", changed = (SELECT max(changed) + 1 FROM {table})")
    } else {
        String::new()
    };
    let sql = format!(
        "UPDATE {table} SET revoked_at = $2{changed} WHERE public_id = $1 AND revoked_at IS NULL"
    );
    let is_first = db.execute(&sql, params![id, now]).await? > 0;
    // Only API keys have old secrets. For other kinds this deletes nothing, because ids begin with their kind (`key_`,
    // `car_`, `adt_`).
    let forget = "DELETE FROM api_key_old_secrets WHERE key IN \
         (SELECT id FROM api_keys WHERE public_id = $1)";
    db.execute(forget, params![id]).await?;
    let revoked = find_by_id(db, id).await?;
    if let Some(key) = revoked.as_ref().filter(|_| is_first) {
        audit::record(db, by, &audited_change(key, S::REVOKED)).await?;
    }
    Ok(revoked)
}

/// Returns the audit log's entry for a change of a credential.
fn audited_change<S: StoredScope>(key: &Credential<S>, action: AuditAction) -> AuditedChange {
    AuditedChange { account: key.scope.account(), action, subject: key.id.clone() }
}

async fn find_by_id<S: StoredScope>(db: Sql<'_>, id: &str) -> SqlResult<Option<Credential<S>>> {
    Ok(find(db, ("k.public_id = $1", ""), params![id]).await?.credentials.pop())
}

/// Reads the credentials that meet a condition, in an order, and the highest number of their changes.
async fn find<S: StoredScope>(
    db: Sql<'_>,
    (condition, order): (&str, &str),
    params: &[Value],
) -> SqlResult<CredentialChanges<Credential<S>>> {
    let sql = format!(
        "SELECT k.id, k.public_id, {}, k.hash, k.last4, k.created_at, k.revoked_at{} \
         WHERE {condition} {order}",
        S::NAME_COLUMN,
        S::COLUMNS_FROM
    );
    let (mut version, mut credentials) = (ALL_CREDENTIALS, Vec::new());
    for (changed, credential) in db.query_map(&sql, params, read).await? {
        version = version.max(changed);
        credentials.push(credential);
    }
    // Only API keys have old secrets. If a key is rotated between the two statements, its number increases, so the next
    // read corrects it.
    if S::TABLE == ApiKeyScope::TABLE && !credentials.is_empty() {
        let sql = format!(
            "SELECT key, hash, until FROM api_key_old_secrets \
             WHERE key IN (SELECT k.id FROM api_keys AS k WHERE {condition}) ORDER BY id DESC"
        );
        let secret =
            |row: &Row<'_>| Ok((row.get(0)?, OldSecret { hash: row.get(1)?, until: row.get(2)? }));
        let mut old = HashMap::<i64, Vec<OldSecret>>::new();
        for (key, secret) in db.query_map(&sql, params, secret).await? {
            old.entry(key).or_default().push(secret);
        }
        for credential in &mut credentials {
            credential.old_secrets = old.remove(&credential.row).unwrap_or_default();
        }
    }
    Ok(CredentialChanges { version, credentials })
}

/// Reads a credential without its old secrets, and the number of its last change.
fn read<S: StoredScope>(row: &Row<'_>) -> SqlResult<(i64, Credential<S>)> {
    let changed = if S::NUMBERS_CHANGES { row.get(CHANGED_COLUMN)? } else { ALL_CREDENTIALS };
    let credential = Credential {
        row: row.get(0)?,
        id: row.get(1)?,
        name: row.get(2)?,
        hash: row.get(3)?,
        old_secrets: Vec::new(),
        last4: row.get(4)?,
        created_at: row.get(5)?,
        revoked_at: row.get(6)?,
        scope: S::read(row)?,
    };
    Ok((changed, credential))
}
