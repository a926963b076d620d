//! Erasing a sandbox's rows: which rows belong to a parcel, and in which order they are deleted. [`super::resets`] and
//! [`Store::purge`] decide which parcels are erased, and when. Production's parcels are permanent, and nothing in this
//! file touches them.

use parcelo::model::Deleted;
use rusqlite::Connection;

use super::{Store, StoreError, counts, pages::Budget};
use crate::{
    clock::Millis,
    domain::ParcelRowId,
    store::{
        generations::is_current,
        search_index,
        sql::{Sql, at_once},
    },
};

/// Returns the condition for sandboxes that have parcels. The counts have many rows for each sandbox, so the query
/// jumps from one tenant to the next.
macro_rules! sandboxes {
    () => {
        concat!(
            "tenant IN (WITH RECURSIVE counted (tenant) AS (SELECT min(tenant) FROM parcel_counts \
         UNION ALL SELECT (SELECT min(p.tenant) FROM parcel_counts AS p WHERE p.tenant > counted.tenant) \
         FROM counted WHERE counted.tenant IS NOT NULL) \
         SELECT tenant FROM counted WHERE tenant % 2 = 1 AND ",
            is_current!("tenant"),
            ")"
        )
    };
}

/// Selects some of the sandboxes' parcels that were created at `?1` or before.
pub(super) const OLD: &str = concat!(
    "SELECT id FROM parcels WHERE ",
    sandboxes!(),
    " AND created_at <= ?1 ORDER BY tenant, created_at, id LIMIT ?2"
);
/// Deletes some of the sandboxes' old manifests.
const OLD_MANIFESTS: &str = concat!(
    "DELETE FROM manifests WHERE id IN (SELECT id FROM manifests \
     WHERE tenant % 2 = 1 AND submitted_at <= ?1 AND ",
    is_current!("tenant"),
    " LIMIT ?2)"
);
/// Deletes some of the sandboxes' old idempotency records.
pub(super) const OLD_RECORDS: &str = concat!(
    "DELETE FROM idempotency WHERE id IN (SELECT id FROM idempotency WHERE ",
    sandboxes!(),
    " AND tenant % 2 = 1 AND first_seen <= ?1 LIMIT ?2)"
);

/// Deletes some of the records and manifests of an ended generation. The second condition matches the condition of an
/// index.
const ENDED_RECORDS: &str = "DELETE FROM idempotency WHERE id IN \
     (SELECT id FROM idempotency WHERE tenant = ?1 AND tenant % 2 = 1 LIMIT ?2)";
const ENDED_MANIFESTS: &str =
    "DELETE FROM manifests WHERE id IN (SELECT id FROM manifests WHERE tenant = ?1 LIMIT ?2)";

/// Deletes some of the rows that belong to a parcel.
const EVENTS: &str = "DELETE FROM events WHERE parcel = ?1 AND sequence IN \
     (SELECT sequence FROM events WHERE parcel = ?1 LIMIT ?2)";
const OTHERS: [&str; 4] = [
    "DELETE FROM mails WHERE id IN (SELECT id FROM mails WHERE parcel = ?1 LIMIT ?2)",
    "DELETE FROM manifest_parcels WHERE parcel IN \
     (SELECT parcel FROM manifest_parcels WHERE parcel = ?1 LIMIT ?2)",
    "DELETE FROM carrier_events WHERE (carrier, event_id) IN \
     (SELECT carrier, event_id FROM carrier_events WHERE parcel = ?1 LIMIT ?2)",
    "DELETE FROM carrier_exceptions WHERE id IN \
     (SELECT id FROM carrier_exceptions WHERE parcel = ?1 LIMIT ?2)",
];
/// Deletes some of the rows that belong to an event of the outbox.
const ATTEMPTS: &str = "DELETE FROM webhook_attempts WHERE id IN \
     (SELECT id FROM webhook_attempts WHERE outbox = ?1 LIMIT ?2)";

impl Store {
    /// Deletes the data of all sandboxes from `before` and earlier, page by page.
    pub async fn purge(&self, before: Millis) -> Result<Deleted, StoreError> {
        let mut all = Deleted::default();
        loop {
            let page = self.page(move |db, budget| purge(db, before.0, budget)).await?;
            let (deleted, is_more) = page;
            self.erased(deleted != Deleted::default());
            all = sum(all, deleted);
            if !is_more {
                return Ok(all);
            }
        }
    }
}

/// Purges one page. The flag is `true` if there may be more.
fn purge(db: &Connection, before: i64, budget: &mut Budget) -> rusqlite::Result<(Deleted, bool)> {
    let mut eraser = Eraser::new(db, budget);
    let is_more = eraser.old_parcels(before)?
        || eraser.manifests(OLD_MANIFESTS, before)?
        || eraser.records(OLD_RECORDS, before)?;
    if !is_more {
        // Not earlier, because the counts say which tenants are sandboxes.
        counts::sweep(db)?;
    }
    Ok((eraser.finish()?, is_more))
}

/// Deletes rows, and counts them for the answer of a reset.
pub(super) struct Eraser<'a> {
    db: &'a Connection,
    budget: &'a mut Budget,
    deleted: Deleted,
    /// The highest row of a deleted parcel.
    highest: i64,
}

impl<'a> Eraser<'a> {
    pub(super) fn new(db: &'a Connection, budget: &'a mut Budget) -> Self {
        Self { db, budget, deleted: Deleted::default(), highest: 0 }
    }

    /// Records the highest row of a deleted parcel, and returns the counts of the deleted data.
    pub(super) fn finish(self) -> rusqlite::Result<Deleted> {
        if self.highest > 0 {
            let sql = "UPDATE deleted_parcels SET highest = max(highest, ?1)";
            self.db.prepare_cached(sql)?.execute([self.highest])?;
        }
        Ok(self.deleted)
    }

    // The methods below return `true` if the page ended before everything was deleted.

    /// Erases all data of an ended generation. A parcel may lose its rows in several pages, because no read finds it.
    pub(super) fn generation(&mut self, number: i64) -> rusqlite::Result<bool> {
        Ok(self
            .deliveries("SELECT id FROM outbox WHERE tenant = ?1 ORDER BY id LIMIT ?2", number)?
            || self.records(ENDED_RECORDS, number)?
            || self.manifests(ENDED_MANIFESTS, number)?
            || self.ended_parcels(number)?)
    }

    fn ended_parcels(&mut self, number: i64) -> rusqlite::Result<bool> {
        let some = "SELECT id FROM parcels WHERE tenant = ?1 ORDER BY created_at, id LIMIT ?2";
        while let Some(parcels) = self.some(some, number)? {
            for parcel in parcels {
                if self.budget.is_spent() || self.parcel(parcel)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Erases old parcels, each in one page, because callers can see a parcel until it is gone.
    fn old_parcels(&mut self, before: i64) -> rusqlite::Result<bool> {
        while let Some(parcels) = self.some(OLD, before)? {
            for parcel in parcels {
                if self.budget.is_spent() {
                    return Ok(true);
                }
                self.old_parcel(parcel)?;
            }
        }
        Ok(false)
    }

    fn old_parcel(&mut self, parcel: i64) -> rusqlite::Result<()> {
        counts::deletes(self.db, ParcelRowId(parcel))?;
        let mut whole = Budget::unlimited();
        let mut eraser = Eraser::new(self.db, &mut whole);
        eraser.deliveries("SELECT id FROM outbox WHERE parcel = ?1 LIMIT ?2", parcel)?;
        eraser.parcel(parcel)?;
        let (deleted, highest) = (eraser.deleted, eraser.highest);
        self.highest = self.highest.max(highest);
        self.budget.spend(deleted.parcels + deleted.tracking_events + deleted.webhook_deliveries);
        self.deleted = sum(self.deleted, deleted);
        Ok(())
    }

    /// Erases one parcel with its rows, except its webhook events.
    fn parcel(&mut self, parcel: i64) -> rusqlite::Result<bool> {
        let (events, is_more) = self.delete(EVENTS, parcel)?;
        self.deleted.tracking_events += events;
        if is_more {
            return Ok(true);
        }
        for others in OTHERS {
            if self.delete(others, parcel)?.1 {
                return Ok(true);
            }
        }
        let pieces = at_once(search_index::remove(Sql::Sqlite(self.db), &[parcel]))?;
        self.budget.spend(pieces);
        let sql = "DELETE FROM parcels WHERE id = ?1";
        let parcels = self.db.prepare_cached(sql)?.execute([parcel])? as u64;
        self.budget.spend(parcels);
        // Each parcel has a label, and two events that its row implies.
        self.deleted.parcels += parcels;
        self.deleted.labels += parcels;
        self.deleted.tracking_events += 2 * parcels;
        self.highest = self.highest.max(parcel);
        Ok(false)
    }

    /// Erases the events of the outbox that `which` selects, with their attempts.
    fn deliveries(&mut self, which: &str, given: i64) -> rusqlite::Result<bool> {
        while let Some(events) = self.some(which, given)? {
            for event in events {
                if self.budget.is_spent() || self.delete(ATTEMPTS, event)?.1 {
                    return Ok(true);
                }
                let sql = "DELETE FROM outbox WHERE id = ?1";
                self.db.prepare_cached(sql)?.execute([event])?;
                self.budget.spend(1);
                self.deleted.webhook_deliveries += 1;
            }
        }
        Ok(false)
    }

    /// Erases manifests.
    fn manifests(&mut self, sql: &str, given: i64) -> rusqlite::Result<bool> {
        let (rows, is_more) = self.delete(sql, given)?;
        self.deleted.manifests += rows;
        Ok(is_more)
    }

    /// Erases idempotency records.
    fn records(&mut self, sql: &str, given: i64) -> rusqlite::Result<bool> {
        let (rows, is_more) = self.delete(sql, given)?;
        self.deleted.idempotency_keys += rows;
        Ok(is_more)
    }

    /// Returns the next rows that `which` selects. The last parameter of `which` is their maximum number.
    fn some(&self, which: &str, given: i64) -> rusqlite::Result<Option<Vec<i64>>> {
        let mut find = self.db.prepare_cached(which)?;
        let rows = find.query_map([given, self.budget.next_rows()], |row| row.get(0))?;
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        Ok((!rows.is_empty()).then_some(rows))
    }

    fn delete(&mut self, sql: &str, given: i64) -> rusqlite::Result<(u64, bool)> {
        let mut delete = self.db.prepare_cached(sql)?;
        self.budget.repeat(|max| delete.execute([given, max]))
    }
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
