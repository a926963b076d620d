//! Credentials in the database: API keys, carrier keys, admin tokens. What they have in common is read
//! and written once; a table of each kind holds what only that kind has.

use std::sync::atomic::Ordering;

use ipnet::IpNet;
use parcelo::Environment;
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use super::{
    Store, StoreError, audit,
    parcels::{damaged, environment},
};
use crate::{
    clock::Millis,
    domain::{
        AccountRowId, ApiKeyRecord, CarrierRowId, NewCredential, Tenant,
        audit::{AuditAction, AuditedChange, Author},
        credentials::{
            AdminScope, ApiKeyScope, CarrierScope, Credential, NewSecret, OLD_SECRETS, OldSecret,
            Scope,
        },
    },
    store::columns::{joined, read_countries, read_list, write_countries},
};

/// Credentials that were written since some earlier read, and the version to ask with next time.
#[derive(Debug)]
pub struct CredentialChanges<K> {
    /// The version of the newest of them, or the one that was asked with.
    pub version: i64,
    /// Credentials as they are now.
    pub credentials: Vec<K>,
}

/// Asks for every credential there is.
pub(crate) const ALL_CREDENTIALS: i64 = -1;

/// A kind of credential: how its own part is stored.
pub trait StoredScope: Scope {
    /// Its table.
    const TABLE: &str;
    /// Whether the table numbers its changes, for [`Store::credentials_since`].
    const NUMBERS_CHANGES: bool;
    /// What the audit log says of a new one.
    const CREATED: AuditAction;
    /// What it says of one that is revoked.
    const REVOKED: AuditAction;
    /// The columns that every kind has, in the order in which [`read`] takes them, then its own.
    const SELECT: &str;

    /// The account that it belongs to.
    fn account(&self) -> Option<AccountRowId> {
        None
    }
    /// Inserts a new one.
    fn insert(db: &Connection, new: &NewCredential<Self::New>) -> rusqlite::Result<()>;
    /// Reads its own columns.
    fn read(row: &Row<'_>) -> rusqlite::Result<Self>;
    /// The secrets that it had before.
    fn old_secrets(_db: &Connection, _row: i64) -> rusqlite::Result<Vec<OldSecret>> {
        Ok(Vec::new())
    }
}

/// The column with the number of a key's last change.
const CHANGED_COLUMN: usize = 7;
/// The first of a kind's own columns.
const FIRST_SCOPE_COLUMN: usize = 8;

impl StoredScope for ApiKeyScope {
    const TABLE: &str = "api_keys";
    const NUMBERS_CHANGES: bool = true;
    const CREATED: AuditAction = AuditAction::KeyCreated;
    const REVOKED: AuditAction = AuditAction::KeyRevoked;
    const SELECT: &str = "SELECT k.id, k.public_id, k.name, k.hash, k.last4, k.created_at, k.revoked_at, k.changed, \
         k.tenant, a.name, k.countries, k.ip_list, k.rate_limit \
         FROM api_keys k JOIN accounts a ON a.id = k.tenant / 2";

    fn account(&self) -> Option<AccountRowId> {
        Some(self.tenant.account)
    }

    fn insert(db: &Connection, new: &NewCredential<Self>) -> rusqlite::Result<()> {
        db.execute(
            "INSERT INTO api_keys (public_id, tenant, name, countries, ip_list, rate_limit, hash, \
             last4, created_at, changed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, \
             (SELECT coalesce(max(changed), 0) + 1 FROM api_keys))",
            params![
                new.id,
                new.scope.tenant.number(),
                new.name,
                write_countries(&new.scope.countries),
                joined(&new.scope.ip_list),
                new.scope.rate_limit,
                new.hash,
                new.last4,
                new.created_at.0,
            ],
        )
        .map(drop)
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let [tenant, account, countries, ip_list, rate_limit] =
            [0, 1, 2, 3, 4].map(|n| FIRST_SCOPE_COLUMN + n);
        Ok(Self {
            tenant: Tenant::from_number(row.get(tenant)?),
            account: row.get(account)?,
            countries: read_countries(row.get_ref(countries)?.as_str()?)
                .map_err(|error| damaged(countries, error))?,
            ip_list: read_list::<IpNet>(row.get_ref(ip_list)?.as_str()?)
                .map_err(|error| damaged(ip_list, error))?,
            rate_limit: row.get(rate_limit)?,
        })
    }

    fn old_secrets(db: &Connection, row: i64) -> rusqlite::Result<Vec<OldSecret>> {
        let sql = "SELECT hash, until FROM api_key_old_secrets WHERE key = ?1 ORDER BY id DESC";
        let read = |row: &Row<'_>| Ok(OldSecret { hash: row.get(0)?, until: Millis(row.get(1)?) });
        db.prepare_cached(sql)?.query_map([row], read)?.collect()
    }
}

impl StoredScope for CarrierScope {
    const TABLE: &str = "carrier_keys";
    const NUMBERS_CHANGES: bool = true;
    const CREATED: AuditAction = AuditAction::CarrierKeyCreated;
    const REVOKED: AuditAction = AuditAction::CarrierKeyRevoked;
    const SELECT: &str = "SELECT k.id, k.public_id, c.name, k.hash, k.last4, k.created_at, k.revoked_at, k.changed, \
         k.carrier, c.environment FROM carrier_keys k JOIN carriers c ON c.id = k.carrier";

    fn insert(db: &Connection, new: &NewCredential<Environment>) -> rusqlite::Result<()> {
        let environment = environment(new.scope);
        db.execute(
            "INSERT INTO carriers (environment, name) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            params![environment, new.name],
        )?;
        db.execute(
            "INSERT INTO carrier_keys (public_id, carrier, hash, last4, created_at, changed) \
             SELECT ?3, id, ?4, ?5, ?6, (SELECT coalesce(max(changed), 0) + 1 FROM carrier_keys) \
             FROM carriers WHERE environment = ?1 AND name = ?2",
            params![environment, new.name, new.id, new.hash, new.last4, new.created_at.0],
        )
        .map(drop)
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let carrier = CarrierRowId(row.get(FIRST_SCOPE_COLUMN)?);
        Ok(Self { carrier, environment: read_environment(row, FIRST_SCOPE_COLUMN + 1)? })
    }
}

impl StoredScope for AdminScope {
    const TABLE: &str = "admin_tokens";
    const NUMBERS_CHANGES: bool = false;
    const CREATED: AuditAction = AuditAction::TokenCreated;
    const REVOKED: AuditAction = AuditAction::TokenRevoked;
    const SELECT: &str = "SELECT k.id, k.public_id, k.name, k.hash, k.last4, k.created_at, k.revoked_at, 0 \
         FROM admin_tokens k";

    fn insert(db: &Connection, new: &NewCredential<Self>) -> rusqlite::Result<()> {
        db.execute(
            "INSERT INTO admin_tokens (public_id, name, hash, last4, created_at) \
             VALUES (?1, ?2, ?3, ?4, ?5)",
            params![new.id, new.name, new.hash, new.last4, new.created_at.0],
        )
        .map(drop)
    }

    fn read(_row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self)
    }
}

impl Store {
    /// Keeps a new credential.
    pub async fn insert_credential<S: StoredScope>(
        &self,
        new: NewCredential<S::New>,
        by: &Author,
    ) -> Result<Credential<S>, StoreError> {
        let by = by.clone();
        let insert = move |db: &Connection| {
            S::insert(db, &new)?;
            let made = one(db, "WHERE k.public_id = ?1", [&new.id])?;
            let made = made.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
            audit::record(db, &by, &change(&made, S::CREATED))?;
            Ok(made)
        };
        self.write_credentials(insert).await
    }

    /// The credential with an id, revoked or not.
    pub async fn credential<S: StoredScope>(
        &self,
        id: &str,
    ) -> Result<Option<Credential<S>>, StoreError> {
        self.read(|db| one(db, "WHERE k.public_id = ?1", [id]))
    }

    /// The credential whose present secret has this hash, revoked or not.
    pub async fn credential_by_hash<S: StoredScope>(
        &self,
        hash: &[u8; 32],
    ) -> Result<Option<Credential<S>>, StoreError> {
        self.read(|db| one(db, "WHERE k.hash = ?1", [hash]))
    }

    /// Every credential of a kind, oldest first, revoked or not.
    pub async fn credentials<S: StoredScope>(&self) -> Result<Vec<Credential<S>>, StoreError> {
        self.read(|db| many(db, "ORDER BY k.id", []))
    }

    /// The API or carrier keys that were made, given a new secret, or revoked after `version`. When there
    /// are none it costs one look into an index.
    pub async fn credentials_since<S: StoredScope>(
        &self,
        version: i64,
    ) -> Result<CredentialChanges<Credential<S>>, StoreError> {
        self.read(|db| {
            let sql = [S::SELECT, "WHERE k.changed > ?1 ORDER BY k.changed"].join(" ");
            let read = |row: &Row<'_>| Ok((row.get(CHANGED_COLUMN)?, read(db, row)?));
            let mut find = db.prepare_cached(&sql)?;
            let found = find.query_map([version], read)?;
            let (versions, credentials): (Vec<i64>, Vec<_>) =
                found.collect::<rusqlite::Result<Vec<(i64, _)>>>()?.into_iter().unzip();
            let version = versions.last().copied().unwrap_or(version);
            Ok(CredentialChanges { version, credentials })
        })
    }

    /// Revokes a credential with all its secrets; a second time changes nothing. None if no
    /// credential has the id.
    pub async fn revoke_credential<S: StoredScope>(
        &self,
        id: &str,
        now: Millis,
        by: &Author,
    ) -> Result<Option<Credential<S>>, StoreError> {
        let (id, by) = (id.to_owned(), by.clone());
        self.write_credentials(move |db| revoke(db, &id, now, &by)).await
    }

    /// An account's API keys, newest first, revoked or not.
    pub async fn keys_of(&self, account: AccountRowId) -> Result<Vec<ApiKeyRecord>, StoreError> {
        // `Tenant::number` packs account * 2 + environment.
        self.read(|db| many(db, "WHERE k.tenant / 2 = ?1 ORDER BY k.id DESC", [account.0]))
    }

    /// Gives an API key a new secret; old ones keep working as long as it says. One that is
    /// revoked stays as it is. None if no key has the id.
    pub async fn rotate_key(
        &self,
        id: &str,
        secret: NewSecret,
        by: &Author,
    ) -> Result<Option<ApiKeyRecord>, StoreError> {
        let (id, by) = (id.to_owned(), by.clone());
        self.write_credentials(move |db| rotate(db, &id, &secret, &by)).await
    }

    /// How often credentials were written through this store: another number means that
    /// [`Store::credentials_since`] may have something new. What other processes write does not count.
    pub fn credential_writes(&self) -> u64 {
        self.0.credential_writes.load(Ordering::Acquire)
    }

    /// A write of credentials. It is counted whatever came of it: one that timed out may yet be done.
    async fn write_credentials<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let written = self.call(run).await;
        self.0.credential_writes.fetch_add(1, Ordering::Release);
        written
    }
}

/// Replaces a key's secret. No old secret outlives `old_until`, and none lives longer than it
/// was given before: so the latest rotation says when all of them are gone.
fn rotate(
    db: &Connection,
    id: &str,
    secret: &NewSecret,
    by: &Author,
) -> rusqlite::Result<Option<ApiKeyRecord>> {
    let key = "SELECT id FROM api_keys WHERE public_id = ?1 AND revoked_at IS NULL";
    if let Some(key) = db.query_row(key, [id], |row| row.get::<_, i64>(0)).optional()? {
        let until = secret.old_until.0;
        db.execute(
            "UPDATE api_key_old_secrets SET until = min(until, ?2) WHERE key = ?1",
            [key, until],
        )?;
        db.execute(
            "INSERT INTO api_key_old_secrets (key, hash, until) \
             SELECT id, hash, ?2 FROM api_keys WHERE id = ?1",
            [key, until],
        )?;
        db.execute(
            "DELETE FROM api_key_old_secrets WHERE key = ?1 AND id NOT IN \
             (SELECT id FROM api_key_old_secrets WHERE key = ?1 ORDER BY id DESC LIMIT ?2)",
            params![key, OLD_SECRETS],
        )?;
        db.execute(
            "UPDATE api_keys SET hash = ?2, last4 = ?3, \
             changed = (SELECT max(changed) + 1 FROM api_keys) WHERE id = ?1",
            params![key, secret.hash, secret.last4],
        )?;
    } else {
        return one(db, "WHERE k.public_id = ?1", [id]);
    }
    let rotated = one(db, "WHERE k.public_id = ?1", [id])?;
    if let Some(key) = &rotated {
        audit::record(db, by, &change(key, AuditAction::KeyRotated))?;
    }
    Ok(rotated)
}

/// One that is revoked keeps its first moment.
fn revoke<S: StoredScope>(
    db: &Connection,
    id: &str,
    now: Millis,
    by: &Author,
) -> rusqlite::Result<Option<Credential<S>>> {
    let table = S::TABLE;
    let changed = if S::NUMBERS_CHANGES {
        format!(", changed = (SELECT max(changed) + 1 FROM {table})")
    } else {
        String::new()
    };
    let sql = format!(
        "UPDATE {table} SET revoked_at = ?2{changed} WHERE public_id = ?1 AND revoked_at IS NULL"
    );
    let is_first = db.execute(&sql, params![id, now.0])? > 0;
    // Only API keys have old secrets. For another kind this deletes nothing: ids begin with their kind
    // (`key_`, `car_`, `adt_`).
    db.execute(
        "DELETE FROM api_key_old_secrets WHERE key IN \
         (SELECT id FROM api_keys WHERE public_id = ?1)",
        [id],
    )?;
    let revoked = one(db, "WHERE k.public_id = ?1", [id])?;
    if let Some(key) = revoked.as_ref().filter(|_| is_first) {
        audit::record(db, by, &change(key, S::REVOKED))?;
    }
    Ok(revoked)
}

/// What the audit log says of a credential.
pub(in crate::store) fn change<S: StoredScope>(
    key: &Credential<S>,
    action: AuditAction,
) -> AuditedChange {
    AuditedChange { account: key.scope.account(), action, subject: key.id.clone() }
}

fn one<S: StoredScope>(
    db: &Connection,
    which: &str,
    bound: impl Params,
) -> rusqlite::Result<Option<Credential<S>>> {
    let sql = [S::SELECT, which].join(" ");
    db.prepare_cached(&sql)?.query_row(bound, |row| read(db, row)).optional()
}

fn many<S: StoredScope>(
    db: &Connection,
    which: &str,
    bound: impl Params,
) -> rusqlite::Result<Vec<Credential<S>>> {
    let sql = [S::SELECT, which].join(" ");
    db.prepare_cached(&sql)?.query_map(bound, |row| read(db, row))?.collect()
}

fn read<S: StoredScope>(db: &Connection, row: &Row<'_>) -> rusqlite::Result<Credential<S>> {
    let number = row.get(0)?;
    Ok(Credential {
        row: number,
        id: row.get(1)?,
        name: row.get(2)?,
        hash: row.get(3)?,
        old_secrets: S::old_secrets(db, number)?,
        last4: row.get(4)?,
        created_at: Millis(row.get(5)?),
        revoked_at: row.get::<_, Option<i64>>(6)?.map(Millis),
        scope: S::read(row)?,
    })
}

fn read_environment(row: &Row<'_>, column: usize) -> rusqlite::Result<Environment> {
    let number: i64 = row.get(column)?;
    Environment::ALL
        .into_iter()
        .find(|known| environment(*known) == number)
        .ok_or(rusqlite::Error::IntegralValueOutOfRange(column, number))
}
