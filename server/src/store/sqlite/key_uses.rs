//! On which day each key was used last.

use rusqlite::Connection;

use super::{Store, StoreError};
use crate::domain::{AccountRowId, Tenant, key_uses::LastUses};

impl Store {
    pub(in crate::store) async fn keep_key_uses(&self, days: LastUses) -> Result<(), StoreError> {
        self.call_within(None, move |db| keep(db, &days)).await
    }

    pub(in crate::store) async fn key_uses(
        &self,
        account: AccountRowId,
    ) -> Result<LastUses, StoreError> {
        let tenant = Tenant { account, environment: parcelo::Environment::Production };
        let read = move |store: &Self| store.read(|db| of_account(db, account));
        self.scan(Some(tenant), read).await
    }
}

fn keep(db: &Connection, days: &LastUses) -> rusqlite::Result<()> {
    let mut keep = db.prepare_cached(
        "INSERT INTO key_uses (api_key, day) VALUES (?1, ?2) \
         ON CONFLICT (api_key) DO UPDATE SET day = max(day, excluded.day)",
    )?;
    days.iter().try_for_each(|use_of_key| keep.execute(use_of_key).map(drop))
}

fn of_account(db: &Connection, account: AccountRowId) -> rusqlite::Result<LastUses> {
    // `Tenant::number` packs account * 2 + environment.
    db.prepare(
        "SELECT u.api_key, u.day FROM api_keys AS k JOIN key_uses AS u ON u.api_key = k.id \
         WHERE k.tenant / 2 = ?1",
    )?
    .query_map([account.0], |row| Ok((row.get(0)?, row.get(1)?)))?
    .collect()
}
