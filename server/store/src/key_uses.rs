//! The day on which each key was last used.

use parcelo_domain::{AccountRowId, Tenant, key_uses::LastUseDays};
use parcelo_types::Environment;

use super::{Store, StoreError, sql::params};

impl Store {
    /// Stores the days on which keys were last used, by key row. If several servers store a day, the latest day stays.
    /// This waits for the outcome without a timeout.
    pub async fn save_key_uses(&self, days: LastUseDays) -> Result<(), StoreError> {
        let rows: Vec<_> = days.into_iter().map(|(key, day)| params![key, day].to_vec()).collect();
        // Sorted by key, so that two servers never deadlock.
        let sql = "INSERT INTO key_uses AS u (api_key, day) \
             {SELECT * FROM unnest($1::bigint[], $2::bigint[]) ORDER BY 1|VALUES ($1, $2)} \
             ON CONFLICT (api_key) DO UPDATE SET day = excluded.day WHERE u.day < excluded.day";
        self.write_within(None, async move |db| db.execute_rows(sql, &rows, &[]).await.map(drop))
            .await
    }

    /// Returns the days on which the keys of an account, or of all accounts, were last used.
    pub async fn key_uses(&self, account: Option<AccountRowId>) -> Result<LastUseDays, StoreError> {
        let tenant =
            account.map(|account| Tenant { account, environment: Environment::Production });
        // `Tenant::number` packs account * 2 + environment.
        let (filter, params) = match account {
            Some(account) => ("k.tenant / 2 = $1", params![account].to_vec()),
            None => ("TRUE", Vec::new()),
        };
        let sql = format!(
            "SELECT u.api_key, u.day FROM api_keys AS k JOIN key_uses AS u \
             ON u.api_key = k.id WHERE {filter}"
        );
        let found = self.long_query(tenant, async move |db| {
            db.query_map(&sql, &params, |row| Ok((row.get(0)?, row.get(1)?))).await
        });
        Ok(found.await?.into_iter().collect())
    }
}
