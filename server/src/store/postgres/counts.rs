//! How many parcels a tenant has by day, state and country. Writers add up what their group changes, and
//! update each row once, in the order of its key, as the last thing before the commit: a tenant's rows are
//! locked for no longer than that.

use std::collections::BTreeMap;

use parcelo::CountryCode;

use super::{
    connection::{Connection, get},
    error::{DbResult, Failure},
    locks::Locked,
    parcels::read_state,
};
use crate::domain::{State, Tenant, activity::ParcelCount};

/// Adds to counts. A count that comes down to 0 stays until its tenant's next purge.
pub(super) const ADD: &str = "INSERT INTO parcel_counts AS c (tenant, epoch, day, state, country, total) \
     SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[], \
     $5::text[], $6::bigint[]) \
     ON CONFLICT (tenant, epoch, day, state, country) DO UPDATE SET total = c.total + excluded.total";

/// Tenant, epoch, day, state, country.
type Place = (i64, i64, i64, i16, String);

/// By how much counts change.
#[derive(Debug, Default)]
pub(super) struct Counts(BTreeMap<Place, i64>);

/// Which of a tenant's parcels are counted: those of the days from `first` to before `end`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) tenant: i64,
    pub(super) first: i64,
    pub(super) end: i64,
    pub(super) state: Option<i16>,
    pub(super) country: Option<&'static str>,
}

impl Counts {
    /// One more, or one less, in the parcel's place.
    pub(super) fn add(&mut self, parcel: &Locked, difference: i64) {
        let Locked { tenant, epoch, day, state, country, .. } = parcel;
        let place = (tenant.number(), *epoch, *day, i16::from(state.number()), country.clone());
        *self.0.entry(place).or_default() += difference;
    }

    pub(super) async fn write(&self, db: &Connection) -> DbResult<()> {
        let changed: Vec<_> = self.0.iter().filter(|(_, difference)| **difference != 0).collect();
        if changed.is_empty() {
            return Ok(());
        }
        let column = |read: fn(&Place) -> i64| -> Vec<i64> {
            changed.iter().map(|(place, _)| read(place)).collect()
        };
        let (tenants, epochs, days) =
            (column(|place| place.0), column(|place| place.1), column(|place| place.2));
        let states: Vec<i16> = changed.iter().map(|(place, _)| place.3).collect();
        let countries: Vec<&str> = changed.iter().map(|(place, _)| place.4.as_str()).collect();
        let totals: Vec<i64> = changed.iter().map(|(_, difference)| **difference).collect();
        // Sorted as the key is.
        db.execute(ADD, &[&tenants, &epochs, &days, &states, &countries, &totals]).await.map(drop)
    }
}

/// The counts that hold at present: those of the tenant's epoch.
macro_rules! counted {
    ($rest:literal) => {
        concat!(
            "FROM parcel_counts AS c WHERE tenant = $1 AND epoch = \
             coalesce((SELECT epoch FROM resets WHERE tenant = $1), 0) ",
            $rest
        )
    };
}

/// How many parcels each day has, the latest day first; days without any are left out.
pub(super) async fn by_day(db: &Connection, wanted: Wanted) -> DbResult<Vec<(i64, u64)>> {
    let sql = concat!(
        "SELECT day, sum(total)::bigint ",
        counted!(
            "AND day >= $2 AND day < $3 AND ($4::smallint IS NULL OR state = $4) \
             AND ($5::text IS NULL OR country = $5) \
             GROUP BY day HAVING sum(total) > 0 ORDER BY day DESC"
        )
    );
    let Wanted { tenant, first, end, state, country } = wanted;
    let counted = |row: &_| Ok((get(row, 0)?, get::<i64>(row, 1)?.unsigned_abs()));
    db.each(sql, &[&tenant, &first, &end, &state, &country], counted).await
}

/// How many parcels that were created on `first` or later are in which state, by day and country.
pub(super) async fn activity(
    db: &Connection,
    tenant: Tenant,
    first: i64,
) -> DbResult<Vec<ParcelCount>> {
    let sql = concat!(
        "SELECT day, state, country, sum(total)::bigint ",
        counted!(
            "AND day >= $2 GROUP BY day, state, country HAVING sum(total) > 0 \
             ORDER BY day, state, country"
        )
    );
    let counted = |row: &_| {
        let country = CountryCode::parse(get(row, 2)?).map_err(Failure::row)?;
        let (state, parcels) = (read_state(row, 1)?, get::<i64>(row, 3)?.unsigned_abs());
        Ok(ParcelCount { created_day: get(row, 0)?, state, country, parcels })
    };
    db.each(sql, &[&tenant.number(), &first], counted).await
}

/// The number under which a state is counted and stored.
pub(super) fn state_number(state: State) -> i16 {
    state.number().into()
}
