//! Erases rows of sandboxes: the rows that belong to a parcel, in a safe order. [`super::resets`] and [`Store::purge`]
//! decide which parcels are erased, and when. Production rows are permanent, and this module never touches them.

use parcelo::{Environment, TrackingNumber, model::Deleted};

use super::{
    Store,
    connection::{Connection, get},
    counts::{Counts, keep_folds_away},
    creates,
    error::DbResult,
    generations::is_held,
    locks,
    outbox::delete_events,
    pages::delete_old,
};
use crate::{
    clock::Millis,
    store::{StoreError, search_index, sql::Sql},
};

/// Maximum number of parcels in a page; each has some more rows.
pub(super) const PARCELS_PER_PAGE: i64 = 200;

/// Selects the sandboxes that have old parcels, with one index lookup for each tenant.
const TENANTS: &str = "\
    WITH RECURSIVE tenants AS (SELECT min(tenant) AS tenant FROM parcels UNION ALL \
        SELECT (SELECT min(p.tenant) FROM parcels AS p WHERE p.tenant > t.tenant) \
        FROM tenants AS t WHERE t.tenant IS NOT NULL) \
    SELECT tenant FROM tenants AS t WHERE tenant % 2 = 1 AND EXISTS \
        (SELECT 1 FROM parcels AS p WHERE p.tenant = t.tenant AND p.created_at <= $1)";

/// Returns the condition for rows of a table that a purge may delete.
macro_rules! of_sandboxes {
    ($table:literal) => {
        concat!($table, " WHERE tenant % 2 = 1 AND ", is_held!("tenant"), " AND ")
    };
}

impl Store {
    pub(crate) async fn purge(&self, before: Millis) -> Result<Deleted, StoreError> {
        let before = before.0;
        let tenants = self
            .read(async move |db| db.each(TENANTS, &[&before], |row| get::<i64>(row, 0)).await)
            .await?;
        let mut all = Deleted::default();
        for tenant in tenants.iter().copied() {
            let mut from = i64::MIN;
            loop {
                let page =
                    async move |db: &Connection| old_parcels(db, tenant, (from, before)).await;
                let (page, last) = self.page(page).await?;
                all = sum(all, page);
                if page.parcels < PARCELS_PER_PAGE.unsigned_abs() {
                    break;
                }
                from = last;
            }
        }
        let sql = delete_old!("manifests", "id", of_sandboxes!("manifests"), "submitted_at");
        let manifests = self.delete_old(sql, before).await?;
        let sql = delete_old!("idempotency", "ctid", of_sandboxes!("idempotency"), "first_seen");
        let records = self.delete_old(sql, before).await?;
        self.page(async move |db| {
            keep_folds_away(db).await?;
            let sql = "DELETE FROM parcel_counts WHERE tenant = ANY($1) AND total = 0";
            db.execute(sql, &[&tenants]).await
        })
        .await?;
        Ok(sum(all, Deleted::default().with_manifests(manifests).with_idempotency_keys(records)))
    }
}

/// Erases a page of a sandbox's old parcels, each as a whole: callers see a parcel until it is gone. Returns the time
/// of the last one too.
async fn old_parcels(
    db: &Connection,
    tenant: i64,
    (from, before): (i64, i64),
) -> DbResult<(Deleted, i64)> {
    let sql = concat!(
        "SELECT id, created_at FROM parcels \
         WHERE tenant = $1 AND created_at >= $2 AND created_at <= $3 AND ",
        is_held!("$1"),
        " ORDER BY created_at, id LIMIT $4"
    );
    let given: super::connection::Given<'_> = &[&tenant, &from, &before, &PARCELS_PER_PAGE];
    let old: Vec<(i64, i64)> = db.each(sql, given, |row| Ok((get(row, 0)?, get(row, 1)?))).await?;
    let last = old.last().map_or(from, |(_, created_at)| *created_at);
    let mut ids: Vec<i64> = old.into_iter().map(|(id, _)| id).collect();
    ids.sort_unstable();
    let locked = locks::lock(db, &ids, &[]).await?;
    let ids: Vec<i64> = ids
        .into_iter()
        .filter(|id| locked.contains_key(&crate::domain::ParcelRowId(*id)))
        .collect();
    let mut counts = Counts::default();
    for parcel in locked.values() {
        counts.add(parcel, -1);
    }
    let deliveries: i64 = db.value(delete_events!("parcel = ANY($1)"), &[&ids]).await?;
    let deleted = delete_parcels(db, &ids).await?;
    counts.write(db).await?;
    Ok((deleted.with_webhook_deliveries(deliveries.unsigned_abs()), last))
}

/// Deletes parcels with their rows, except their webhook events.
pub(super) async fn delete_parcels(db: &Connection, parcels: &[i64]) -> DbResult<Deleted> {
    search_index::lock(Sql::Postgres(db)).await?;
    search_index::remove(Sql::Postgres(db), parcels).await?;
    let events = db.execute("DELETE FROM events WHERE parcel = ANY($1)", &[&parcels]).await?;
    for table in ["orders", "manifest_parcels", "carrier_events", "carrier_exceptions", "mails"] {
        let sql = format!("DELETE FROM {table} WHERE parcel = ANY($1)");
        db.execute(&sql, &[&parcels]).await?;
    }
    let parcels = db.execute("DELETE FROM parcels WHERE id = ANY($1)", &[&parcels]).await?;
    // Each parcel has a label, and two events that its row implies.
    Ok(Deleted::default()
        .with_parcels(parcels)
        .with_labels(parcels)
        .with_tracking_events(events + 2 * parcels))
}

/// Frees the number of a parcel of an ended generation. The parcel stays, so that it is counted and erased with the
/// others.
pub(super) async fn free_number(
    db: &Connection,
    (environment, number): (Environment, &TrackingNumber),
) -> DbResult<()> {
    // Several parcels may have had the number, one after another.
    let sql = "UPDATE parcels SET environment = coalesce((SELECT min(p.environment) FROM parcels AS p \
         WHERE p.environment < 0 AND upper(p.number) = $2), 0) - 1 \
         WHERE environment = $1 AND upper(number) = $2 \
         AND tenant IN (SELECT e.number FROM ended_generations AS e)";
    let given: super::connection::Given<'_> =
        &[&creates::environment(environment), &creates::indexed(number)];
    db.execute(sql, given).await.map(drop)
}

pub(super) fn sum(one: Deleted, other: Deleted) -> Deleted {
    Deleted::default()
        .with_parcels(one.parcels + other.parcels)
        .with_labels(one.labels + other.labels)
        .with_manifests(one.manifests + other.manifests)
        .with_tracking_events(one.tracking_events + other.tracking_events)
        .with_idempotency_keys(one.idempotency_keys + other.idempotency_keys)
        .with_webhook_deliveries(one.webhook_deliveries + other.webhook_deliveries)
}
