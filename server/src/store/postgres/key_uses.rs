//! On which day each key was used last.

use parcelo::Environment;

use super::{Store, connection::get};
use crate::{
    domain::{AccountRowId, Tenant, key_uses::LastUses},
    store::StoreError,
};

impl Store {
    /// Of several servers the one that saw the latest use is right.
    pub(crate) async fn keep_key_uses(&self, days: LastUses) -> Result<(), StoreError> {
        // In the order of their keys, so that two servers never deadlock.
        let (keys, days): (Vec<i64>, Vec<i64>) = days.into_iter().unzip();
        self.call_within(None, async move |db| {
            let sql = "INSERT INTO key_uses AS u (api_key, day) \
                 SELECT * FROM unnest($1::bigint[], $2::bigint[]) \
                 ON CONFLICT (api_key) DO UPDATE SET day = excluded.day WHERE u.day < excluded.day";
            db.execute(sql, &[&keys, &days]).await.map(drop)
        })
        .await
    }

    pub(crate) async fn key_uses(&self, account: AccountRowId) -> Result<LastUses, StoreError> {
        let tenant = Tenant { account, environment: Environment::Production };
        self.scan(Some(tenant), async move |db| {
            // `Tenant::number` packs account * 2 + environment.
            let sql = "SELECT u.api_key, u.day FROM api_keys AS k JOIN key_uses AS u \
                 ON u.api_key = k.id WHERE k.tenant / 2 = $1";
            let found = db.each(sql, &[&account.0], |row| Ok((get(row, 0)?, get(row, 1)?))).await?;
            Ok(found.into_iter().collect())
        })
        .await
    }
}
