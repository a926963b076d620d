//! The schema, and the upgrade of a file of an older version.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use rusqlite::Connection;

use crate::sql::Sql;

/// The schema's history. A file's `user_version` is the number of migrations that were applied to it. Migrations lose
/// no data, but some rebuild a table, so a program that knows fewer of them refuses the file. A migration for
/// both engines is in PostgreSQL's folder, with both spellings like any statement ([`Sql`]).
pub(super) const MIGRATIONS: [&str; 30] = [
    include_str!("migrations/0001_init.sql"),
    include_str!("migrations/0002_lists.sql"),
    include_str!("migrations/0003_carriers.sql"),
    include_str!("migrations/0004_legacy.sql"),
    include_str!("migrations/0005_webhooks.sql"),
    include_str!("migrations/0006_admin.sql"),
    include_str!("migrations/0007_dashboard.sql"),
    include_str!("migrations/0008_leases.sql"),
    include_str!("migrations/0009_flights.sql"),
    include_str!("migrations/0010_deliveries.sql"),
    include_str!("migrations/0011_counts.sql"),
    include_str!("migrations/0012_key_rotation.sql"),
    include_str!("migrations/0013_resets.sql"),
    include_str!("migrations/0014_living_parcels.sql"),
    include_str!("migrations/0015_numbers.sql"),
    include_str!("migrations/0016_living_keys.sql"),
    include_str!("migrations/0017_totals.sql"),
    include_str!("migrations/0018_flashes.sql"),
    include_str!("migrations/0019_shops.sql"),
    include_str!("migrations/0020_mails.sql"),
    include_str!("migrations/0021_key_uses.sql"),
    include_str!("migrations/0022_audit.sql"),
    include_str!("migrations/0023_search.sql"),
    include_str!("migrations/0024_generations.sql"),
    include_str!("migrations/0025_numbers.sql"),
    include_str!("migrations/0026_checked_chunks.sql"),
    include_str!("migrations/0027_no_flashes.sql"),
    include_str!("migrations/0028_traces.sql"),
    include_str!("migrations/0029_checked_runs.sql"),
    include_str!("migrations/0030_purged_records.sql"),
];

/// Schema version before the index of numbers is built, which is the longest step of a large file's upgrade.
const BEFORE_NUMBERS: usize = 24;
/// Number of steps of `SQLite`'s virtual machine for each parcel of that index. A test counts them.
const STEPS_PER_PARCEL: i64 = 12;
/// Number of steps between two progress checks.
pub(super) const STEPS_PER_REPORT: i32 = 500_000;

/// Brings the schema up to date.
pub(super) fn migrate(db: &Connection) -> rusqlite::Result<()> {
    migrate_with_progress(db, &NumberIndexProgress::default())
}

/// Brings the schema up to date, and notifies `index` when it begins to build the index of numbers.
pub(super) fn migrate_with_progress(
    db: &Connection,
    index: &NumberIndexProgress,
) -> rusqlite::Result<()> {
    let done = usize::try_from(schema(db)?).unwrap_or(0);
    for (before, sql) in MIGRATIONS.iter().enumerate().skip(done) {
        if before == BEFORE_NUMBERS {
            let parcels = "SELECT count(*) FROM parcels";
            index.parcels.store(db.query_row(parcels, [], |row| row.get(0))?, Ordering::Relaxed);
        }
        db.execute_batch(&Sql::Sqlite(db).in_dialect(sql))?;
        index.parcels.store(0, Ordering::Relaxed);
    }
    if done < MIGRATIONS.len() {
        db.pragma_update(None, "user_version", known())?;
    }
    Ok(())
}

/// The number of parcels in the index of numbers while it is built; 0 otherwise.
#[derive(Default)]
pub(super) struct NumberIndexProgress {
    parcels: Arc<AtomicI64>,
}

impl NumberIndexProgress {
    /// Reports the progress, in percent, after every ten percent.
    pub(super) fn report_progress(
        &self,
        db: &mut Connection,
        steps_per_report: i32,
        mut report: impl FnMut(i64) + Send + 'static,
    ) -> rusqlite::Result<()> {
        let parcels = Arc::clone(&self.parcels);
        let (mut steps, mut reported) = (0, 0);
        let on_steps = move || {
            let all = STEPS_PER_PARCEL * parcels.load(Ordering::Relaxed);
            if all > 0 {
                steps += i64::from(steps_per_report);
                let percent = (steps * 100 / all).min(99);
                if percent >= reported + 10 {
                    reported = percent;
                    report(percent);
                }
            }
            // `true` would end the statement.
            false
        };
        db.progress_handler(steps_per_report, Some(on_steps))
    }
}

/// Returns the newest schema version that this program knows.
pub(super) fn known() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// Returns the schema version of a file.
pub(super) fn schema(db: &Connection) -> rusqlite::Result<i64> {
    db.pragma_query_value(None, "user_version", |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn building_the_number_index_reports_progress() {
        let mut db = Connection::open_in_memory().unwrap();
        db.execute_batch(&MIGRATIONS[..BEFORE_NUMBERS].concat()).unwrap();
        db.execute_batch(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 20000) \
             INSERT INTO parcels (version, tenant, environment, number, public_id, state, created_at, updated_at, origin, \
             destination, country, promised_day, label_version, last_sequence, order_json, number_is_indexed) \
             SELECT 1, 3, 1, 'SBEC' || hex(randomblob(6)) || n, x'00', 2, 0, 0, '', '', 'EC', 0, 1, 2, '{}', 0 FROM n",
        )
        .unwrap();
        db.pragma_update(None, "user_version", 24).unwrap();
        let (reported, index) = (Arc::new(Mutex::new(Vec::new())), NumberIndexProgress::default());
        let reports = Arc::clone(&reported);
        index
            .report_progress(&mut db, 100, move |percent| reports.lock().unwrap().push(percent))
            .unwrap();
        migrate_with_progress(&db, &index).unwrap();
        let reported = reported.lock().unwrap().clone();
        assert_eq!(reported.len(), 9, "{reported:?}");
        assert!(reported.is_sorted() && reported[0] < 15 && reported[8] > 85, "{reported:?}");
    }
}
