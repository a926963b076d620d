//! Resets of sandboxes. A reset begins a new generation ([`generations`](crate::store::generations)) in a separate
//! transaction, which waits for writes into the previous generation. Once it has committed, no read finds the sandbox's
//! earlier data, and every number, key and air waybill is free. The data of the ended generation is counted for the
//! answer. It is then erased page by page while orders go on; after a restart, the erasure continues.
//!
//! If a reset is requested before the previous one has been counted, its answer includes both.

use std::{
    collections::HashSet,
    sync::{MutexGuard, PoisonError},
    time::Duration,
};

use parcelo::{Environment, model::Deleted};
use tokio_postgres::{
    Row,
    types::{FromSql, ToSql},
};

use super::{
    Store,
    connection::{Connection, Given, get},
    counts,
    erase::{self, PARCELS_PER_PAGE, sum},
    error::DbResult,
    outbox::delete_events,
    pages::ROWS_PER_PAGE,
};
use crate::{
    domain::{AccountRowId, Tenant},
    store::StoreError,
};

/// Pause before a page is retried because the database had no time for it.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of rows that one statement counts.
const ROWS_PER_COUNT: i64 = if cfg!(test) { 7 } else { 5_000 };

impl Store {
    pub(crate) async fn reset(&self, tenant: Tenant) -> Result<Deleted, StoreError> {
        if tenant.environment == Environment::Production {
            return Ok(Deleted::default());
        }
        // A separate task, so that the reset completes even if this future is dropped.
        let reset = tokio::spawn(self.clone().count_and_erase(tenant.number()));
        let broken = |_panicked| StoreError::Broken { database: self.name() };
        reset.await.map_err(broken)?
    }

    pub(crate) async fn reset_all(&self) -> Result<Deleted, StoreError> {
        let mut all = Deleted::default();
        let accounts = self.read(async |db| {
            db.each("SELECT id FROM accounts ORDER BY id", &[], |row| get(row, 0)).await
        });
        for account in accounts.await? {
            let account = AccountRowId(account);
            let tenant = Tenant { account, environment: Environment::Sandbox };
            all = sum(all, self.reset(tenant).await?);
        }
        Ok(all)
    }

    /// Continues resets that are older than a minute. Their callers have gone, because a request waits for half a
    /// minute at most.
    pub(crate) async fn resume_resets(&self) -> Result<(), StoreError> {
        let ended = self.read(async |db| {
            let sql = "SELECT number FROM ended_generations \
                 WHERE changed_at < now() - interval '1 minute' ORDER BY number";
            db.each(sql, &[], |row| get(row, 0)).await
        });
        self.erase_in_background(ended.await?);
        Ok(())
    }

    async fn count_and_erase(self, home: i64) -> Result<Deleted, StoreError> {
        let ended = self.in_transaction(async move |db| begin(db, home).await).await?;
        let mut all = Deleted::default();
        for number in ended.iter().copied() {
            let counted = self.page(async move |db| counted(db, number).await);
            all = sum(all, counted.await?);
        }
        self.erase_in_background(ended);
        Ok(all)
    }

    fn erasing(&self) -> MutexGuard<'_, HashSet<i64>> {
        self.0.erasing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn erase_in_background(&self, ended: Vec<i64>) {
        for number in ended {
            let is_new = self.erasing().insert(number);
            if is_new {
                tokio::spawn(self.clone().erase(number));
            }
        }
    }

    /// Erases an ended generation until nothing is left or another server is erasing it.
    async fn erase(self, number: i64) {
        let mut stage = 0;
        loop {
            match self.page(async move |db| erase_page(db, number, stage).await).await {
                Ok(Some(next)) => stage = next,
                Ok(None) => break,
                Err(StoreError::Busy { .. } | StoreError::Crowded { .. }) => {
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Err(error) => {
                    break tracing::error!(%error, "a reset stopped; it goes on within minutes");
                }
            }
        }
        self.erasing().remove(&number);
    }
}

/// Begins a sandbox's next generation. Returns the earlier generations that are not counted yet, in order.
async fn begin(db: &Connection, home: i64) -> DbResult<Vec<i64>> {
    let next = "INSERT INTO generations AS g (home, current) VALUES ($1, $1::bigint + 4294967296) \
         ON CONFLICT (home) DO UPDATE SET current = g.current + 4294967296 \
         RETURNING current - 4294967296";
    let ended: i64 = db.value(next, &[&home]).await?;
    db.execute("INSERT INTO ended_generations (number) VALUES ($1)", &[&ended]).await?;
    let uncounted = "SELECT number FROM ended_generations \
         WHERE parcels IS NULL AND number & 4294967295 = $1 ORDER BY number";
    db.each(uncounted, &[&home], |row| get(row, 0)).await
}

/// Returns the counts of an ended generation. The first call counts them.
async fn counted(db: &Connection, number: i64) -> DbResult<Deleted> {
    let known = "SELECT parcels, manifests, events, keys, deliveries FROM ended_generations \
         WHERE number = $1 FOR UPDATE";
    match db.first(known, &[&number]).await? {
        Some(row) if get::<Option<i64>>(&row, 0)?.is_some() => read(&row),
        Some(_) => count(db, number).await,
        // Its row was deleted after a minute, when no caller waited for the counts any more.
        None => Ok(Deleted::default()),
    }
}

fn read(row: &Row) -> DbResult<Deleted> {
    let counted = |column| get::<i64>(row, column).map(i64::unsigned_abs);
    // Each parcel has a label.
    Ok(Deleted::default()
        .with_parcels(counted(0)?)
        .with_labels(counted(0)?)
        .with_manifests(counted(1)?)
        .with_tracking_events(counted(2)?)
        .with_idempotency_keys(counted(3)?)
        .with_webhook_deliveries(counted(4)?))
}

/// Counts an ended generation in short statements, which is safe because it no longer changes.
async fn count(db: &Connection, number: i64) -> DbResult<Deleted> {
    let (parcels, events) = count_parcels(db, number).await?;
    let manifests = count_rows(db, ("manifests", "awb"), (number, String::new())).await?;
    let keys = count_rows(db, ("idempotency", "key"), (number, Vec::<u8>::new())).await?;
    let deliveries = count_rows(db, ("outbox", "id"), (number, 0_i64)).await?;
    let sql = "UPDATE ended_generations SET changed_at = clock_timestamp(), parcels = $2, \
         manifests = $3, events = $4, keys = $5, deliveries = $6 WHERE number = $1 \
         RETURNING parcels, manifests, events, keys, deliveries";
    let given: Given<'_> = &[&number, &parcels, &manifests, &events, &keys, &deliveries];
    db.only(sql, given, read).await
}

/// Counts an ended generation's rows in a table, page by page: the rows whose key is greater than `after`.
async fn count_rows<K>(
    db: &Connection,
    (table, key): (&str, &str),
    (number, mut after): (i64, K),
) -> DbResult<i64>
where
    K: ToSql + Sync + for<'a> FromSql<'a>,
{
    let sql = format!(
        "WITH page AS (SELECT {key} AS key FROM {table} WHERE tenant = $1 AND tenant % 2 = 1 \
         AND {key} > $2 ORDER BY {key} LIMIT $3) \
         SELECT count(*), (SELECT key FROM page ORDER BY key DESC LIMIT 1) FROM page"
    );
    let mut all = 0;
    loop {
        let given: Given<'_> = &[&number, &after, &ROWS_PER_COUNT];
        let read = |row: &Row| Ok((get::<i64>(row, 0)?, get(row, 1)?));
        let (rows, last): (_, Option<K>) = db.only(&sql, given, read).await?;
        all += rows;
        match last {
            Some(last) => after = last,
            None => return Ok(all),
        }
    }
}

/// Counts an ended generation's parcels and their events. Two events of each parcel have no row of their own.
async fn count_parcels(db: &Connection, number: i64) -> DbResult<(i64, i64)> {
    let sql = "WITH page AS (SELECT created_at, id FROM parcels \
         WHERE tenant = $1 AND (created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT $4) \
         SELECT created_at, id, count(*) OVER (), \
         (SELECT count(*) FROM page JOIN events ON parcel = page.id) \
         FROM page ORDER BY created_at DESC, id DESC LIMIT 1";
    let (mut parcels, mut events, mut after) = (0, 0, (i64::MIN, i64::MIN));
    loop {
        let given: Given<'_> = &[&number, &after.0, &after.1, &ROWS_PER_COUNT];
        let Some(last) = db.first(sql, given).await? else { return Ok((parcels, events)) };
        after = (get(&last, 0)?, get(&last, 1)?);
        let page: i64 = get(&last, 2)?;
        parcels += page;
        events += 2 * page + get::<i64>(&last, 3)?;
    }
}

/// The statements that erase pages after the events have been erased and before the parcels are.
const ERASURES: [&str; 2] = [
    "DELETE FROM idempotency WHERE tenant = $1 AND key = ANY (ARRAY (SELECT key FROM idempotency \
     WHERE tenant = $1 AND tenant % 2 = 1 ORDER BY key LIMIT $2))",
    "DELETE FROM manifests WHERE id = ANY (ARRAY (SELECT id FROM manifests \
     WHERE tenant = $1 ORDER BY awb LIMIT $2))",
];

/// Erases a page of an ended generation, from the first table at or after `stage` that still has rows of it. Returns
/// the stage of the next page, or `None` if everything is erased or another server is erasing it. It waits for rows
/// that someone has locked. No one adds rows, so if it finds no rows, no rows are left.
async fn erase_page(db: &Connection, number: i64, stage: usize) -> DbResult<Option<usize>> {
    let turn = "SELECT parcels IS NULL FROM ended_generations WHERE number = $1 \
         FOR UPDATE SKIP LOCKED";
    let Some(turn) = db.first(turn, &[&number]).await? else { return Ok(None) };
    if get(&turn, 0)? {
        count(db, number).await?;
    }
    // Rows are locked before their dependent rows are deleted, here and below, because settling an event logs an
    // attempt at the same time, and moving a parcel adds an event.
    let events = "SELECT id FROM outbox WHERE tenant = $1 ORDER BY id LIMIT $2 FOR UPDATE";
    if stage == 0 {
        let events = page(db, events, (number, ROWS_PER_PAGE)).await?;
        if !events.is_empty() {
            db.execute(delete_events!("id = ANY($1)"), &[&events]).await?;
            return Ok(Some(0));
        }
    }
    for (at, sql) in (1..).zip(ERASURES).skip(stage.saturating_sub(1)) {
        if db.execute(sql, &[&number, &ROWS_PER_PAGE]).await? > 0 {
            return Ok(Some(at));
        }
    }
    let parcels = "SELECT id FROM parcels WHERE id = ANY (ARRAY (SELECT id FROM parcels \
         WHERE tenant = $1 ORDER BY created_at, id LIMIT $2)) ORDER BY id FOR UPDATE";
    let parcels = page(db, parcels, (number, PARCELS_PER_PAGE)).await?;
    if !parcels.is_empty() {
        erase::delete_parcels(db, &parcels).await?;
        return Ok(Some(ERASURES.len() + 1));
    }
    end(db, number).await.map(|()| None)
}

async fn page(db: &Connection, sql: &str, (number, max): (i64, i64)) -> DbResult<Vec<i64>> {
    db.each(sql, &[&number, &max], |row| get(row, 0)).await
}

/// Ends the erasure of a generation. Its row stays until the reset is resumed, because callers may still read the
/// counts.
async fn end(db: &Connection, number: i64) -> DbResult<()> {
    counts::keep_folds_away(db).await?;
    db.execute("DELETE FROM parcel_counts WHERE tenant = $1", &[&number]).await?;
    db.execute("DELETE FROM parcel_count_changes WHERE tenant = $1", &[&number]).await?;
    let row = "DELETE FROM ended_generations WHERE number = $1 \
         AND changed_at < now() - interval '1 minute'";
    db.execute(row, &[&number]).await.map(drop)
}
