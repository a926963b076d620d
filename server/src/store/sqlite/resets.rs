//! Resets of sandboxes. A reset has a boundary: one row of `resets` that says up to where the
//! tenant's rows are gone. From its commit on no read sees them (the `living_` views) and every
//! number, key and air waybill among them is free. Their rows are then erased page by page, by a
//! task of the server's, independent of the request: it outlives the request, and goes on after a restart.
//!
//! A reset that is asked for while one is under way joins it: the boundary moves to the new moment,
//! and the answer counts all of it.

use std::{collections::HashMap, time::Duration};

use parcelo::{Environment, model::Deleted};
use rusqlite::{Connection, OptionalExtension, Row};
use tokio::sync::watch;

use super::{
    Mode, Store, StoreError, counts,
    erase::{self, Eraser},
    outbox,
    pages::Budget,
    reset_counts,
};
use crate::{
    clock::{is_older, stopwatch},
    domain::{AccountRowId, Tenant},
};

/// How long a caller waits for the erasure; after that what it will have deleted is counted, which
/// reads every row of it. A request has 30 s.
const ERASE_WAIT: Duration = Duration::from_secs(10);
/// Before a page that the database had no time for is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// The tenant `?1`'s parcels up to `?2`.
const PARCELS: &str =
    "SELECT id FROM parcels WHERE tenant = ?1 AND id <= ?2 ORDER BY created_at, id LIMIT ?3";
const OUTBOX: &str = "SELECT id FROM outbox WHERE tenant = ?1 AND id <= ?2 ORDER BY id LIMIT ?3";
const MANIFESTS: &str = "DELETE FROM manifests WHERE id IN \
     (SELECT id FROM manifests WHERE tenant = ?1 AND id <= ?2 LIMIT ?3)";
const RECORDS: &str = "DELETE FROM idempotency WHERE id IN \
     (SELECT id FROM idempotency WHERE tenant = ?1 AND tenant % 2 = 1 AND id <= ?2 LIMIT ?3)";

/// The resets that this process is erasing, by tenant. The lock on it is the turn at mass writes.
pub(super) type UnderWay = HashMap<i64, watch::Sender<Asked>>;

/// What is known of a reset that is under way.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Asked {
    /// How often it was asked for.
    times: u64,
    /// What it deletes in all, once that is known.
    deleted: Option<Deleted>,
}

/// Up to where the tenant's rows are gone, and what is deleted of them.
struct Boundary {
    parcel: i64,
    manifest: i64,
    idempotency: i64,
    outbox: i64,
    deleted: Deleted,
}

impl Store {
    /// Deletes all data of a sandbox as it is at this moment; its keys and settings stay. Once
    /// polled it completes, whatever becomes of this future.
    pub async fn reset(&self, tenant: Tenant) -> Result<Deleted, StoreError> {
        if tenant.environment == Environment::Production {
            return Ok(Deleted::default());
        }
        let tenant = tenant.number();
        if let Mode::Inline(_) = self.0.mode {
            let deleted = self.call(move |db| at_once(db, tenant)).await?;
            return self.forget_dead_keys().await.map(|()| deleted);
        }
        let broken = || StoreError::Broken { database: self.database() };
        let begun = tokio::spawn(self.clone().begin_reset(tenant)).await;
        let mut asked = begun.map_err(|_panicked| broken())??;
        let known = asked.wait_for(|asked| asked.deleted.is_some()).await;
        known.map(|known| known.deleted.unwrap_or_default()).map_err(|_ended| broken())
    }

    /// The same for every sandbox, in one commit: for a server of tests.
    pub async fn reset_all(&self) -> Result<Deleted, StoreError> {
        let deleted = self.call(|db| {
            let mut find = db.prepare_cached("SELECT id FROM accounts ORDER BY id")?;
            let accounts = find.query_map([], |row| row.get(0).map(AccountRowId))?;
            let mut all = Deleted::default();
            for account in accounts.collect::<Result<Vec<_>, _>>()? {
                let tenant = Tenant { account, environment: Environment::Sandbox };
                all = erase::sum(all, at_once(db, tenant.number())?);
            }
            Ok(all)
        });
        let deleted = deleted.await?;
        self.forget_dead_keys().await.map(|()| deleted)
    }

    /// Goes on with the resets that a server before this one began.
    pub async fn resume_resets(&self) -> Result<(), StoreError> {
        let tenants = self.read(|db| {
            let mut find = db.prepare_cached("SELECT tenant FROM resets")?;
            find.query_map([], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()
        })?;
        let mut under_way = self.0.mass_writes.lock().await;
        for tenant in tenants {
            self.erase_in_background(&mut under_way, tenant);
        }
        Ok(())
    }

    async fn begin_reset(self, tenant: i64) -> Result<watch::Receiver<Asked>, StoreError> {
        // With the turn at mass writes, so that no page can end the reset between the two.
        let mut under_way = self.0.mass_writes.lock().await;
        self.call_within(None, move |db| begin(db, tenant)).await?;
        self.erase_in_background(&mut under_way, tenant);
        let asked = under_way.entry(tenant).or_default();
        asked.send_modify(|asked| *asked = Asked { times: asked.times + 1, deleted: None });
        Ok(asked.subscribe())
    }

    fn erase_in_background(&self, under_way: &mut UnderWay, tenant: i64) {
        under_way.entry(tenant).or_insert_with(|| {
            tokio::spawn(self.clone().erase(tenant));
            watch::Sender::default()
        });
    }

    /// Erases what a tenant's reset hides, until it is finished.
    async fn erase(self, tenant: i64) {
        let mut counted = stopwatch();
        loop {
            match self.erase_page(tenant).await {
                Ok(true) => {
                    // A failure leaves them to the next purge.
                    let _ = self.forget_dead_keys().await;
                    break self.truncate_log().await;
                }
                Ok(false) => {}
                Err(StoreError::Busy { .. } | StoreError::Full { .. }) => {
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Err(error) => {
                    // Those who wait see the end of the channel.
                    self.0.mass_writes.lock().await.remove(&tenant);
                    break tracing::error!(%error, "a reset stopped; it goes on within a minute");
                }
            }
            if is_older(counted, ERASE_WAIT) {
                self.count_ahead(tenant).await;
                counted = stopwatch();
            }
        }
    }

    /// One page; true when the reset is finished.
    async fn erase_page(&self, tenant: i64) -> Result<bool, StoreError> {
        let mut under_way = self.0.mass_writes.lock().await;
        let begin = self.budget();
        let page = self.call_within(None, move |db| page(db, tenant, &mut begin()));
        let (deleted, is_more) = page.await?;
        self.erased(true);
        if !is_more && let Some(asked) = under_way.remove(&tenant) {
            asked.send_modify(|asked| asked.deleted = Some(deleted));
        }
        Ok(!is_more)
    }

    /// Tells those who wait what a long reset deletes in all, before it has.
    async fn count_ahead(&self, tenant: i64) {
        let times = {
            let under_way = self.0.mass_writes.lock().await;
            let asked = under_way.get(&tenant).map(|asked| *asked.borrow());
            asked.filter(|asked| asked.deleted.is_none()).map(|asked| asked.times)
        };
        let Some(times) = times else { return };
        let store = self.clone();
        let counting = move || store.read(|db| total(db, tenant));
        // A failure of a read leaves those who wait to the next time, or to the end.
        let Ok(Ok(Some(deleted))) = tokio::task::spawn_blocking(counting).await else { return };
        if let Some(asked) = self.0.mass_writes.lock().await.get(&tenant) {
            // One that was asked for meanwhile deletes more.
            asked.send_if_modified(|asked| {
                let is_known = asked.times == times;
                asked.deleted = asked.deleted.or(is_known.then_some(deleted));
                is_known
            });
        }
    }
}

/// Hides all that the tenant has now.
pub(super) fn begin(db: &Connection, tenant: i64) -> rusqlite::Result<()> {
    let mut insert = db.prepare_cached(
        "INSERT INTO resets (tenant, parcel, manifest, idempotency, outbox) VALUES (?1, \
         coalesce((SELECT max(id) FROM parcels), 0), coalesce((SELECT max(id) FROM manifests), 0), \
         coalesce((SELECT max(id) FROM idempotency), 0), coalesce((SELECT max(id) FROM outbox), 0)) \
         ON CONFLICT (tenant) DO UPDATE SET parcel = excluded.parcel, manifest = excluded.manifest, \
         idempotency = excluded.idempotency, outbox = excluded.outbox",
    )?;
    insert.execute([tenant])?;
    counts::forget(db, tenant)?;
    outbox::forget_tenant(db, tenant)
}

/// Erases a page of what the tenant's reset hides; answers what was deleted until then, and whether
/// there is more.
pub(super) fn page(
    db: &Connection,
    tenant: i64,
    budget: &mut Budget,
) -> rusqlite::Result<(Deleted, bool)> {
    let Some(boundary) = boundary(db, tenant)? else { return Ok((Deleted::default(), false)) };
    let mut eraser = Eraser::new(db, budget);
    let is_more = eraser.deliveries(OUTBOX, &[tenant, boundary.outbox])?
        || eraser.records(RECORDS, &[tenant, boundary.idempotency])?
        || eraser.manifests(MANIFESTS, &[tenant, boundary.manifest])?
        || eraser.hidden_parcels(PARCELS, [tenant, boundary.parcel])?;
    let deleted = eraser.finish()?;
    if is_more {
        reset_counts::add(db, tenant, deleted)?;
    } else {
        db.prepare_cached("DELETE FROM resets WHERE tenant = ?1")?.execute([tenant])?;
    }
    Ok((erase::sum(boundary.deleted, deleted), is_more))
}

fn at_once(db: &Connection, tenant: i64) -> rusqlite::Result<Deleted> {
    begin(db, tenant)?;
    page(db, tenant, &mut Budget::unlimited()).map(|(deleted, _)| deleted)
}

fn boundary(db: &Connection, tenant: i64) -> rusqlite::Result<Option<Boundary>> {
    let mut find = db.prepare_cached(
        "SELECT parcel, manifest, idempotency, outbox, parcels, manifests, events, keys, deliveries \
         FROM resets WHERE tenant = ?1",
    )?;
    let read = |row: &Row<'_>| {
        let deleted = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
        Ok(Boundary {
            parcel: row.get(0)?,
            manifest: row.get(1)?,
            idempotency: row.get(2)?,
            outbox: row.get(3)?,
            deleted: Deleted::default()
                .with_parcels(deleted(4)?)
                .with_labels(deleted(4)?)
                .with_manifests(deleted(5)?)
                .with_tracking_events(deleted(6)?)
                .with_idempotency_keys(deleted(7)?)
                .with_webhook_deliveries(deleted(8)?),
        })
    };
    find.query_row([tenant], read).optional()
}

/// What a reset deletes in all: what it has deleted, and what is left of it at the same moment.
/// None when it is finished.
pub(super) fn total(db: &Connection, tenant: i64) -> rusqlite::Result<Option<Deleted>> {
    let moment = db.unchecked_transaction()?;
    let Some(boundary) = boundary(&moment, tenant)? else { return Ok(None) };
    let left = |sql: &str, up_to: i64| -> rusqlite::Result<u64> {
        let mut count = moment.prepare_cached(sql)?;
        count.query_row([tenant, up_to], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
    };
    let parcels =
        left("SELECT count(*) FROM parcels WHERE tenant = ?1 AND id <= ?2", boundary.parcel)?;
    let events = left(
        "SELECT count(*) FROM parcels AS p JOIN events AS e ON e.parcel = p.id \
         WHERE p.tenant = ?1 AND p.id <= ?2",
        boundary.parcel,
    )?;
    let manifests =
        left("SELECT count(*) FROM manifests WHERE tenant = ?1 AND id <= ?2", boundary.manifest)?;
    let keys = left(
        "SELECT count(*) FROM idempotency WHERE tenant = ?1 AND tenant % 2 = 1 AND id <= ?2",
        boundary.idempotency,
    )?;
    let deliveries =
        left("SELECT count(*) FROM outbox WHERE tenant = ?1 AND id <= ?2", boundary.outbox)?;
    let left = Deleted::default()
        .with_parcels(parcels)
        .with_labels(parcels)
        .with_manifests(manifests)
        .with_tracking_events(events + 2 * parcels)
        .with_idempotency_keys(keys)
        .with_webhook_deliveries(deliveries);
    Ok(Some(erase::sum(boundary.deleted, left)))
}
