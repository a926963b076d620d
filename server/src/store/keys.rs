//! Accounts and API keys in the database.

use std::str::FromStr;

use ipnet::IpNet;
use parcelo::CountryCode;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{Store, StoreError, parcels::damaged};
use crate::{
    clock::Millis,
    core::{AccountKey, AccountRecord, Countries, KeyRecord, NewKey, Tenant},
};

const ALL: &str = "*";

/// The columns of a [`KeyRecord`] in the order in which [`read`] takes them.
macro_rules! select_keys {
    ($rest:literal) => {
        concat!(
            "SELECT k.id, k.public_id, k.tenant, a.name, k.name, k.countries, k.ip_list, \
             k.rate_limit, k.hash, k.last4, k.created_at, k.revoked_at \
             FROM api_keys k JOIN accounts a ON a.id = k.tenant / 2 ",
            $rest
        )
    };
}

impl Store {
    /// An account's API keys, newest first, revoked or not.
    pub fn keys_of(&self, account: AccountKey) -> Result<Vec<KeyRecord>, StoreError> {
        self.read(|db| {
            let sql = select_keys!("WHERE k.tenant / 2 = ?1 ORDER BY k.id DESC");
            db.prepare_cached(sql)?.query_map([account.0], read)?.collect()
        })
    }

    /// One of an account's API keys.
    pub fn key_of(&self, account: AccountKey, id: &str) -> Result<Option<KeyRecord>, StoreError> {
        self.read(|db| {
            let sql = select_keys!("WHERE k.public_id = ?1 AND k.tenant / 2 = ?2");
            db.prepare_cached(sql)?.query_row(params![id, account.0], read).optional()
        })
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
pub(super) fn insert(db: &Connection, key: &NewKey) -> rusqlite::Result<KeyRecord> {
    db.execute(
        "INSERT INTO api_keys (public_id, tenant, name, countries, ip_list, rate_limit, hash, \
         last4, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
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
    db.query_row(select_keys!("WHERE k.id = ?1"), [db.last_insert_rowid()], read)
}

/// The key with a hash, revoked or not.
pub(super) fn by_hash(db: &Connection, hash: &[u8; 32]) -> rusqlite::Result<Option<KeyRecord>> {
    db.prepare_cached(select_keys!("WHERE k.hash = ?1"))?.query_row([hash], read).optional()
}

/// Every key, oldest first.
pub(super) fn all(db: &Connection) -> rusqlite::Result<Vec<KeyRecord>> {
    db.prepare(select_keys!("ORDER BY k.id"))?.query_map([], read)?.collect()
}

/// Revokes a key; one that is revoked keeps its first moment.
pub(super) fn revoke(
    db: &Connection,
    id: &str,
    now: Millis,
) -> rusqlite::Result<Option<KeyRecord>> {
    db.execute(
        "UPDATE api_keys SET revoked_at = ?2 WHERE public_id = ?1 AND revoked_at IS NULL",
        params![id, now.0],
    )?;
    db.query_row(select_keys!("WHERE k.public_id = ?1"), [id], read).optional()
}

fn read(row: &Row<'_>) -> rusqlite::Result<KeyRecord> {
    Ok(KeyRecord {
        row: row.get(0)?,
        id: row.get(1)?,
        tenant: Tenant::of_number(row.get(2)?),
        account: row.get(3)?,
        name: row.get(4)?,
        countries: read_countries(row.get_ref(5)?.as_str()?)?,
        ip_list: read_list::<IpNet>(row.get_ref(6)?.as_str()?, 6)?,
        rate_limit: row.get(7)?,
        hash: row.get(8)?,
        last4: row.get(9)?,
        created_at: Millis(row.get(10)?),
        revoked_at: row.get::<_, Option<i64>>(11)?.map(Millis),
    })
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
