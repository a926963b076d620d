//! Who used the legacy API, by key and day.

use std::collections::HashMap;

use chrono::NaiveDate;
use parcelo::Environment;
use tokio_postgres::Row;

use super::{
    Store,
    connection::{Connection, get},
    error::DbResult,
};
use crate::{
    domain::{AccountRowId, Tenant, legacy::Uses},
    store::StoreError,
};

impl Store {
    /// Servers add up what each of them has counted.
    pub(crate) async fn add_legacy_uses(
        &self,
        counted: HashMap<(i64, i64), u64>,
    ) -> Result<(), StoreError> {
        let mut sorted: Vec<_> = counted.into_iter().collect();
        // In the order of their keys, so that two servers never deadlock.
        sorted.sort_unstable();
        let keys: Vec<i64> = sorted.iter().map(|((key, _), _)| *key).collect();
        let days: Vec<i64> = sorted.iter().map(|((_, day), _)| *day).collect();
        let requests: Vec<i64> = sorted
            .iter()
            .map(|(_, requests)| i64::try_from(*requests).unwrap_or(i64::MAX))
            .collect();
        self.call_within(None, async move |db| {
            let sql = "INSERT INTO legacy_uses AS u (api_key, day, requests) \
                 SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) \
                 ON CONFLICT (api_key, day) DO UPDATE SET requests = u.requests + excluded.requests";
            db.execute(sql, &[&keys, &days, &requests]).await.map(drop)
        })
        .await
    }

    pub(crate) async fn legacy_uses(&self) -> Result<Vec<Uses>, StoreError> {
        self.read(async |db| all(db, None).await).await
    }

    pub(crate) async fn legacy_uses_of(
        &self,
        account: AccountRowId,
    ) -> Result<Vec<Uses>, StoreError> {
        let tenant = Tenant { account, environment: Environment::Production };
        self.scan(Some(tenant), async move |db| all(db, Some(account.0)).await).await
    }
}

async fn all(db: &Connection, account: Option<i64>) -> DbResult<Vec<Uses>> {
    // `Tenant::number` packs account * 2 + environment.
    let sql = "SELECT k.public_id, k.name, u.day, u.requests FROM legacy_uses AS u \
         JOIN api_keys AS k ON k.id = u.api_key WHERE $1::bigint IS NULL OR k.tenant / 2 = $1 \
         ORDER BY u.day DESC, u.requests DESC, k.id";
    db.each(sql, &[&account], read).await
}

fn read(row: &Row) -> DbResult<Uses> {
    let day = i32::try_from(get::<i64>(row, 2)?).unwrap_or_default();
    Ok(Uses {
        key_id: get(row, 0)?,
        name: get(row, 1)?,
        day: NaiveDate::from_epoch_days(day).unwrap_or_default(),
        requests: get::<i64>(row, 3)?.unsigned_abs(),
    })
}
