//! Resets of sandboxes. Each tenant has a number of resets, its epoch, and each of its rows has the epoch in
//! which it was written: a reset raises the number, and from its commit on no read sees the rows of
//! earlier epochs (the `living_` views). Ids would not do: those of several servers are not in the order of
//! time. What is hidden is counted for the answer, then erased page by page, beside everyone's orders; a
//! restart goes on with it.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use parcelo::{Environment, model::Deleted};

use super::{
    Store,
    connection::{Connection, get},
    counts,
    erase::{self, PARCELS_PER_PAGE},
    error::DbResult,
    locks,
    outbox::delete_events,
    pages::{ROWS_PER_PAGE, in_page},
};
use crate::{domain::Tenant, store::StoreError};

/// The class of the advisory locks under which a tenant's rows are erased: "rese" in ASCII.
const ERASING: i32 = 0x7265_7365;
/// Before a page that the database had no time for is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

impl Store {
    pub(crate) async fn reset(&self, tenant: Tenant) -> Result<Deleted, StoreError> {
        if tenant.environment == Environment::Production {
            return Ok(Deleted::default());
        }
        let tenant = tenant.number();
        // In a task of its own: it completes, whatever becomes of this future.
        let reset = tokio::spawn(self.clone().begin_reset(tenant));
        let broken = |_panicked| StoreError::Broken { database: self.name() };
        reset.await.map_err(broken)?
    }

    pub(crate) async fn reset_all(&self) -> Result<Deleted, StoreError> {
        let mut all = Deleted::default();
        for account in self.accounts().await? {
            let tenant = Tenant { account: account.key, environment: Environment::Sandbox };
            all = erase::sum(all, self.reset(tenant).await?);
        }
        Ok(all)
    }

    pub(crate) async fn resume_resets(&self) -> Result<(), StoreError> {
        let unfinished = self
            .read(async |db| {
                let sql = "SELECT tenant, epoch FROM resets WHERE is_erasing ORDER BY tenant";
                db.each(sql, &[], |row| Ok((get(row, 0)?, get(row, 1)?))).await
            })
            .await?;
        for (tenant, epoch) in unfinished {
            self.erase_in_background(tenant, epoch);
        }
        Ok(())
    }

    async fn begin_reset(self, tenant: i64) -> Result<Deleted, StoreError> {
        let store = self.clone();
        // A page may be tried again, and what it begins is begun once.
        let begun = Arc::new(OnceLock::new());
        let epoch = Arc::clone(&begun);
        let counted = self.page(async move |db| {
            // Another server may erase as soon as the reset is committed, and must not before all is counted. The writer
            // does not count: however much a sandbox has, no order waits for it.
            wait_to_count(db, tenant).await?;
            if epoch.get().is_none() {
                let hide = async move |db: &Connection| begin(db, tenant).await;
                match store.call_within(None, hide).await {
                    Ok(new) => drop(epoch.set(new)),
                    Err(error) => return Ok(Err(error)),
                }
            }
            count(db, tenant, epoch.get().copied().unwrap_or_default()).await.map(Ok)
        });
        let counted = counted.await;
        if let Some(epoch) = begun.get() {
            self.erase_in_background(tenant, *epoch);
        }
        counted?
    }

    fn erase_in_background(&self, tenant: i64, epoch: i64) {
        let is_new = self.erasing().insert((tenant, epoch));
        if is_new {
            tokio::spawn(self.clone().erase(tenant, epoch));
        }
    }

    /// Erases what a tenant's reset hides, until it is finished or another server does it.
    async fn erase(self, tenant: i64, epoch: i64) {
        let mut stage = 0;
        loop {
            let page = async move |db: &Connection| page(db, (tenant, epoch), stage).await;
            match self.page(page).await {
                Ok(Next::Stage(next)) => stage = next,
                Ok(Next::End) => break,
                Ok(Next::Again) => {
                    stage = 0;
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Err(StoreError::Busy { .. } | StoreError::Crowded { .. }) => {
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Err(error) => {
                    break tracing::error!(%error, "a reset stopped; it goes on within a minute");
                }
            }
        }
        self.erasing().remove(&(tenant, epoch));
    }
}

/// What comes after a page.
enum Next {
    /// A page from this table on: those before it are erased.
    Stage(usize),
    /// Something is left that was locked: from the first table on, in a moment.
    Again,
    /// All is erased, or another server does it.
    End,
}

/// Hides all that the tenant has now; answers the epoch that begins.
async fn begin(db: &Connection, tenant: i64) -> DbResult<i64> {
    locks::keep_groups_away(db, tenant).await?;
    let sql = "INSERT INTO resets AS r (tenant, epoch, is_erasing) VALUES ($1, 1, true) \
         ON CONFLICT (tenant) DO UPDATE SET epoch = r.epoch + 1, is_erasing = true \
         RETURNING epoch";
    db.value(sql, &[&tenant]).await
}

/// What a reset deletes: all that came since the one before it, which may not be erased yet either.
async fn count(db: &Connection, tenant: i64, epoch: i64) -> DbResult<Deleted> {
    let sql = "SELECT \
         (SELECT count(*) FROM parcels WHERE tenant = $1 AND tenant % 2 = 1 AND epoch = $2::bigint - 1), \
         (SELECT count(*) FROM parcels AS p JOIN events AS e ON e.parcel = p.id \
          WHERE p.tenant = $1 AND p.tenant % 2 = 1 AND p.epoch = $2::bigint - 1), \
         (SELECT count(*) FROM manifests WHERE tenant = $1 AND tenant % 2 = 1 AND epoch = $2::bigint - 1), \
         (SELECT count(*) FROM idempotency WHERE tenant = $1 AND tenant % 2 = 1 AND epoch = $2::bigint - 1), \
         (SELECT count(*) FROM outbox WHERE tenant = $1 AND tenant % 2 = 1 AND epoch = $2::bigint - 1)";
    db.only(sql, &[&tenant, &epoch], |row| {
        let counted = |column| get::<i64>(row, column).map(i64::unsigned_abs);
        let parcels = counted(0)?;
        Ok(Deleted::default()
            .with_parcels(parcels)
            .with_labels(parcels)
            .with_tracking_events(counted(1)? + 2 * parcels)
            .with_manifests(counted(2)?)
            .with_idempotency_keys(counted(3)?)
            .with_webhook_deliveries(counted(4)?))
    })
    .await
}

/// What is erased before the parcels, a page of each.
const ERASURES: [&str; 3] = [
    delete_events!(in_page!(
        "id",
        "outbox WHERE tenant = $1 AND tenant % 2 = 1 AND epoch < $2 ORDER BY tenant, epoch LIMIT $3"
    )),
    // Its key may be used again meanwhile: then the row is one of this epoch, and the lock has shown it.
    concat!(
        "WITH old AS (DELETE FROM idempotency WHERE ",
        in_page!(
            "key",
            "idempotency WHERE tenant = $1 AND tenant % 2 = 1 AND epoch < $2 \
             ORDER BY tenant, epoch LIMIT $3"
        ),
        " RETURNING 1) SELECT count(*) FROM old"
    ),
    concat!(
        "WITH old AS (DELETE FROM manifests WHERE ",
        in_page!(
            "id",
            "manifests WHERE tenant = $1 AND tenant % 2 = 1 AND epoch < $2 \
             ORDER BY tenant, epoch LIMIT $3"
        ),
        " RETURNING 1) SELECT count(*) FROM old"
    ),
];

/// Waits for the page that another server erases, and keeps others away until the commit.
async fn wait_for_erasing(db: &Connection, tenant: i64) -> DbResult<()> {
    let lock = "SELECT pg_advisory_xact_lock($1, hashint8($2))";
    db.execute(lock, &[&ERASING, &tenant]).await.map(drop)
}

/// The same before a count, whose transaction is then idle for as long as the reset waits in the writer's queue. If
/// PostgreSQL ended it meanwhile, the reset would be done, and answered with an error.
pub(super) async fn wait_to_count(db: &Connection, tenant: i64) -> DbResult<()> {
    wait_for_erasing(db, tenant).await?;
    db.run("SET LOCAL idle_in_transaction_session_timeout = '10min'").await
}

/// Erases a page of the first table from `stage` on that has something hidden. One server erases a tenant's rows
/// at a time: its lock ends with the transaction, so that another can go on with what it left.
async fn page(db: &Connection, (tenant, epoch): (i64, i64), stage: usize) -> DbResult<Next> {
    let lock = "SELECT pg_try_advisory_xact_lock($1, hashint8($2))";
    if !db.value::<bool>(lock, &[&ERASING, &tenant]).await? {
        return Ok(Next::End);
    }
    for (at, sql) in ERASURES.iter().enumerate().skip(stage) {
        if db.value::<i64>(sql, &[&tenant, &epoch, &ROWS_PER_PAGE]).await? > 0 {
            return Ok(Next::Stage(at));
        }
    }
    // Locked before anything that hangs on them is deleted: who moves one at this moment adds an event.
    let sql = "SELECT id FROM parcels WHERE id = ANY (ARRAY (SELECT id FROM parcels \
         WHERE tenant = $1 AND tenant % 2 = 1 AND epoch < $2 ORDER BY tenant, epoch LIMIT $3)) \
         ORDER BY id FOR UPDATE";
    let parcels: Vec<i64> =
        db.each(sql, &[&tenant, &epoch, &PARCELS_PER_PAGE], |row| get(row, 0)).await?;
    if !parcels.is_empty() {
        erase::delete_parcels(db, &parcels).await?;
        return Ok(Next::Stage(ERASURES.len()));
    }
    end(db, tenant, epoch).await
}

/// Ends the erasing, unless something is left.
async fn end(db: &Connection, tenant: i64, epoch: i64) -> DbResult<Next> {
    counts::keep_folds_away(db).await?;
    for table in ["parcel_counts", "parcel_count_changes"] {
        let sql = format!("DELETE FROM {table} WHERE tenant = $1 AND epoch < $2");
        db.execute(&sql, &[&tenant, &epoch]).await?;
    }
    let done = "UPDATE resets SET is_erasing = false WHERE tenant = $1 AND epoch = $2 \
         AND NOT EXISTS (SELECT 1 FROM outbox WHERE tenant = $1 AND tenant % 2 = 1 AND epoch < $2) \
         AND NOT EXISTS (SELECT 1 FROM idempotency \
         WHERE tenant = $1 AND tenant % 2 = 1 AND epoch < $2) \
         AND NOT EXISTS (SELECT 1 FROM manifests \
         WHERE tenant = $1 AND tenant % 2 = 1 AND epoch < $2) \
         AND NOT EXISTS (SELECT 1 FROM parcels WHERE tenant = $1 AND tenant % 2 = 1 AND epoch < $2)";
    db.execute(done, &[&tenant, &epoch]).await?;
    let is_left = "SELECT EXISTS (SELECT 1 FROM resets \
         WHERE tenant = $1 AND epoch = $2 AND is_erasing)";
    let is_left: bool = db.value(is_left, &[&tenant, &epoch]).await?;
    Ok(if is_left { Next::Again } else { Next::End })
}
