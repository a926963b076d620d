//! Accounts in the database; none is ever deleted.

use tokio_postgres::Row;

use super::{
    Store, audit,
    connection::{get, never_stored},
    error::DbResult,
};
use crate::{
    clock::Millis,
    domain::{
        AccountRecord, AccountRowId, Shop,
        audit::{AuditAction, AuditedChange, Author},
    },
    store::StoreError,
};

impl Store {
    pub(crate) async fn is_new(&self) -> Result<bool, StoreError> {
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM accounts)";
        self.read(async move |db| db.value(sql, &[]).await).await
    }

    /// Of servers that start at once, one makes the first account and shows its keys. One that ended before it had done
    /// so is made up for by a start a minute later.
    pub(crate) async fn claim_new(&self) -> Result<bool, StoreError> {
        self.call(async |db| {
            let sql = "INSERT INTO meta AS m (name, value) \
                 SELECT 'claimed', convert_to(now()::text, 'UTF8') \
                 WHERE NOT EXISTS (SELECT 1 FROM accounts) \
                 ON CONFLICT (name) DO UPDATE SET value = excluded.value \
                 WHERE m.value = ''::bytea \
                 OR convert_from(m.value, 'UTF8')::timestamptz < now() - interval '1 minute'";
            Ok(db.execute(sql, &[]).await? == 1)
        })
        .await
    }

    pub(crate) async fn account(
        &self,
        name: &str,
        public_id: String,
        now: Millis,
    ) -> Result<AccountRowId, StoreError> {
        let name = name.to_owned();
        self.call(async move |db| {
            let insert = "INSERT INTO accounts (public_id, name, created_at) VALUES ($1, $2, $3) \
                 ON CONFLICT (name) DO NOTHING";
            db.execute(insert, &[&public_id, &name, &now.0]).await?;
            let find = "SELECT id FROM accounts WHERE name = $1";
            db.value(find, &[&name]).await.map(AccountRowId)
        })
        .await
    }

    pub(crate) async fn account_named(
        &self,
        name: &str,
    ) -> Result<Option<AccountRowId>, StoreError> {
        if never_stored(name) {
            return Ok(None);
        }
        let name = name.to_owned();
        self.read(async move |db| {
            let found = db.first("SELECT id FROM accounts WHERE name = $1", &[&name]).await?;
            found.map(|row| get(&row, 0).map(AccountRowId)).transpose()
        })
        .await
    }

    pub(crate) async fn account_record(
        &self,
        account: AccountRowId,
    ) -> Result<AccountRecord, StoreError> {
        self.read(async move |db| {
            let sql = "SELECT id, public_id, name, created_at FROM accounts WHERE id = $1";
            db.only(sql, &[&account.0], read).await
        })
        .await
    }

    pub(crate) async fn accounts(&self) -> Result<Vec<AccountRecord>, StoreError> {
        let sql = "SELECT id, public_id, name, created_at FROM accounts ORDER BY id";
        self.read(async move |db| db.each(sql, &[], read).await).await
    }

    pub(crate) async fn shop(&self, account: AccountRowId) -> Result<Shop, StoreError> {
        self.read(async move |db| {
            let sql = "SELECT name, contact FROM shops WHERE account = $1";
            let Some(row) = db.first(sql, &[&account.0]).await? else {
                return Ok(Shop::default());
            };
            Ok(Shop::from_stored(Some((get(&row, 0)?, get(&row, 1)?))))
        })
        .await
    }

    pub(crate) async fn set_shop(
        &self,
        account: AccountRowId,
        shop: &Shop,
        by: &Author,
    ) -> Result<(), StoreError> {
        let ((name, contact), by) = (shop.to_stored(), by.clone());
        self.call(async move |db| {
            let sql = "INSERT INTO shops (account, name, contact) VALUES ($1, $2, $3) \
                 ON CONFLICT (account) DO UPDATE SET name = excluded.name, contact = excluded.contact";
            db.execute(sql, &[&account.0, &name, &contact]).await?;
            let change = AuditedChange::of_account(account, AuditAction::ShopSet);
            audit::record(db, &by, &change).await
        })
        .await
    }
}

fn read(row: &Row) -> DbResult<AccountRecord> {
    Ok(AccountRecord {
        key: AccountRowId(get(row, 0)?),
        id: get(row, 1)?,
        name: get(row, 2)?,
        created_at: Millis(get(row, 3)?),
    })
}
