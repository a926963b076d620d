//! Credentials in the database: API keys, carrier keys, admin tokens. What they have in common is read
//! and written once; a table of each kind holds what only that kind has.

use std::{collections::HashMap, sync::atomic::Ordering};

use futures_util::future::LocalBoxFuture;
use ipnet::IpNet;
use parcelo::Environment;
use tokio_postgres::{Row, types::ToSql};

use super::{
    Store, audit,
    connection::{Connection, Given, bytes, get, never_stored},
    error::{DbResult, Failure},
    parcels::environment,
};
use crate::{
    clock::Millis,
    domain::{
        AccountRowId, ApiKeyRecord, CarrierRowId, NewCredential, Tenant,
        audit::{AuditAction, Author},
        credentials::{
            AdminScope, ApiKeyScope, CarrierScope, Credential, NewSecret, OLD_SECRETS, OldSecret,
        },
    },
    store::{
        CredentialChanges, StoreError,
        columns::{joined, read_countries, read_list, write_countries},
        sqlite,
        sqlite::change,
    },
};

/// The class of the locks under which keys are written, a lock for each kind: "keys" in ASCII.
const KEYS_LOCK: i32 = 0x6B65_7973;
/// The column with the number of a key's last change.
const CHANGED_COLUMN: usize = 7;
/// The first of a kind's own columns.
const FIRST_SCOPE_COLUMN: usize = 8;

/// A kind of credential: how its own part is stored, here as in the other engine.
pub trait StoredScope: sqlite::StoredScope + Sync {
    /// The columns that every kind has, in the order in which [`read`] takes them, then its own.
    const COLUMNS: &str;

    /// Inserts a new one.
    fn insert_row<'a>(
        db: &'a Connection,
        new: &'a NewCredential<Self::New>,
    ) -> LocalBoxFuture<'a, DbResult<()>>;
    /// Reads its own columns.
    fn read_row(row: &Row) -> DbResult<Self>;
}

impl StoredScope for ApiKeyScope {
    const COLUMNS: &str = "SELECT k.id, k.public_id, k.name, k.hash, k.last4, k.created_at, k.revoked_at, \
         k.changed, k.tenant, a.name, k.countries, k.ip_list, k.rate_limit \
         FROM api_keys AS k JOIN accounts AS a ON a.id = k.tenant / 2";

    fn insert_row<'a>(
        db: &'a Connection,
        new: &'a NewCredential<Self>,
    ) -> LocalBoxFuture<'a, DbResult<()>> {
        Box::pin(async move {
            let sql = "INSERT INTO api_keys (public_id, tenant, name, countries, ip_list, \
                 rate_limit, hash, last4, created_at, changed) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, \
                 (SELECT coalesce(max(changed), 0) + 1 FROM api_keys))";
            let given: [&(dyn ToSql + Sync); 9] = [
                &new.id,
                &new.scope.tenant.number(),
                &new.name,
                &write_countries(&new.scope.countries),
                &joined(&new.scope.ip_list),
                &new.scope.rate_limit.map(i64::from),
                &new.hash.as_slice(),
                &new.last4,
                &new.created_at.0,
            ];
            db.execute(sql, &given).await.map(drop)
        })
    }

    fn read_row(row: &Row) -> DbResult<Self> {
        let [tenant, account, countries, ip_list, rate_limit] =
            [0, 1, 2, 3, 4].map(|place| FIRST_SCOPE_COLUMN + place);
        let rate_limit: Option<i64> = get(row, rate_limit)?;
        Ok(Self {
            tenant: Tenant::from_number(get(row, tenant)?),
            account: get(row, account)?,
            countries: read_countries(get(row, countries)?).map_err(Failure::row)?,
            ip_list: read_list::<IpNet>(get(row, ip_list)?).map_err(Failure::row)?,
            rate_limit: rate_limit.map(u32::try_from).transpose().map_err(Failure::row)?,
        })
    }
}

impl StoredScope for CarrierScope {
    const COLUMNS: &str = "SELECT k.id, k.public_id, c.name, k.hash, k.last4, k.created_at, k.revoked_at, \
         k.changed, k.carrier, c.environment FROM carrier_keys AS k \
         JOIN carriers AS c ON c.id = k.carrier";

    fn insert_row<'a>(
        db: &'a Connection,
        new: &'a NewCredential<Environment>,
    ) -> LocalBoxFuture<'a, DbResult<()>> {
        Box::pin(async move {
            let environment = environment(new.scope);
            let carrier =
                "INSERT INTO carriers (environment, name) VALUES ($1, $2) ON CONFLICT DO NOTHING";
            db.execute(carrier, &[&environment, &new.name]).await?;
            let sql = "INSERT INTO carrier_keys (public_id, carrier, hash, last4, created_at, changed) \
                 SELECT $3, id, $4, $5, $6, (SELECT coalesce(max(changed), 0) + 1 FROM carrier_keys) \
                 FROM carriers WHERE environment = $1 AND name = $2";
            let given: [&(dyn ToSql + Sync); 6] = [
                &environment,
                &new.name,
                &new.id,
                &new.hash.as_slice(),
                &new.last4,
                &new.created_at.0,
            ];
            db.execute(sql, &given).await.map(drop)
        })
    }

    fn read_row(row: &Row) -> DbResult<Self> {
        let number: i16 = get(row, FIRST_SCOPE_COLUMN + 1)?;
        let found = Environment::ALL.into_iter().find(|known| environment(*known) == number);
        let environment =
            found.ok_or_else(|| Failure::row(format!("no environment is numbered {number}")))?;
        Ok(Self { carrier: CarrierRowId(get(row, FIRST_SCOPE_COLUMN)?), environment })
    }
}

impl StoredScope for AdminScope {
    const COLUMNS: &str = "SELECT k.id, k.public_id, k.name, k.hash, k.last4, k.created_at, k.revoked_at, \
         0::bigint FROM admin_tokens AS k";

    fn insert_row<'a>(
        db: &'a Connection,
        new: &'a NewCredential<Self>,
    ) -> LocalBoxFuture<'a, DbResult<()>> {
        Box::pin(async move {
            let sql = "INSERT INTO admin_tokens (public_id, name, hash, last4, created_at) \
                 VALUES ($1, $2, $3, $4, $5)";
            let given: Given<'_> =
                &[&new.id, &new.name, &new.hash.as_slice(), &new.last4, &new.created_at.0];
            db.execute(sql, given).await.map(drop)
        })
    }

    fn read_row(_row: &Row) -> DbResult<Self> {
        Ok(Self)
    }
}

impl Store {
    pub(crate) async fn insert_credential<S: StoredScope>(
        &self,
        new: NewCredential<S::New>,
        by: &Author,
    ) -> Result<Credential<S>, StoreError> {
        let by = by.clone();
        self.write_credentials(async move |db| {
            lock_keys::<S>(db).await?;
            S::insert_row(db, &new).await?;
            let made = one(db, "WHERE k.public_id = $1", &[&new.id]).await?;
            let made =
                made.ok_or_else(|| Failure::row("the credential that was written is not there"))?;
            audit::record(db, &by, &change(&made, S::CREATED)).await?;
            Ok(made)
        })
        .await
    }

    pub(crate) async fn credential<S: StoredScope>(
        &self,
        id: &str,
    ) -> Result<Option<Credential<S>>, StoreError> {
        let id = (!never_stored(id)).then(|| id.to_owned());
        self.read(async move |db| one(db, "WHERE k.public_id = $1", &[&id]).await).await
    }

    pub(crate) async fn credential_by_hash<S: StoredScope>(
        &self,
        hash: &[u8; 32],
    ) -> Result<Option<Credential<S>>, StoreError> {
        let hash = *hash;
        self.read(async move |db| one(db, "WHERE k.hash = $1", &[&hash.as_slice()]).await).await
    }

    pub(crate) async fn credentials<S: StoredScope>(
        &self,
    ) -> Result<Vec<Credential<S>>, StoreError> {
        self.read(async |db| many(db, "ORDER BY k.id", &[]).await).await
    }

    pub(crate) async fn credentials_since<S: StoredScope>(
        &self,
        version: i64,
    ) -> Result<CredentialChanges<Credential<S>>, StoreError> {
        self.read(async move |db| {
            let sql = [S::COLUMNS, "WHERE k.changed > $1 ORDER BY k.changed"].join(" ");
            let rows = db.all(&sql, &[&version]).await?;
            let last = rows.last().map(|row| get(row, CHANGED_COLUMN)).transpose()?;
            let credentials = read_all(db, &rows).await?;
            Ok(CredentialChanges { version: last.unwrap_or(version), credentials })
        })
        .await
    }

    pub(crate) async fn revoke_credential<S: StoredScope>(
        &self,
        id: &str,
        now: Millis,
        by: &Author,
    ) -> Result<Option<Credential<S>>, StoreError> {
        if never_stored(id) {
            return Ok(None);
        }
        let (id, by) = (id.to_owned(), by.clone());
        self.write_credentials(async move |db| {
            lock_keys::<S>(db).await?;
            revoke(db, &id, now, &by).await
        })
        .await
    }

    pub(crate) async fn keys_of(
        &self,
        account: AccountRowId,
    ) -> Result<Vec<ApiKeyRecord>, StoreError> {
        // `Tenant::number` packs account * 2 + environment.
        self.read(async move |db| {
            many(db, "WHERE k.tenant / 2 = $1 ORDER BY k.id DESC", &[&account.0]).await
        })
        .await
    }

    pub(crate) async fn rotate_key(
        &self,
        id: &str,
        secret: NewSecret,
        by: &Author,
    ) -> Result<Option<ApiKeyRecord>, StoreError> {
        let (id, by) = (id.to_owned(), by.clone());
        self.write_credentials(async move |db| {
            lock_keys::<ApiKeyScope>(db).await?;
            rotate(db, &id, &secret, &by).await
        })
        .await
    }

    pub(crate) fn credential_writes(&self) -> u64 {
        self.0.credential_writes.load(Ordering::Acquire)
    }

    /// A write of credentials. It is counted whatever came of it: one that timed out may yet be done.
    async fn write_credentials<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(&Connection) -> DbResult<T> + Send + 'static,
    {
        let written = self.call(run).await;
        self.0.credential_writes.fetch_add(1, Ordering::Release);
        written
    }
}

/// Keys are numbered by their changes: a number that is committed after a higher one would be
/// overlooked by every server that has seen the higher one. So their writes wait for one another, until the commit.
/// Not by a lock of the table, for which the orders of the same transaction would wait behind a VACUUM.
async fn lock_keys<S: StoredScope>(db: &Connection) -> DbResult<()> {
    let lock = "SELECT pg_advisory_xact_lock($1, hashtext($2))";
    db.execute(lock, &[&KEYS_LOCK, &S::TABLE]).await.map(drop)
}

/// Replaces a key's secret. No old secret outlives `old_until`, and none lives longer than it
/// was given before: so the latest rotation says when all of them are gone.
async fn rotate(
    db: &Connection,
    id: &str,
    secret: &NewSecret,
    by: &Author,
) -> DbResult<Option<ApiKeyRecord>> {
    let key = "SELECT id FROM api_keys WHERE public_id = $1 AND revoked_at IS NULL";
    if let Some(row) = db.first(key, &[&id]).await? {
        let (key, until) = (get::<i64>(&row, 0)?, secret.old_until.0);
        db.execute(
            "UPDATE api_key_old_secrets SET until = least(until, $2) WHERE key = $1",
            &[&key, &until],
        )
        .await?;
        db.execute(
            "INSERT INTO api_key_old_secrets (key, hash, until) \
             SELECT id, hash, $2 FROM api_keys WHERE id = $1",
            &[&key, &until],
        )
        .await?;
        db.execute(
            "DELETE FROM api_key_old_secrets WHERE key = $1 AND id NOT IN \
             (SELECT id FROM api_key_old_secrets WHERE key = $1 ORDER BY id DESC LIMIT $2)",
            &[&key, &i64::from(OLD_SECRETS)],
        )
        .await?;
        db.execute(
            "UPDATE api_keys SET hash = $2, last4 = $3, \
             changed = (SELECT max(changed) + 1 FROM api_keys) WHERE id = $1",
            &[&key, &secret.hash.as_slice(), &secret.last4],
        )
        .await?;
    } else {
        return one(db, "WHERE k.public_id = $1", &[&id]).await;
    }
    let rotated = one(db, "WHERE k.public_id = $1", &[&id]).await?;
    if let Some(key) = &rotated {
        audit::record(db, by, &change(key, AuditAction::KeyRotated)).await?;
    }
    Ok(rotated)
}

/// One that is revoked keeps its first moment.
async fn revoke<S: StoredScope>(
    db: &Connection,
    id: &str,
    now: Millis,
    by: &Author,
) -> DbResult<Option<Credential<S>>> {
    let table = S::TABLE;
    let changed = if S::NUMBERS_CHANGES {
        format!(", changed = (SELECT max(changed) + 1 FROM {table})")
    } else {
        String::new()
    };
    let sql = format!(
        "UPDATE {table} SET revoked_at = $2{changed} WHERE public_id = $1 AND revoked_at IS NULL"
    );
    let is_first = db.execute(&sql, &[&id, &now.0]).await? > 0;
    // Only API keys have old secrets. For another kind this deletes nothing: ids begin with their kind.
    db.execute(
        "DELETE FROM api_key_old_secrets WHERE key IN \
         (SELECT id FROM api_keys WHERE public_id = $1)",
        &[&id],
    )
    .await?;
    let revoked = one(db, "WHERE k.public_id = $1", &[&id]).await?;
    if let Some(key) = revoked.as_ref().filter(|_| is_first) {
        audit::record(db, by, &change(key, S::REVOKED)).await?;
    }
    Ok(revoked)
}

async fn one<S: StoredScope>(
    db: &Connection,
    which: &str,
    given: Given<'_>,
) -> DbResult<Option<Credential<S>>> {
    Ok(many(db, which, given).await?.into_iter().next())
}

async fn many<S: StoredScope>(
    db: &Connection,
    which: &str,
    given: Given<'_>,
) -> DbResult<Vec<Credential<S>>> {
    let sql = [S::COLUMNS, which].join(" ");
    let rows = db.all(&sql, given).await?;
    read_all(db, &rows).await
}

async fn read_all<S: StoredScope>(db: &Connection, rows: &[Row]) -> DbResult<Vec<Credential<S>>> {
    let ids: Vec<i64> = rows.iter().map(|row| get(row, 0)).collect::<DbResult<_>>()?;
    let mut old = HashMap::<i64, Vec<OldSecret>>::new();
    // Only API keys have any. A rotation between the two statements raises the key's number: the next look mends it.
    if !ids.is_empty() && S::TABLE == <ApiKeyScope as sqlite::StoredScope>::TABLE {
        let sql = "SELECT key, hash, until FROM api_key_old_secrets WHERE key = ANY($1) \
             ORDER BY id DESC";
        for row in &db.all(sql, &[&ids]).await? {
            let secret = OldSecret { hash: bytes(row, 1)?, until: Millis(get(row, 2)?) };
            old.entry(get(row, 0)?).or_default().push(secret);
        }
    }
    rows.iter().zip(ids).map(|(row, id)| read(row, old.remove(&id).unwrap_or_default())).collect()
}

fn read<S: StoredScope>(row: &Row, old_secrets: Vec<OldSecret>) -> DbResult<Credential<S>> {
    Ok(Credential {
        row: get(row, 0)?,
        id: get(row, 1)?,
        name: get(row, 2)?,
        hash: bytes(row, 3)?,
        old_secrets,
        last4: get(row, 4)?,
        created_at: Millis(get(row, 5)?),
        revoked_at: get::<Option<i64>>(row, 6)?.map(Millis),
        scope: S::read_row(row)?,
    })
}
