//! Who used the legacy API, by key and day.

use std::collections::HashMap;

use chrono::NaiveDate;
use parcelo::Environment;
use rusqlite::{Connection, Row};

use super::{Store, StoreError};
use crate::domain::{AccountRowId, Tenant, legacy::Uses};

impl Store {
    /// Adds requests by key (its row) and day (since 1970 began). It waits until it is known whether they
    /// were added: after an error they were not, and can be added again.
    pub async fn add_legacy_uses(
        &self,
        counted: HashMap<(i64, i64), u64>,
    ) -> Result<(), StoreError> {
        self.call_within(None, move |db| add(db, &counted)).await
    }

    /// All that was counted, the latest day first.
    pub async fn legacy_uses(&self) -> Result<Vec<Uses>, StoreError> {
        self.read(|db| all(db, None))
    }

    /// The same of one account's keys.
    pub async fn legacy_uses_of(&self, account: AccountRowId) -> Result<Vec<Uses>, StoreError> {
        let tenant = Tenant { account, environment: Environment::Production };
        let read = move |store: &Self| store.read(|db| all(db, Some(account.0)));
        self.scan(Some(tenant), read).await
    }
}

fn add(db: &Connection, counted: &HashMap<(i64, i64), u64>) -> rusqlite::Result<()> {
    let mut add = db.prepare_cached(
        "INSERT INTO legacy_uses (api_key, day, requests) VALUES (?1, ?2, ?3) \
         ON CONFLICT (api_key, day) DO UPDATE SET requests = requests + excluded.requests",
    )?;
    for ((key, day), requests) in counted {
        add.execute((key, day, i64::try_from(*requests).unwrap_or(i64::MAX)))?;
    }
    Ok(())
}

fn all(db: &Connection, account: Option<i64>) -> rusqlite::Result<Vec<Uses>> {
    // `Tenant::number` packs account * 2 + environment.
    db.prepare(
        "SELECT k.public_id, k.name, u.day, u.requests FROM legacy_uses u \
         JOIN api_keys k ON k.id = u.api_key WHERE ?1 IS NULL OR k.tenant / 2 = ?1 \
         ORDER BY u.day DESC, u.requests DESC, k.id",
    )?
    .query_map([account], read)?
    .collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<Uses> {
    let day: i32 = row.get(2)?;
    Ok(Uses {
        key_id: row.get(0)?,
        name: row.get(1)?,
        day: NaiveDate::from_epoch_days(day).unwrap_or_default(),
        requests: row.get::<_, i64>(3)?.unsigned_abs(),
    })
}
