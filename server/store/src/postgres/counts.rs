//! The number of a tenant's parcels by day, state and country. A group inserts its changes, in rows that no other group
//! touches; [`Store::merge_count_changes`] adds them to the totals. A count is the sum of both. The changes by new
//! parcels are part of the statement that inserts the parcels (`creates.rs`).

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicI64, Ordering},
};

use super::{
    Store,
    connection::{Connection, column, get},
    error::DbResult,
    pages::ROWS_PER_PAGE,
};
use crate::{StoreError, counts::TOTALS_LOCK};

/// Inserts changes of counts.
const INSERT_CHANGES: &str = "INSERT INTO parcel_count_changes (tenant, day, state, country, difference) \
     SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::text[], $5::bigint[])";

/// Adds a page of changes to the totals and deletes the changes. Returns their number, and the id of the last one.
const MERGE: &str = "\
    WITH merged AS (DELETE FROM parcel_count_changes WHERE id = ANY (ARRAY ( \
        SELECT id FROM parcel_count_changes WHERE id > $1 ORDER BY id LIMIT $2)) RETURNING *), \
    added AS (INSERT INTO parcel_counts AS c (tenant, day, state, country, total) \
        SELECT tenant, day, state, country, sum(difference) FROM merged GROUP BY 1, 2, 3, 4 \
        ON CONFLICT (tenant, day, state, country) DO UPDATE SET total = c.total + excluded.total) \
    SELECT count(*), coalesce(max(id), $1) FROM merged";

/// One of this many merges begins with the first change, because changes are not committed in the order of their ids.
/// The others begin where the previous merge ended: while a long transaction runs elsewhere, the index still has all
/// deleted changes.
const MERGES_PER_FULL_MERGE: i64 = 60;

/// The id of the change after which the next merge begins, and the number of merges.
#[derive(Debug, Default)]
pub(super) struct MergeProgress {
    after: AtomicI64,
    count: AtomicI64,
}

/// The key of a count: tenant, day, state, country.
pub(super) type CountKey = (i64, i64, i16, String);

/// Changes of counts that are not written yet.
#[derive(Debug, Default)]
pub(super) struct CountChanges(BTreeMap<CountKey, i64>);

impl CountChanges {
    pub(super) fn add(&mut self, key: CountKey, difference: i64) {
        *self.0.entry(key).or_default() += difference;
    }

    pub(super) async fn write(&self, db: &Connection) -> DbResult<()> {
        let changed: Vec<_> = self.0.iter().filter(|(_, difference)| **difference != 0).collect();
        if changed.is_empty() {
            return Ok(());
        }
        let tenants = column!(changed, (key, _) => key.0);
        let days = column!(changed, (key, _) => key.1);
        let states = column!(changed, (key, _) => key.2);
        let countries = column!(changed, (key, _) => key.3.as_str());
        let differences = column!(changed, (_, difference) => **difference);
        db.execute(INSERT_CHANGES, &[&tenants, &days, &states, &countries, &differences])
            .await
            .map(drop)
    }
}

impl Store {
    /// Adds changes to the totals, unless another server is doing so.
    pub async fn merge_count_changes(&self) -> Result<(), StoreError> {
        let merges = &self.0.count_merges;
        if merges.count.fetch_add(1, Ordering::Relaxed) % MERGES_PER_FULL_MERGE == 0 {
            merges.after.store(0, Ordering::Relaxed);
        }
        loop {
            let after = merges.after.load(Ordering::Relaxed);
            let (rows, last) = self.page(async move |db| merge_page(db, after).await).await?;
            merges.after.store(last, Ordering::Relaxed);
            if rows < ROWS_PER_PAGE {
                return Ok(());
            }
        }
    }
}

async fn merge_page(db: &Connection, after: i64) -> DbResult<(i64, i64)> {
    let lock = "SELECT pg_try_advisory_xact_lock($1)";
    if !db.value::<bool>(lock, &[&TOTALS_LOCK]).await? {
        return Ok((0, after));
    }
    db.query_one(MERGE, &[&after, &ROWS_PER_PAGE], |row| Ok((get(row, 0)?, get(row, 1)?))).await
}
