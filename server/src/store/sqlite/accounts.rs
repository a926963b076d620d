//! Accounts in the database; none is ever deleted.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{Store, StoreError, audit};
use crate::{
    clock::Millis,
    domain::{
        AccountRecord, AccountRowId, Shop,
        audit::{AuditAction, AuditedChange, Author},
    },
};

impl Store {
    /// Whether the database has no account yet.
    pub async fn is_new(&self) -> Result<bool, StoreError> {
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM accounts)";
        self.read(|db| db.query_row(sql, [], |row| row.get(0)))
    }

    /// True for the one caller that is to furnish a new database. Of a file that is its one server.
    pub async fn claim_new(&self) -> Result<bool, StoreError> {
        self.is_new().await
    }

    /// The account with a name; it is made, as `public_id`, if it does not exist.
    pub async fn account(
        &self,
        name: &str,
        public_id: String,
        now: Millis,
    ) -> Result<AccountRowId, StoreError> {
        let name = name.to_owned();
        self.call(move |db| find_or_insert(db, &name, &public_id, now)).await
    }

    /// The account with a name.
    pub async fn account_named(&self, name: &str) -> Result<Option<AccountRowId>, StoreError> {
        self.read(|db| find(db, name).optional())
    }

    /// An account that is known to exist.
    pub async fn account_record(&self, account: AccountRowId) -> Result<AccountRecord, StoreError> {
        let sql = "SELECT id, public_id, name, created_at FROM accounts WHERE id = ?1";
        self.read(|db| db.query_row(sql, [account.0], read))
    }

    /// Every account, oldest first.
    pub async fn accounts(&self) -> Result<Vec<AccountRecord>, StoreError> {
        let sql = "SELECT id, public_id, name, created_at FROM accounts ORDER BY id";
        self.read(|db| db.prepare(sql)?.query_map([], read)?.collect())
    }

    /// What receivers see of an account; a row that another version wrote and this one refuses shows nothing.
    pub async fn shop(&self, account: AccountRowId) -> Result<Shop, StoreError> {
        let sql = "SELECT name, contact FROM shops WHERE account = ?1";
        let found = self.read(|db| {
            let texts = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
            db.prepare_cached(sql)?.query_row([account.0], texts).optional()
        })?;
        Ok(Shop::from_stored(found))
    }

    /// Sets what receivers see of an account.
    pub async fn set_shop(
        &self,
        account: AccountRowId,
        shop: &Shop,
        by: &Author,
    ) -> Result<(), StoreError> {
        let ((name, contact), by) = (shop.to_stored(), by.clone());
        self.call(move |db| {
            let sql = "INSERT INTO shops (account, name, contact) VALUES (?1, ?2, ?3) \
                 ON CONFLICT (account) DO UPDATE SET name = excluded.name, contact = excluded.contact";
            db.execute(sql, params![account.0, name, contact])?;
            let change = AuditedChange::of_account(account, AuditAction::ShopSet);
            audit::record(db, &by, &change)
        })
        .await
    }
}

fn find_or_insert(
    db: &Connection,
    name: &str,
    public_id: &str,
    now: Millis,
) -> rusqlite::Result<AccountRowId> {
    db.execute(
        "INSERT INTO accounts (public_id, name, created_at) VALUES (?1, ?2, ?3) \
         ON CONFLICT (name) DO NOTHING",
        params![public_id, name, now.0],
    )?;
    find(db, name)
}

fn find(db: &Connection, name: &str) -> rusqlite::Result<AccountRowId> {
    let sql = "SELECT id FROM accounts WHERE name = ?1";
    db.query_row(sql, [name], |row| row.get(0).map(AccountRowId))
}

fn read(row: &Row<'_>) -> rusqlite::Result<AccountRecord> {
    Ok(AccountRecord {
        key: AccountRowId(row.get(0)?),
        id: row.get(1)?,
        name: row.get(2)?,
        created_at: Millis(row.get(3)?),
    })
}
