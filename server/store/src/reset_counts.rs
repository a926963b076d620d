//! Counts the data of an ended generation for the response to its reset ([`resets`](super::resets)). The data is erased
//! only after the counts are recorded in the generation's row.

use std::time::Duration;

use parcelo_domain::{Millis, Tenant};
use parcelo_types::model::Deleted;

use super::{
    Engine, Store, StoreError,
    sql::{Row, Sql, SqlResult, params},
    values::Value,
};

/// Pause before a page is retried because the database had no time for it, and while a request counts.
pub(super) const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of rows that one statement counts.
const ROWS_PER_COUNT: i64 = if cfg!(test) { 7 } else { 5_000 };

impl Store {
    /// Counts an ended generation in short reads, which is safe because it no longer changes.
    pub(super) async fn count(&self, number: i64) -> Result<Deleted, StoreError> {
        let (mut parcels, mut events) = (0, 0);
        let mut after = Some((Millis(i64::MIN), i64::MIN));
        while let Some(from) = after {
            let page = async move |db: Sql<'_>| count_parcels(db, number, from).await;
            let (page, of_page, last) = self.count_page(number, page).await?;
            // The first two events of a parcel are implied by its row, not stored.
            (parcels, events, after) = (parcels + page, events + 2 * page + of_page, last);
        }
        Ok(Deleted::default()
            .with_parcels(parcels)
            .with_labels(parcels)
            .with_tracking_events(events)
            .with_manifests(self.count_rows(number, ("manifests", "awb"), "".into()).await?)
            .with_idempotency_keys(
                self.count_rows(number, ("idempotency", "first_seen"), i64::MIN.into()).await?,
            )
            .with_webhook_deliveries(
                self.count_rows(number, ("outbox", "id"), 0_i64.into()).await?,
            ))
    }

    /// Counts an ended generation's rows in a table, on PostgreSQL page by page: the rows whose key is greater than
    /// `after`. All rows with one key are in one page.
    async fn count_rows(
        &self,
        number: i64,
        (table, key): (&'static str, &'static str),
        mut after: Value,
    ) -> Result<u64, StoreError> {
        let mut all = 0;
        loop {
            let page = async move |db: Sql<'_>| {
                // The second condition matches the condition of an index.
                let sql = format!(
                    "{{WITH page AS (SELECT {key} AS key FROM {table} WHERE tenant = $1 AND tenant % 2 = 1 \
                     AND {key} > $2 ORDER BY {key} FETCH FIRST $3 ROWS WITH TIES) \
                     SELECT count(*), (SELECT key FROM page ORDER BY key DESC LIMIT 1) FROM page|\
                     SELECT count(*), NULL FROM {table} WHERE tenant = $1 AND tenant % 2 = 1}}"
                );
                let params = [number.into(), after.clone(), ROWS_PER_COUNT.into()];
                let read = |row: &Row<'_>| Ok((row.get::<i64>(0)?, row.get::<Option<Value>>(1)?));
                db.query_one(&sql, &params, read).await
            };
            let (rows, last) = self.count_page(number, page).await?;
            all += rows.unsigned_abs();
            match last {
                Some(last) => after = last,
                None => return Ok(all),
            }
        }
    }

    /// Reads a page, beside the writer of a file.
    async fn count_page<T, F>(&self, number: i64, page: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(Sql<'_>) -> SqlResult<T> + Clone + Send + Sync + 'static,
    {
        loop {
            let page = page.clone();
            let counted = match &self.0 {
                Engine::Sqlite(_) => self.long_query(Some(Tenant::from_number(number)), page).await,
                // Repeated if it waits too long for a lock.
                #[cfg(feature = "postgres")]
                Engine::Postgres(_) => self.write_in_own_transaction(page).await,
            };
            // The reset has happened: a full queue delays its counts, but does not lose them.
            if !matches!(counted, Err(StoreError::Crowded { .. })) {
                return counted;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}

/// Returns the counts of an ended generation, or `None` if it is not counted yet.
pub(super) async fn recorded_counts(db: Sql<'_>, number: i64) -> SqlResult<Option<Deleted>> {
    let sql = "SELECT parcels, manifests, events, keys, deliveries FROM ended_generations \
         WHERE number = $1";
    let params = params![number];
    let recorded = db.first(sql, params, |row| {
        let counted =
            |column| row.get::<Option<i64>>(column).map(|rows| rows.map(i64::unsigned_abs));
        let Some(parcels) = counted(0)? else { return Ok(None) };
        // A file of an earlier version has no other counts of a generation that it was erasing.
        Ok(Some(
            Deleted::default()
                .with_parcels(parcels)
                .with_labels(parcels)
                .with_manifests(counted(1)?.unwrap_or_default())
                .with_tracking_events(counted(2)?.unwrap_or_default())
                .with_idempotency_keys(counted(3)?.unwrap_or_default())
                .with_webhook_deliveries(counted(4)?.unwrap_or_default()),
        ))
    });
    // Its row was deleted when no caller waited for the counts any more.
    Ok(recorded.await?.unwrap_or(Some(Deleted::default())))
}

/// Records the counts of an ended generation, unless they are recorded already.
pub(super) async fn record_counts(db: Sql<'_>, number: i64, counted: Deleted) -> SqlResult<()> {
    let Deleted { parcels, tracking_events, manifests, .. } = counted;
    let Deleted { idempotency_keys, webhook_deliveries, .. } = counted;
    let sql = "UPDATE ended_generations SET {changed_at = clock_timestamp(), |}parcels = $2, \
         events = $3, manifests = $4, keys = $5, deliveries = $6 \
         WHERE number = $1 AND parcels IS NULL";
    let params =
        params![number, parcels, tracking_events, manifests, idempotency_keys, webhook_deliveries];
    db.execute(sql, params).await.map(drop)
}

/// Counts some of an ended generation's parcels and their later events, after a creation time and row. Returns the
/// place of the last of them, if there is one.
async fn count_parcels(
    db: Sql<'_>,
    number: i64,
    (created_at, row): (Millis, i64),
) -> SqlResult<(u64, u64, Option<(Millis, i64)>)> {
    let sql = "WITH page AS (SELECT created_at, id FROM parcels \
         WHERE tenant = $1 AND (created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT $4) \
         SELECT created_at, id, (SELECT count(*) FROM page), \
         (SELECT count(*) FROM page JOIN events ON parcel = page.id) \
         FROM page ORDER BY created_at DESC, id DESC LIMIT 1";
    let params = params![number, created_at, row, ROWS_PER_COUNT];
    let counted = db.first(sql, params, |row| {
        let number = |column| row.get(column).map(i64::unsigned_abs);
        Ok((number(2)?, number(3)?, Some((row.get(0)?, row.get(1)?))))
    });
    Ok(counted.await?.unwrap_or_default())
}
