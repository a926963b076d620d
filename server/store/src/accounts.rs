//! Accounts in the database, which never deletes one.

use parcelo_domain::{
    AccountRecord, AccountRowId, Millis, Shop,
    audit::{AuditAction, AuditedChange, Author},
};

use super::{
    Engine, Store, StoreError, audit,
    sql::{Row, SqlResult, params},
};

/// Finds an account by its name.
const BY_NAME: &str = "SELECT id FROM accounts WHERE name = $1";
/// Selects the columns that [`read`] reads.
const SELECT: &str = "SELECT id, public_id, name, created_at FROM accounts";

impl Store {
    /// Returns `true` if the database has no account yet.
    pub async fn is_new(&self) -> Result<bool, StoreError> {
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM accounts)";
        self.query(async move |db| db.value(sql, &[]).await).await
    }

    /// Returns `true` to exactly one caller, even if several servers start at once. That caller
    /// must seed the new database.
    pub async fn claim_new(&self) -> Result<bool, StoreError> {
        if matches!(self.0, Engine::Sqlite(_)) {
            // A file has no other server.
            return self.is_new().await;
        }
        // If a server ends before it has created the first account, a server that starts a minute later creates it.
        self.write(async |db| {
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

    /// Returns the account with this name, and creates it with the id `public_id` if it does not exist.
    pub async fn account(
        &self,
        name: &str,
        public_id: String,
        now: Millis,
    ) -> Result<AccountRowId, StoreError> {
        let name = name.to_owned();
        self.write(async move |db| {
            let insert = "INSERT INTO accounts (public_id, name, created_at) VALUES ($1, $2, $3) \
                 ON CONFLICT (name) DO NOTHING";
            db.execute(insert, params![&public_id, &name, now]).await?;
            db.value(BY_NAME, params![&name]).await
        })
        .await
    }

    /// Returns the account with a name.
    pub async fn account_named(&self, name: &str) -> Result<Option<AccountRowId>, StoreError> {
        let name = name.to_owned();
        self.query(async move |db| db.first(BY_NAME, params![&name], |row| row.get(0)).await).await
    }

    /// Returns an account that is known to exist.
    pub async fn account_record(&self, account: AccountRowId) -> Result<AccountRecord, StoreError> {
        let sql = format!("{SELECT} WHERE id = $1");
        self.query(async move |db| db.query_one(&sql, params![account], read_account).await).await
    }

    /// Returns every account, oldest first.
    pub async fn accounts(&self) -> Result<Vec<AccountRecord>, StoreError> {
        let sql = format!("{SELECT} ORDER BY id");
        self.query(async move |db| db.query_map(&sql, &[], read_account).await).await
    }

    /// Returns what receivers see of an account. It is empty if it was never set, or if another version wrote a row
    /// that this version refuses.
    pub async fn shop(&self, account: AccountRowId) -> Result<Shop, StoreError> {
        let sql = "SELECT name, contact FROM shops WHERE account = $1";
        let texts = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let found =
            self.query(async move |db| db.first(sql, params![account], texts).await).await?;
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
        self.write(async move |db| {
            let sql = "INSERT INTO shops (account, name, contact) VALUES ($1, $2, $3) \
                 ON CONFLICT (account) DO UPDATE SET name = excluded.name, contact = excluded.contact";
            db.execute(sql, params![account, &name, &contact]).await?;
            let change = AuditedChange::for_account(account, AuditAction::ShopSet);
            audit::record(db, &by, &change).await
        })
        .await
    }
}

fn read_account(row: &Row<'_>) -> SqlResult<AccountRecord> {
    Ok(AccountRecord {
        key: row.get(0)?,
        id: row.get(1)?,
        name: row.get(2)?,
        created_at: row.get(3)?,
    })
}
