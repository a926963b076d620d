//! Erases rows of sandboxes: which rows belong to a parcel, and in which order they are deleted. [`super::resets`] and
//! [`Store::purge`] decide which parcels are erased, and when. Production's parcels are permanent, and nothing in this
//! file touches them.

use std::slice;

use parcelo_domain::Millis;
use parcelo_types::{Environment, TrackingNumber, model::Deleted};

use super::{
    Store, StoreError,
    columns::{self, is_among, join_with_commas},
    counts,
    generations::{is_current, is_current_locked},
    old_rows::{OldRows, old_rows},
    pages::Budget,
    search_index,
    sql::{Sql, SqlResult, params},
    values::Value,
};

/// Maximum number of parcels that are erased together on PostgreSQL; each has some more rows. In a file it is one,
/// because a page may end after each parcel.
const PARCELS_PER_STEP: i64 = 200;

/// Selects the sandboxes that have old parcels, with one index lookup for each tenant.
pub(super) const TENANTS: &str = "WITH RECURSIVE tenants AS (SELECT min(tenant) AS tenant FROM parcels UNION ALL \
     SELECT (SELECT min(p.tenant) FROM parcels AS p WHERE p.tenant > t.tenant) \
     FROM tenants AS t WHERE t.tenant IS NOT NULL) \
     SELECT tenant FROM tenants AS t WHERE tenant % 2 = 1 AND EXISTS \
     (SELECT 1 FROM parcels AS p WHERE p.tenant = t.tenant AND p.created_at <= $1)";

/// Returns a condition for rows of current generations of sandboxes. The counts have many rows for each sandbox, so the
/// query jumps from one tenant to the next.
macro_rules! counted_sandboxes {
    () => {
        concat!(
            "tenant IN (WITH RECURSIVE counted (tenant) AS (SELECT min(tenant) FROM parcel_counts \
             UNION ALL SELECT (SELECT min(p.tenant) FROM parcel_counts AS p WHERE p.tenant > counted.tenant) \
             FROM counted WHERE counted.tenant IS NOT NULL) \
             SELECT tenant FROM counted WHERE tenant % 2 = 1 AND ",
            is_current!("tenant"),
            ") AND tenant % 2 = 1 AND "
        )
    };
}

/// The sandboxes' old manifests.
const OLD_MANIFESTS: OldRows = old_rows!(
    "manifests",
    "id",
    "submitted_at",
    concat!("tenant % 2 = 1 AND ", is_current_locked!("tenant"), " AND "),
    concat!("tenant % 2 = 1 AND ", is_current!("tenant"), " AND ")
);
/// The sandboxes' old idempotency records.
pub(super) const OLD_RECORDS: OldRows = old_rows!(
    "idempotency",
    "id",
    "first_seen",
    concat!("tenant % 2 = 1 AND ", is_current_locked!("tenant"), " AND "),
    counted_sandboxes!()
);

/// Selects some of a sandbox's old parcels. PostgreSQL locks them in the order of their ids, as writers of orders do.
pub(super) const OLD_PARCELS: &str = concat!(
    "{SELECT id, created_at FROM parcels WHERE id = ANY (ARRAY (SELECT id|SELECT id, created_at} \
     FROM parcels WHERE tenant = $1 AND created_at >= $2 AND created_at <= $3 AND {",
    is_current_locked!("$1"),
    "|",
    is_current!("$1"),
    "} ORDER BY created_at, id LIMIT $4{)) ORDER BY id FOR UPDATE|}"
);

/// Returns a statement that deletes at most `$2` rows of a table, which a condition selects.
macro_rules! delete_some {
    ($table:literal, $key:literal, $($which:tt)+) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE {ctid = ANY (ARRAY (SELECT ctid|(",
            $key,
            ") IN (SELECT ",
            $key,
            "} FROM ",
            $table,
            " WHERE ",
            $($which)+,
            " LIMIT $2{))|)}"
        )
    };
}

/// Returns a statement that deletes rows of parcels (`$1`). `SQLite` deletes at most `$2`; PostgreSQL deletes all, because
/// it tests a row again that another server has just changed only if the condition is about the row itself.
macro_rules! delete_parcel_rows {
    ($table:literal, $key:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE {$2::bigint > 0 AND parcel |(",
            $key,
            ") IN (SELECT ",
            $key,
            " FROM ",
            $table,
            " WHERE parcel }",
            is_among!("$1"),
            "{| LIMIT $2)}"
        )
    };
}

/// Statements that delete the rows that belong to parcels (`$1`), except their events.
const DELETE_PARCEL_ROWS: [&str; 4] = [
    delete_parcel_rows!("mails", "id"),
    delete_parcel_rows!("manifest_parcels", "parcel"),
    delete_parcel_rows!("carrier_events", "carrier, event_id"),
    delete_parcel_rows!("carrier_exceptions", "id"),
];

impl Store {
    /// Deletes the data from `cutoff` and earlier of all sandboxes, page by page.
    pub async fn purge(&self, cutoff: Millis) -> Result<Deleted, StoreError> {
        let tenants = async move |db: Sql<'_>| {
            db.query_map(TENANTS, params![cutoff], |row| row.get::<i64>(0)).await
        };
        let tenants = self.query(tenants).await?;
        let mut all = Deleted::default();
        for tenant in &tenants {
            all = add_counts(all, self.purge_parcels(*tenant, cutoff).await?);
        }
        let manifests = self.delete_old(OLD_MANIFESTS, cutoff.0).await?;
        let records = self.delete_old(OLD_RECORDS, cutoff.0).await?;
        // Not earlier, because in a file the counts say which tenants are sandboxes.
        self.page(async move |db| counts::delete_zero_counts(db, &tenants).await).await?;
        self.mark_erased(manifests + records > 0);
        Ok(add_counts(
            all,
            Deleted::default().with_manifests(manifests).with_idempotency_keys(records),
        ))
    }

    async fn purge_parcels(&self, tenant: i64, cutoff: Millis) -> Result<Deleted, StoreError> {
        // Each page begins where the previous one ended, because while a long transaction runs elsewhere, PostgreSQL's
        // index still has all deleted rows.
        let (mut all, mut from) = (Deleted::default(), Some(Millis(i64::MIN)));
        while let Some(first) = from {
            let page = async move |db: Sql<'_>, budget: &mut Budget| {
                let mut eraser = Eraser::new(db, budget);
                let next = eraser.erase_old_parcels(tenant, (first, cutoff)).await?;
                Ok((eraser.finish().await?, next))
            };
            let (deleted, next) = self.page_within(page).await?;
            self.mark_erased(deleted != Deleted::default());
            (all, from) = (add_counts(all, deleted), next);
        }
        Ok(all)
    }

    /// Records that a file's write-ahead log may still hold erased data, if anything was erased.
    pub(super) fn mark_erased(&self, something: bool) {
        if let Ok(engine) = self.sqlite() {
            engine.mark_erased(something);
        }
    }
}

/// Deletes rows, and counts them for the answer.
pub(super) struct Eraser<'a> {
    db: Sql<'a>,
    budget: &'a mut Budget,
    deleted: Deleted,
    /// The highest row id of a deleted parcel.
    highest_row_id: i64,
}

impl<'a> Eraser<'a> {
    pub(super) fn new(db: Sql<'a>, budget: &'a mut Budget) -> Self {
        Self { db, budget, deleted: Deleted::default(), highest_row_id: 0 }
    }

    /// Returns the counts of the deleted data. A file records the highest row id of a deleted parcel.
    pub(super) async fn finish(self) -> SqlResult<Deleted> {
        if self.highest_row_id > 0 && !self.db.is_postgres() {
            let sql = "UPDATE deleted_parcels SET highest = max(highest, $1)";
            self.db.execute(sql, params![self.highest_row_id]).await?;
        }
        Ok(self.deleted)
    }

    /// Erases data of an ended generation, from the table at stage `from` on. A parcel may lose its rows in several
    /// pages, because no read finds it. Returns the stage of the next page, or `None` if nothing is left: no one adds
    /// rows.
    pub(super) async fn erase_generation(
        &mut self,
        number: i64,
        from: u8,
    ) -> SqlResult<Option<u8>> {
        for stage in from..=3 {
            let is_more = match stage {
                0 => self.erase_deliveries("tenant = $1 ORDER BY id", number.into()).await?,
                1 => {
                    // The second condition matches the condition of an index, and so does the order.
                    let sql = delete_some!(
                        "idempotency",
                        "id",
                        "tenant = $1 AND tenant % 2 = 1{ ORDER BY first_seen|}"
                    );
                    let (rows, is_more) = self.delete(sql, &number.into()).await?;
                    self.deleted.idempotency_keys += rows;
                    is_more
                }
                2 => {
                    let sql = delete_some!("manifests", "id", "tenant = $1 ORDER BY awb");
                    let (rows, is_more) = self.delete(sql, &number.into()).await?;
                    self.deleted.manifests += rows;
                    is_more
                }
                _ => self.erase_ended_parcels(number).await?,
            };
            if is_more {
                return Ok(Some(stage));
            }
        }
        Ok(None)
    }

    // The methods below return `true` if the page ended before everything was deleted.

    async fn erase_ended_parcels(&mut self, number: i64) -> SqlResult<bool> {
        let sql = "{SELECT id FROM parcels WHERE id = ANY (ARRAY (|}SELECT id FROM parcels \
             WHERE tenant = $1 ORDER BY created_at, id LIMIT $2{)) ORDER BY id FOR UPDATE|}";
        loop {
            if self.budget.is_spent() {
                return Ok(true);
            }
            let params = params![number, self.parcels_per_step()];
            let parcels = self.db.query_map(sql, params, |row| row.get(0)).await?;
            if parcels.is_empty() {
                return Ok(false);
            }
            if self.erase_parcels(&parcels).await? {
                return Ok(true);
            }
        }
    }

    /// Erases a sandbox's parcels that were created from `from` to `cutoff`, each in one page, because callers can see
    /// a parcel until it is gone. Returns the time from which the next page goes on, or `None` if nothing is left.
    async fn erase_old_parcels(
        &mut self,
        tenant: i64,
        (mut from, cutoff): (Millis, Millis),
    ) -> SqlResult<Option<Millis>> {
        while !self.budget.is_spent() {
            let params = params![tenant, from, cutoff, self.parcels_per_step()];
            let read = |row: &super::sql::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            let old: Vec<(i64, Millis)> = self.db.query_map(OLD_PARCELS, params, read).await?;
            let Some(last) = old.iter().map(|(_, created_at)| *created_at).max() else {
                return Ok(None);
            };
            from = last;
            let ids: Vec<i64> = old.into_iter().map(|(id, _)| id).collect();
            counts::subtract(self.db, &ids).await?;
            let mut whole = Budget::unlimited();
            let mut eraser = Eraser::new(self.db, &mut whole);
            let by_parcel = concat!("parcel ", is_among!("$1"));
            eraser.erase_deliveries(by_parcel, Value::from(&join_with_commas(&ids))).await?;
            eraser.erase_parcels(&ids).await?;
            let Eraser { deleted, highest_row_id, .. } = eraser;
            self.highest_row_id = self.highest_row_id.max(highest_row_id);
            let spent = deleted.parcels + deleted.tracking_events + deleted.webhook_deliveries;
            self.budget.spend(spent);
            self.deleted = add_counts(self.deleted, deleted);
        }
        Ok(Some(from))
    }

    /// Erases parcels with their rows, except their webhook events. The parcels are locked first, because moving one
    /// adds an event.
    async fn erase_parcels(&mut self, parcels: &[i64]) -> SqlResult<bool> {
        let ids = Value::from(&join_with_commas(parcels));
        let events = delete_some!("events", "parcel, sequence", "parcel ", is_among!("$1"));
        let (events, is_more) = self.delete(events, &ids).await?;
        self.deleted.tracking_events += events;
        if is_more {
            return Ok(true);
        }
        for sql in DELETE_PARCEL_ROWS {
            if self.delete(sql, &ids).await?.1 {
                return Ok(true);
            }
        }
        search_index::index_progress(self.db, "FOR UPDATE").await?;
        let pieces = search_index::remove(self.db, parcels).await?;
        if self.db.is_postgres() {
            self.delete_rows("orders", "parcel", &ids).await?;
        }
        let rows = self.delete_rows("parcels", "id", &ids).await?;
        self.budget.spend(pieces + rows);
        // Each parcel has a label, and two events that its row implies.
        self.deleted.parcels += rows;
        self.deleted.labels += rows;
        self.deleted.tracking_events += 2 * rows;
        self.highest_row_id = parcels.iter().copied().fold(self.highest_row_id, i64::max);
        Ok(false)
    }

    /// Erases the events of the outbox that a condition selects, with their attempts. The events are locked first,
    /// because settling one logs an attempt.
    async fn erase_deliveries(&mut self, condition: &str, params: Value) -> SqlResult<bool> {
        let select = format!("SELECT id FROM outbox WHERE {condition} LIMIT $2{{ FOR UPDATE|}}");
        loop {
            if self.budget.is_spent() {
                return Ok(true);
            }
            let params = &[params.clone(), self.budget.next_rows().into()];
            let events = self.db.query_map(&select, params, |row| row.get::<i64>(0)).await?;
            if events.is_empty() {
                return Ok(false);
            }
            let ids = Value::from(&join_with_commas(&events));
            let attempts = delete_some!("webhook_attempts", "id", "outbox ", is_among!("$1"));
            if self.delete(attempts, &ids).await?.1 {
                return Ok(true);
            }
            let rows = self.delete_rows("outbox", "id", &ids).await?;
            self.budget.spend(rows);
            self.deleted.webhook_deliveries += rows;
        }
    }

    /// Deletes the rows of a table that have one of these ids in a column, and returns their number.
    async fn delete_rows(&self, table: &str, column: &str, ids: &Value) -> SqlResult<u64> {
        let sql = format!("DELETE FROM {table} WHERE {column} ") + is_among!("$1");
        self.db.execute(&sql, slice::from_ref(ids)).await
    }

    async fn delete(&mut self, sql: &str, params: &Value) -> SqlResult<(u64, bool)> {
        let db = self.db;
        let statement = async |max: i64| db.execute(sql, &[params.clone(), max.into()]).await;
        self.budget.repeat(statement).await
    }

    const fn parcels_per_step(&self) -> i64 {
        if self.db.is_postgres() { PARCELS_PER_STEP } else { 1 }
    }
}

/// Frees the number of a parcel of an ended generation. The parcel stays, so that it is counted and erased with the
/// others. Returns `true` if there was such a parcel.
pub(super) async fn free_number(
    db: Sql<'_>,
    (environment, number): (Environment, &TrackingNumber),
) -> SqlResult<bool> {
    // Several parcels may have had the number, one after another.
    let sql = "UPDATE parcels SET environment = {coalesce((SELECT min(p.environment) FROM parcels AS p \
         WHERE p.environment < 0 AND upper(p.number) = $2), 0) - 1|-id} \
         WHERE environment = $1 AND {upper(number)|number} = $2 \
         AND tenant IN (SELECT e.number FROM ended_generations AS e)";
    let number = number.as_str().to_ascii_uppercase();
    Ok(db.execute(sql, params![columns::environment_number(environment), &number]).await? > 0)
}

pub(super) fn add_counts(one: Deleted, other: Deleted) -> Deleted {
    Deleted::default()
        .with_parcels(one.parcels + other.parcels)
        .with_labels(one.labels + other.labels)
        .with_manifests(one.manifests + other.manifests)
        .with_tracking_events(one.tracking_events + other.tracking_events)
        .with_idempotency_keys(one.idempotency_keys + other.idempotency_keys)
        .with_webhook_deliveries(one.webhook_deliveries + other.webhook_deliveries)
}
