//! Requests to the legacy API, by key and day.

use std::collections::HashMap;

use chrono::NaiveDate;
use parcelo_domain::{AccountRowId, Tenant, legacy::DailyUsage};
use parcelo_types::Environment;

use super::{
    Store, StoreError,
    sql::{Row, Sql, SqlResult, params},
};

impl Store {
    /// Adds requests by key (its row) and day (days since 1970 began). It waits for the outcome without a timeout:
    /// after an error nothing was added, so the caller can add the same requests again.
    pub async fn add_legacy_uses(
        &self,
        counted: HashMap<(i64, i64), u64>,
    ) -> Result<(), StoreError> {
        let row = |((key, day), requests): ((i64, i64), u64)| params![key, day, requests].to_vec();
        let rows: Vec<_> = counted.into_iter().map(row).collect();
        // Sorted by key, so that two servers never deadlock.
        let sql = "INSERT INTO legacy_uses AS u (api_key, day, requests) {SELECT * \
             FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) ORDER BY 1, 2|VALUES ($1, $2, $3)} \
             ON CONFLICT (api_key, day) DO UPDATE SET requests = u.requests + excluded.requests";
        self.write_within(None, async move |db| db.execute_rows(sql, &rows, &[]).await.map(drop))
            .await
    }

    /// Returns all counts, the latest day first.
    pub async fn legacy_uses(&self) -> Result<Vec<DailyUsage>, StoreError> {
        self.query(async |db| find_uses(db, None).await).await
    }

    /// Returns the counts of one account's keys.
    pub async fn account_legacy_uses(
        &self,
        account: AccountRowId,
    ) -> Result<Vec<DailyUsage>, StoreError> {
        let tenant = Tenant { account, environment: Environment::Production };
        self.long_query(Some(tenant), async move |db| find_uses(db, Some(account)).await).await
    }
}

async fn find_uses(db: Sql<'_>, account: Option<AccountRowId>) -> SqlResult<Vec<DailyUsage>> {
    // `Tenant::number` packs account * 2 + environment.
    let sql = "SELECT k.public_id, k.name, u.day, u.requests FROM legacy_uses AS u \
         JOIN api_keys AS k ON k.id = u.api_key WHERE CAST($1 AS bigint) IS NULL OR k.tenant / 2 = $1 \
         ORDER BY u.day DESC, u.requests DESC, k.id";
    db.query_map(sql, params![account], read_usage).await
}

fn read_usage(row: &Row<'_>) -> SqlResult<DailyUsage> {
    Ok(DailyUsage {
        key_id: row.get(0)?,
        name: row.get(1)?,
        day: NaiveDate::from_epoch_days(row.get(2)?).unwrap_or_default(),
        requests: row.get::<i64>(3)?.unsigned_abs(),
    })
}
