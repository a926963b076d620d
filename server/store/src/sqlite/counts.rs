//! Counts of a tenant's parcels by day, state and country. The commit that changes a parcel updates them too, so that a
//! list knows its total without reading the parcels. A commit's changes are added up in memory and written once, at its
//! end, because most of its orders have the same tenant, day and country.

use std::collections::BTreeMap;

use parcelo_domain::{NewParcel, ParcelRowId, State, activity};
use parcelo_types::CountryCode;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::{counts::day, sql};

/// The key of the count that a parcel belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CountKey {
    tenant: i64,
    day: i64,
    state: u8,
    country: CountryCode,
}

/// The changes to the counts that a transaction has not written yet.
#[derive(Debug, Default)]
pub(super) struct PendingCounts(BTreeMap<CountKey, i64>);

impl PendingCounts {
    /// Counts a parcel that was created in the generation with this number.
    pub(super) fn count_created(&mut self, parcel: &NewParcel, tenant: i64) {
        let day = activity::epoch_day(parcel.created_at);
        let state = State::LabelGenerated.number();
        self.add(CountKey { tenant, day, state, country: parcel.country }, 1);
    }

    /// Counts a parcel under the state that it has reached.
    pub(super) fn count_moved(&mut self, from: CountKey, to: State) {
        self.add(from, -1);
        self.add(CountKey { state: to.number(), ..from }, 1);
    }

    fn add(&mut self, key: CountKey, parcels: i64) {
        *self.0.entry(key).or_default() += parcels;
    }

    /// Writes the changes.
    pub(super) fn write(self, db: &Connection) -> rusqlite::Result<()> {
        let increase = "INSERT INTO parcel_counts (tenant, day, state, country, total) \
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET total = total + excluded.total";
        let decrease = "UPDATE parcel_counts SET total = total + ?5 \
             WHERE tenant = ?1 AND day = ?2 AND state = ?3 AND country = ?4";
        let delete_empty = "DELETE FROM parcel_counts \
             WHERE tenant = ?1 AND day = ?2 AND state = ?3 AND country = ?4 AND total = 0";
        for (CountKey { tenant, day, state, country }, change) in self.0 {
            let country = country.as_str();
            let sql = match change {
                0 => continue,
                1.. => increase,
                ..0 => decrease,
            };
            db.prepare_cached(sql)?.execute(params![tenant, day, state, country, change])?;
            if change < 0 {
                let key = params![tenant, day, state, country];
                db.prepare_cached(delete_empty)?.execute(key)?;
            }
        }
        Ok(())
    }
}

/// Returns the key of the count that a parcel belongs to.
pub(super) fn count_key(
    db: &Connection,
    parcel: ParcelRowId,
) -> rusqlite::Result<Option<CountKey>> {
    const COUNT_KEY: &str =
        concat!("SELECT tenant, ", day!(), ", state, country FROM parcels WHERE id = ?1");
    let read = |row: &Row<'_>| {
        let country = sql::Row::Sqlite(row).parse(3, CountryCode::parse)?;
        Ok(CountKey { tenant: row.get(0)?, day: row.get(1)?, state: row.get(2)?, country })
    };
    db.prepare_cached(COUNT_KEY)?.query_row([parcel.0], read).optional()
}
