//! Resets of sandboxes. Each tenant has a number of resets, its epoch, and each of its rows has the epoch in
//! which it was written: a reset raises the number, and from its commit on no read sees the rows of
//! earlier epochs (the `living_` views). Ids would not do: those of several servers are not in the order of
//! time. What is hidden is counted for the answer, then erased page by page, beside everyone's orders; a
//! restart goes on with it.

use std::time::Duration;

use parcelo::{Environment, model::Deleted};

use super::{
    Store,
    connection::{Connection, get},
    erase::{self, PARCELS_PER_PAGE},
    error::DbResult,
    locks,
    pages::ROWS_PER_PAGE,
};
use crate::{domain::Tenant, store::StoreError};

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
        let epoch = self.call_within(None, async move |db| begin(db, tenant).await).await?;
        let deleted = self.read(async move |db| count(db, tenant, epoch).await).await?;
        self.erase_in_background(tenant, epoch);
        Ok(deleted)
    }

    fn erase_in_background(&self, tenant: i64, epoch: i64) {
        let is_new = self.erasing().insert((tenant, epoch));
        if is_new {
            tokio::spawn(self.clone().erase(tenant, epoch));
        }
    }

    /// Erases what a tenant's reset hides, until it is finished.
    async fn erase(self, tenant: i64, epoch: i64) {
        loop {
            let page = {
                let _turn = self.0.mass_writes.lock().await;
                let page = async move |db: &Connection| page(db, tenant, epoch).await;
                self.call_within(None, page).await
            };
            match page {
                Ok(true) => break,
                Ok(false) => {}
                Err(StoreError::Busy { .. } | StoreError::Full { .. }) => {
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

/// Hides all that the tenant has now; answers the epoch that begins.
async fn begin(db: &Connection, tenant: i64) -> DbResult<i64> {
    locks::keep_groups_away(db, tenant).await?;
    let sql = "INSERT INTO resets AS r (tenant, epoch, is_erasing) VALUES ($1, 1, true) \
         ON CONFLICT (tenant) DO UPDATE SET epoch = r.epoch + 1, is_erasing = true \
         RETURNING epoch";
    db.value(sql, &[&tenant]).await
}

/// What a reset deletes: all that it hides and that is not erased yet.
async fn count(db: &Connection, tenant: i64, epoch: i64) -> DbResult<Deleted> {
    let sql = "SELECT \
         (SELECT count(*) FROM parcels WHERE tenant = $1 AND epoch < $2), \
         (SELECT count(*) FROM parcels AS p JOIN events AS e ON e.parcel = p.id \
          WHERE p.tenant = $1 AND p.epoch < $2), \
         (SELECT count(*) FROM manifests WHERE tenant = $1 AND epoch < $2), \
         (SELECT count(*) FROM idempotency WHERE tenant = $1 AND tenant % 2 = 1 AND epoch < $2), \
         (SELECT count(*) FROM outbox WHERE tenant = $1 AND epoch < $2)";
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

/// Erases a page; answers whether all is erased.
async fn page(db: &Connection, tenant: i64, epoch: i64) -> DbResult<bool> {
    let statements = [
        "WITH old AS (DELETE FROM outbox WHERE id IN (SELECT id FROM outbox \
         WHERE tenant = $1 AND epoch < $2 LIMIT $3) RETURNING id), \
         attempts AS (DELETE FROM webhook_attempts WHERE outbox IN (SELECT id FROM old)) \
         SELECT count(*) FROM old",
        "WITH old AS (DELETE FROM idempotency WHERE key IN (SELECT key FROM idempotency \
         WHERE tenant = $1 AND tenant % 2 = 1 AND epoch < $2 LIMIT $3) RETURNING 1) \
         SELECT count(*) FROM old",
        "WITH old AS (DELETE FROM manifests WHERE id IN (SELECT id FROM manifests \
         WHERE tenant = $1 AND epoch < $2 LIMIT $3) RETURNING 1) SELECT count(*) FROM old",
    ];
    for sql in statements {
        if db.value::<i64>(sql, &[&tenant, &epoch, &ROWS_PER_PAGE]).await? == ROWS_PER_PAGE {
            return Ok(false);
        }
    }
    let sql = "SELECT id FROM parcels WHERE tenant = $1 AND epoch < $2 \
         ORDER BY created_at, id LIMIT $3";
    let parcels: Vec<i64> =
        db.each(sql, &[&tenant, &epoch, &PARCELS_PER_PAGE], |row| get(row, 0)).await?;
    if !parcels.is_empty() {
        erase::delete_parcels(db, &parcels).await?;
        return Ok(false);
    }
    db.execute("DELETE FROM parcel_counts WHERE tenant = $1 AND epoch < $2", &[&tenant, &epoch])
        .await?;
    let done = "UPDATE resets SET is_erasing = false WHERE tenant = $1 AND epoch = $2";
    db.execute(done, &[&tenant, &epoch]).await.map(|_rows| true)
}
