//! The schema, and how a file of an older version gets there.

use rusqlite::Connection;

/// The schema's history; the file's `user_version` says how many of them it has. They lose no data, but
/// some rebuild a table, so a program that knows fewer of them refuses the file.
pub(super) const MIGRATIONS: [&str; 24] = [
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
];

/// Brings the schema up to date.
pub(super) fn migrate(db: &Connection) -> rusqlite::Result<()> {
    let done = usize::try_from(schema(db)?).unwrap_or(0);
    for sql in MIGRATIONS.iter().skip(done) {
        db.execute_batch(sql)?;
    }
    if done < MIGRATIONS.len() {
        db.pragma_update(None, "user_version", known())?;
    }
    Ok(())
}

/// The newest schema this program knows.
pub(super) fn known() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// The schema that a file has.
pub(super) fn schema(db: &Connection) -> rusqlite::Result<i64> {
    db.pragma_query_value(None, "user_version", |row| row.get(0))
}
