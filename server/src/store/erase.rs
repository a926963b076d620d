//! Deleting a sandbox's data: all of one tenant's, or all that is too old. Production's is
//! permanent, and nothing in here touches it.

use parcelo::{Deleted, Environment};
use rusqlite::Connection;

use super::{Store, StoreError, counts};
use crate::{
    clock::Millis,
    core::{AccountKey, Tenant},
};

/// How many parcels one commit of the purge deletes.
const PAGE: u64 = 1_000;

/// The parcels of the tenant `?1`.
const ALL: &str = "SELECT id FROM parcels WHERE tenant = ?1";
/// The sandboxes' oldest parcels, created at `?1` or before.
const OLD: &str = "SELECT id FROM parcels \
     WHERE tenant IN (SELECT tenant FROM parcel_counts WHERE tenant % 2 = 1) AND created_at <= ?1 \
     ORDER BY tenant, created_at, id LIMIT 1000";

impl Store {
    /// Deletes all data of a sandbox; its keys and settings stay.
    pub async fn reset(&self, tenant: Tenant) -> Result<Deleted, StoreError> {
        if tenant.environment == Environment::Production {
            return Ok(Deleted::default());
        }
        self.call(move |db| reset(db, tenant.number())).await
    }

    /// The same for every sandbox.
    pub async fn reset_all(&self) -> Result<Deleted, StoreError> {
        self.call(|db| {
            let mut find = db.prepare_cached("SELECT id FROM accounts ORDER BY id")?;
            let accounts = find.query_map([], |row| row.get(0).map(AccountKey))?;
            let mut all = Deleted::default();
            for account in accounts.collect::<Result<Vec<_>, _>>()? {
                let tenant = Tenant { account, environment: Environment::Sandbox };
                all = sum(all, reset(db, tenant.number())?);
            }
            Ok(all)
        })
        .await
    }

    /// Deletes what all sandboxes have from `before` and earlier, at most 1,000 parcels a commit.
    pub async fn purge(&self, before: Millis) -> Result<Deleted, StoreError> {
        let mut all = Deleted::default();
        loop {
            let page = self.call(move |db| purge(db, before.0)).await?;
            all = sum(all, page);
            if page.parcels < PAGE {
                return Ok(all);
            }
        }
    }
}

fn reset(db: &Connection, tenant: i64) -> rusqlite::Result<Deleted> {
    counts::forget(db, tenant)?;
    let attempts = "DELETE FROM webhook_attempts \
         WHERE outbox IN (SELECT id FROM outbox WHERE tenant = ?1 AND tenant % 2 = 1)";
    delete(db, attempts, tenant)?;
    let outbox = "DELETE FROM outbox WHERE tenant = ?1 AND tenant % 2 = 1";
    Ok(Deleted {
        webhook_deliveries: delete(db, outbox, tenant)?,
        manifests: delete(db, "DELETE FROM manifests WHERE tenant = ?1", tenant)?,
        idempotency_keys: delete(
            db,
            "DELETE FROM idempotency WHERE tenant = ?1 AND tenant % 2 = 1",
            tenant,
        )?,
        ..parcels(db, ALL, tenant)?
    })
}

fn purge(db: &Connection, before: i64) -> rusqlite::Result<Deleted> {
    let sandboxes = "tenant IN (SELECT tenant FROM parcel_counts WHERE tenant % 2 = 1)";
    let keys = format!(
        "DELETE FROM idempotency WHERE {sandboxes} AND tenant % 2 = 1 AND first_seen <= ?1"
    );
    counts::deletes(db, OLD, before)?;
    let deleted = Deleted {
        manifests: delete(
            db,
            "DELETE FROM manifests WHERE tenant % 2 = 1 AND submitted_at <= ?1",
            before,
        )?,
        idempotency_keys: delete(db, &keys, before)?,
        ..parcels(db, OLD, before)?
    };
    // Not before: the counts say which tenants are sandboxes.
    counts::sweep(db)?;
    Ok(deleted)
}

/// Deletes the parcels that `which` selects, and whatever hangs on them.
fn parcels(db: &Connection, which: &str, value: i64) -> rusqlite::Result<Deleted> {
    let events = delete(db, &format!("DELETE FROM events WHERE parcel IN ({which})"), value)?;
    for table in ["manifest_parcels", "carrier_events", "carrier_exceptions"] {
        delete(db, &format!("DELETE FROM {table} WHERE parcel IN ({which})"), value)?;
    }
    let outbox = format!("FROM outbox WHERE parcel IN ({which})");
    let attempts = format!("DELETE FROM webhook_attempts WHERE outbox IN (SELECT id {outbox})");
    delete(db, &attempts, value)?;
    let webhook_deliveries = delete(db, &format!("DELETE {outbox}"), value)?;
    let highest = format!(
        "UPDATE deleted_parcels SET highest = max(highest, \
         coalesce((SELECT max(id) FROM parcels WHERE id IN ({which})), 0))"
    );
    delete(db, &highest, value)?;
    let parcels = delete(db, &format!("DELETE FROM parcels WHERE id IN ({which})"), value)?;
    // Each parcel has a label, and two events that its row implies.
    let tracking_events = events + 2 * parcels;
    Ok(Deleted {
        parcels,
        labels: parcels,
        tracking_events,
        webhook_deliveries,
        ..Deleted::default()
    })
}

fn delete(db: &Connection, sql: &str, value: i64) -> rusqlite::Result<u64> {
    db.prepare_cached(sql)?.execute([value]).map(|rows| rows as u64)
}

fn sum(one: Deleted, other: Deleted) -> Deleted {
    Deleted {
        parcels: one.parcels + other.parcels,
        labels: one.labels + other.labels,
        manifests: one.manifests + other.manifests,
        tracking_events: one.tracking_events + other.tracking_events,
        idempotency_keys: one.idempotency_keys + other.idempotency_keys,
        webhook_deliveries: one.webhook_deliveries + other.webhook_deliveries,
    }
}
