//! Erasing a sandbox's rows: what goes with a parcel, and in which order. Which parcels go, and
//! when, is decided in [`super::resets`] and by [`Store::purge`]. Production's are permanent, and
//! nothing in here touches them.

use parcelo::{Environment, TrackingNumber, model::Deleted};

use super::{
    Store,
    connection::{Connection, get},
    counts::Counts,
    error::{DbResult, Failure},
    locks,
    outbox::delete_events,
    pages::{ROWS_PER_PAGE, in_page},
    parcels, term_runs,
};
use crate::{clock::Millis, domain::activity, store::StoreError};

/// The most parcels of a page: each has some rows more.
pub(super) const PARCELS_PER_PAGE: i64 = 200;

impl Store {
    pub(crate) async fn purge(&self, before: Millis) -> Result<Deleted, StoreError> {
        let (before, last_day) = (before.0, activity::day_of(before));
        let tenants = self
            .read(async move |db| {
                // Not those that have nothing old: a page is a transaction.
                let sql = "SELECT DISTINCT tenant FROM parcel_counts \
                     WHERE tenant % 2 = 1 AND day <= $1 AND total > 0";
                db.each(sql, &[&last_day], |row| get::<i64>(row, 0)).await
            })
            .await?;
        let mut all = Deleted::default();
        for tenant in tenants {
            loop {
                let page = async move |db: &Connection| old_parcels(db, tenant, before).await;
                let page = self.page(page).await?;
                all = sum(all, page);
                if page.parcels < PARCELS_PER_PAGE.unsigned_abs() {
                    break;
                }
            }
        }
        let manifests = self.in_pages(async move |db| {
            let sql = concat!(
                "DELETE FROM manifests WHERE ",
                in_page!(
                    "id",
                    "living_manifests WHERE tenant % 2 = 1 AND submitted_at <= $1 \
                     ORDER BY submitted_at LIMIT $2"
                ),
            );
            db.execute(sql, &[&before, &ROWS_PER_PAGE]).await
        });
        let manifests = manifests.await?;
        let records = self.in_pages(async move |db| {
            let sql = concat!(
                "DELETE FROM idempotency WHERE ",
                in_page!(
                    "key",
                    "living_idempotency WHERE tenant % 2 = 1 AND first_seen <= $1 \
                     ORDER BY first_seen LIMIT $2"
                ),
            );
            db.execute(sql, &[&before, &ROWS_PER_PAGE]).await
        });
        let records = records.await?;
        self.page(async |db| {
            db.run("DELETE FROM parcel_counts WHERE total = 0 AND tenant % 2 = 1").await
        })
        .await?;
        Ok(sum(all, Deleted::default().with_manifests(manifests).with_idempotency_keys(records)))
    }
}

/// A page of a sandbox's old parcels, each whole: callers see it until it is gone.
async fn old_parcels(db: &Connection, tenant: i64, before: i64) -> DbResult<Deleted> {
    let sql = "SELECT id FROM living_parcels WHERE tenant = $1 AND created_at <= $2 \
         ORDER BY created_at, id LIMIT $3";
    let mut ids: Vec<i64> =
        db.each(sql, &[&tenant, &before, &PARCELS_PER_PAGE], |row| get(row, 0)).await?;
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
    Ok(deleted.with_webhook_deliveries(deliveries.unsigned_abs()))
}

/// Deletes parcels, and what hangs on them but their webhook events.
pub(super) async fn delete_parcels(db: &Connection, parcels: &[i64]) -> DbResult<Deleted> {
    term_runs::lock(db).await?;
    term_runs::remove(db, parcels).await?;
    let events = db.execute("DELETE FROM events WHERE parcel = ANY($1)", &[&parcels]).await?;
    for table in ["manifest_parcels", "carrier_events", "carrier_exceptions", "mails"] {
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

/// Whether a parcel has this row, also one that a reset hides.
pub(super) async fn is_row_taken(db: &Connection, row: i64) -> DbResult<bool> {
    db.value("SELECT EXISTS (SELECT 1 FROM parcels WHERE id = $1)", &[&row]).await
}

/// Deletes a parcel that a reset hides, so that its number is free; says whether there was one.
pub(super) async fn free_number(
    db: &Connection,
    (environment, number): (Environment, &TrackingNumber),
) -> DbResult<bool> {
    let given: super::connection::Given<'_> =
        &[&parcels::environment(environment), &parcels::indexed(number)];
    let hidden = "SELECT p.id FROM parcels AS p JOIN resets AS r \
         ON r.tenant = p.tenant AND r.epoch > p.epoch \
         WHERE p.environment = $1 AND upper(p.number) = $2 FOR UPDATE OF p";
    if let Some(row) = db.first(hidden, given).await? {
        delete_parcels(db, &[get(&row, 0)?]).await?;
        return Ok(true);
    }
    let taken = "SELECT EXISTS (SELECT 1 FROM living_parcels \
         WHERE environment = $1 AND upper(number) = $2)";
    if db.value(taken, given).await? {
        return Ok(false);
    }
    // It was erased between the two statements.
    Err(Failure::Conflict)
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
