//! Accounts and API keys in the database.

use std::{str::FromStr, sync::atomic::Ordering};

use ipnet::IpNet;
use parcelo::CountryCode;
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use super::{Store, StoreError, parcels::damaged};
use crate::{
    clock::Millis,
    domain::{
        AccountKey, AccountRecord, Countries, KeyRecord, NewKey, Tenant,
        keys::{NewSecret, OLD_SECRETS, OldSecret},
    },
};

const ALL: &str = "*";

/// The columns of a [`KeyRecord`] in the order in which [`read`] takes them.
macro_rules! select_keys {
    ($rest:literal) => {
        concat!(
            "SELECT k.id, k.public_id, k.tenant, a.name, k.name, k.countries, k.ip_list, \
             k.rate_limit, k.hash, k.last4, k.created_at, k.revoked_at, k.changed \
             FROM api_keys k JOIN accounts a ON a.id = k.tenant / 2 ",
            $rest
        )
    };
}

/// Keys that were written since some earlier read, and the version to ask with next time.
#[derive(Debug)]
pub struct KeyChanges<K> {
    /// The version of the newest of them, or the one that was asked with.
    pub version: i64,
    /// Keys as they are now.
    pub keys: Vec<K>,
}

/// Asks for every key there is.
pub(crate) const ALL_KEYS: i64 = -1;

impl Store {
    /// An account's API keys, newest first, revoked or not.
    pub async fn keys_of(&self, account: AccountKey) -> Result<Vec<KeyRecord>, StoreError> {
        self.read(|db| {
            many(db, select_keys!("WHERE k.tenant / 2 = ?1 ORDER BY k.id DESC"), [account.0])
        })
    }

    /// One of an account's API keys.
    pub async fn key_of(
        &self,
        account: AccountKey,
        id: &str,
    ) -> Result<Option<KeyRecord>, StoreError> {
        self.read(|db| {
            let sql = select_keys!("WHERE k.public_id = ?1 AND k.tenant / 2 = ?2");
            one(db, sql, params![id, account.0])
        })
    }

    /// The API key with an id, revoked or not.
    pub async fn key(&self, id: &str) -> Result<Option<KeyRecord>, StoreError> {
        self.read(|db| one(db, select_keys!("WHERE k.public_id = ?1"), [id]))
    }

    /// The API keys that were made, given a new secret, or revoked after `version`. When there are
    /// none it costs one look into an index.
    pub async fn keys_since(&self, version: i64) -> Result<KeyChanges<KeyRecord>, StoreError> {
        self.read(|db| {
            let sql = select_keys!("WHERE k.changed > ?1 ORDER BY k.changed");
            let read = |row: &Row<'_>| Ok((row.get(12)?, read(db, row)?));
            changes(version, db.prepare_cached(sql)?.query_map([version], read)?)
        })
    }

    /// Every API key, oldest first, revoked or not.
    pub async fn keys(&self) -> Result<Vec<KeyRecord>, StoreError> {
        self.read(|db| many(db, select_keys!("ORDER BY k.id"), []))
    }

    /// Keeps a new API key.
    pub async fn insert_key(&self, key: NewKey) -> Result<KeyRecord, StoreError> {
        self.write_keys(move |db| insert(db, &key)).await
    }

    /// Gives an API key a new secret; old ones keep working as long as it says. One that is
    /// revoked stays as it is. None if there is no such key.
    pub async fn rotate_key(
        &self,
        id: &str,
        secret: NewSecret,
    ) -> Result<Option<KeyRecord>, StoreError> {
        let id = id.to_owned();
        self.write_keys(move |db| rotate(db, &id, &secret)).await
    }

    /// Revokes an API key; a second time changes nothing. None if there is no such key.
    pub async fn revoke_key(&self, id: &str, now: Millis) -> Result<Option<KeyRecord>, StoreError> {
        let id = id.to_owned();
        self.write_keys(move |db| revoke(db, &id, now)).await
    }

    /// How often API or carrier keys were written through this store: another number means that
    /// [`Store::keys_since`] may have something new. What other processes write does not count.
    pub fn key_writes(&self) -> u64 {
        self.0.key_writes.load(Ordering::Acquire)
    }

    /// A write of keys. It is counted whatever came of it: one that timed out may yet be done.
    pub(super) async fn write_keys<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let written = self.call(run).await;
        self.0.key_writes.fetch_add(1, Ordering::Release);
        written
    }
}

/// Whether there is any account.
pub(super) fn any_account(db: &Connection) -> rusqlite::Result<bool> {
    db.query_row("SELECT EXISTS (SELECT 1 FROM accounts)", [], |row| row.get(0))
}

/// The account with a name, made if there is none.
pub(super) fn account(
    db: &Connection,
    name: &str,
    public_id: &str,
    now: Millis,
) -> rusqlite::Result<AccountKey> {
    db.execute(
        "INSERT INTO accounts (public_id, name, created_at) VALUES (?1, ?2, ?3) \
         ON CONFLICT (name) DO NOTHING",
        params![public_id, name, now.0],
    )?;
    db.query_row("SELECT id FROM accounts WHERE name = ?1", [name], |row| {
        row.get(0).map(AccountKey)
    })
}

/// Every account, oldest first.
pub(super) fn accounts(db: &Connection) -> rusqlite::Result<Vec<AccountRecord>> {
    let mut find =
        db.prepare("SELECT id, public_id, name, created_at FROM accounts ORDER BY id")?;
    find.query_map([], read_account)?.collect()
}

/// An account.
pub(super) fn account_record(
    db: &Connection,
    account: AccountKey,
) -> rusqlite::Result<AccountRecord> {
    let sql = "SELECT id, public_id, name, created_at FROM accounts WHERE id = ?1";
    db.query_row(sql, [account.0], read_account)
}

fn read_account(row: &Row<'_>) -> rusqlite::Result<AccountRecord> {
    Ok(AccountRecord {
        key: AccountKey(row.get(0)?),
        id: row.get(1)?,
        name: row.get(2)?,
        created_at: Millis(row.get(3)?),
    })
}

/// Keeps a new key.
fn insert(db: &Connection, key: &NewKey) -> rusqlite::Result<KeyRecord> {
    db.execute(
        "INSERT INTO api_keys (public_id, tenant, name, countries, ip_list, rate_limit, hash, \
         last4, created_at, changed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, \
         (SELECT coalesce(max(changed), 0) + 1 FROM api_keys))",
        params![
            key.id,
            key.tenant.number(),
            key.name,
            write_countries(&key.countries),
            joined(&key.ip_list),
            key.rate_limit,
            key.hash,
            key.last4,
            key.created_at.0,
        ],
    )?;
    let made = one(db, select_keys!("WHERE k.id = ?1"), [db.last_insert_rowid()])?;
    made.ok_or(rusqlite::Error::QueryReturnedNoRows)
}

/// Replaces a key's secret. No old secret outlives `old_until`, and none lives longer than it
/// was given before: so the latest rotation says when all of them are gone.
fn rotate(db: &Connection, id: &str, secret: &NewSecret) -> rusqlite::Result<Option<KeyRecord>> {
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
    }
    one(db, select_keys!("WHERE k.public_id = ?1"), [id])
}

/// Revokes a key with all its secrets; one that is revoked keeps its first moment.
fn revoke(db: &Connection, id: &str, now: Millis) -> rusqlite::Result<Option<KeyRecord>> {
    db.execute(
        "UPDATE api_keys SET revoked_at = ?2, changed = (SELECT max(changed) + 1 FROM api_keys) \
         WHERE public_id = ?1 AND revoked_at IS NULL",
        params![id, now.0],
    )?;
    db.execute(
        "DELETE FROM api_key_old_secrets WHERE key IN \
         (SELECT id FROM api_keys WHERE public_id = ?1)",
        [id],
    )?;
    one(db, select_keys!("WHERE k.public_id = ?1"), [id])
}

/// Keys with their versions, in the order of those.
pub(super) fn changes<K>(
    version: i64,
    found: impl Iterator<Item = rusqlite::Result<(i64, K)>>,
) -> rusqlite::Result<KeyChanges<K>> {
    let (versions, keys): (Vec<i64>, Vec<K>) = found.collect::<rusqlite::Result<_>>()?;
    Ok(KeyChanges { version: versions.last().copied().unwrap_or(version), keys })
}

fn one(db: &Connection, sql: &str, which: impl Params) -> rusqlite::Result<Option<KeyRecord>> {
    db.prepare_cached(sql)?.query_row(which, |row| read(db, row)).optional()
}

fn many(db: &Connection, sql: &str, which: impl Params) -> rusqlite::Result<Vec<KeyRecord>> {
    db.prepare_cached(sql)?.query_map(which, |row| read(db, row))?.collect()
}

fn read(db: &Connection, row: &Row<'_>) -> rusqlite::Result<KeyRecord> {
    let number = row.get(0)?;
    Ok(KeyRecord {
        row: number,
        id: row.get(1)?,
        tenant: Tenant::of_number(row.get(2)?),
        account: row.get(3)?,
        name: row.get(4)?,
        countries: read_countries(row.get_ref(5)?.as_str()?)?,
        ip_list: read_list::<IpNet>(row.get_ref(6)?.as_str()?, 6)?,
        rate_limit: row.get(7)?,
        hash: row.get(8)?,
        old_secrets: old_secrets(db, number)?,
        last4: row.get(9)?,
        created_at: Millis(row.get(10)?),
        revoked_at: row.get::<_, Option<i64>>(11)?.map(Millis),
    })
}

fn old_secrets(db: &Connection, key: i64) -> rusqlite::Result<Vec<OldSecret>> {
    let sql = "SELECT hash, until FROM api_key_old_secrets WHERE key = ?1 ORDER BY id DESC";
    let read = |row: &Row<'_>| Ok(OldSecret { hash: row.get(0)?, until: Millis(row.get(1)?) });
    db.prepare_cached(sql)?.query_map([key], read)?.collect()
}

fn write_countries(countries: &Countries) -> String {
    match countries {
        Countries::All => ALL.to_owned(),
        Countries::Only(list) => joined(list),
    }
}

fn read_countries(text: &str) -> rusqlite::Result<Countries> {
    if text == ALL {
        return Ok(Countries::All);
    }
    read_list::<CountryCode>(text, 5).map(Countries::Only)
}

fn joined(list: &[impl ToString]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn read_list<T>(text: &str, column: usize) -> rusqlite::Result<Vec<T>>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    let items = text.split(',').filter(|item| !item.is_empty());
    items.map(|item| item.parse().map_err(|error| damaged(column, error))).collect()
}
