//! How many parcels a tenant has by day, state and country: kept in the commit that changes them, so
//! that a list knows its total without a look at the parcels. What a commit changes is added up in memory and
//! written once, at its end: its orders are mostly of one tenant, day and country.

use std::collections::BTreeMap;

use parcelo::CountryCode;
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};

use super::parcels::{damaged, read_state};
use crate::{
    domain::{NewParcel, ParcelRowId, State, Tenant, activity, activity::ParcelCount},
    store::generations::current,
};

/// The day, since 1970 began, on which a row of `parcels` was created, as [`activity::day_of`] has it.
macro_rules! day {
    () => {
        "(created_at / 86400000 - (created_at < 0 AND created_at % 86400000 <> 0))"
    };
}

/// Which of a tenant's parcels are counted: those of the days from `first` to before `end`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) tenant: i64,
    pub(super) first: i64,
    pub(super) end: i64,
    pub(super) state: Option<u8>,
    pub(super) country: Option<&'static str>,
}

/// Where a parcel is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    tenant: i64,
    day: i64,
    state: u8,
    country: CountryCode,
}

/// By how much the counts of a transaction's parcels change; not written yet.
#[derive(Debug, Default)]
pub(super) struct PendingCounts(BTreeMap<Place, i64>);

impl PendingCounts {
    /// Counts a parcel that was created in the generation with this number.
    pub(super) fn created(&mut self, parcel: &NewParcel, tenant: i64) {
        let day = activity::day_of(parcel.created_at);
        let state = State::LabelGenerated.number();
        self.add(Place { tenant, day, state, country: parcel.country }, 1);
    }

    /// Counts a parcel under the state that it has reached.
    pub(super) fn moved(&mut self, from: Place, to: State) {
        self.add(from, -1);
        self.add(Place { state: to.number(), ..from }, 1);
    }

    fn add(&mut self, place: Place, parcels: i64) {
        *self.0.entry(place).or_default() += parcels;
    }

    /// Writes the changes.
    pub(super) fn write(self, db: &Connection) -> rusqlite::Result<()> {
        for (place, change) in self.0 {
            match change {
                0 => {}
                1.. => more(db, place, change)?,
                ..0 => less(db, place, change)?,
            }
        }
        Ok(())
    }
}

fn more(db: &Connection, place: Place, change: i64) -> rusqlite::Result<()> {
    let mut more = db.prepare_cached(
        "INSERT INTO parcel_counts (tenant, day, state, country, total) VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT DO UPDATE SET total = total + excluded.total",
    )?;
    let Place { tenant, day, state, country } = place;
    more.execute(params![tenant, day, state, country.as_str(), change]).map(drop)
}

fn less(db: &Connection, place: Place, change: i64) -> rusqlite::Result<()> {
    let mut less = db.prepare_cached(
        "UPDATE parcel_counts SET total = total + ?5 \
         WHERE tenant = ?1 AND day = ?2 AND state = ?3 AND country = ?4",
    )?;
    let Place { tenant, day, state, country } = place;
    less.execute(params![tenant, day, state, country.as_str(), change])?;
    let mut empty = db.prepare_cached(
        "DELETE FROM parcel_counts \
         WHERE tenant = ?1 AND day = ?2 AND state = ?3 AND country = ?4 AND total = 0",
    )?;
    empty.execute(params![tenant, day, state, country.as_str()]).map(drop)
}

/// Takes off a parcel that is about to be deleted. What is left of a count may be 0, until [`sweep`].
pub(super) fn deletes(db: &Connection, parcel: ParcelRowId) -> rusqlite::Result<()> {
    const LESS: &str = concat!(
        "UPDATE parcel_counts SET total = total - 1 WHERE (tenant, day, state, country) = (SELECT tenant, ",
        day!(),
        ", state, country FROM parcels WHERE id = ?1)"
    );
    db.prepare_cached(LESS)?.execute([parcel.0]).map(drop)
}

/// Deletes the counts of a generation whose parcels are deleted.
pub(super) fn forget(db: &Connection, number: i64) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM parcel_counts WHERE tenant = ?1")?.execute([number])?;
    db.prepare_cached("DELETE FROM parcel_totals WHERE tenant = ?1")?.execute([number]).map(drop)
}

/// Drops the counts that have come down to 0.
pub(super) fn sweep(db: &Connection) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM parcel_counts WHERE total = 0")?.execute([]).map(drop)
}

/// What is done with the counts that are wanted. A filter is in the text when it applies: with `:state IS NULL OR …`
/// no index would be used for it. The index is named, since `SQLite` would walk through all days instead: it takes the
/// primary key, which has the totals too, for a little cheaper.
macro_rules! counts {
    ($select:literal, $index:literal, $filter:literal, $rest:literal) => {
        concat!(
            "SELECT ",
            $select,
            " FROM parcel_counts ",
            $index,
            " WHERE tenant = :tenant AND day >= :first AND day < :end AND ",
            $filter,
            $rest
        )
    };
    ($wanted:expr, $select:literal, $rest:literal) => {
        match ($wanted.state, $wanted.country) {
            (None, None) => counts!($select, "", ":state IS NULL AND :country IS NULL", $rest),
            (Some(_), None) => counts!(
                $select,
                "INDEXED BY parcel_counts_state",
                "state = :state AND :country IS NULL",
                $rest
            ),
            (None, Some(_)) => counts!(
                $select,
                "INDEXED BY parcel_counts_country",
                ":state IS NULL AND country = :country",
                $rest
            ),
            (Some(_), Some(_)) => counts!(
                $select,
                "INDEXED BY parcel_counts_both",
                "state = :state AND country = :country",
                $rest
            ),
        }
    };
}

/// How many parcels each day has, the latest day first, until there are `enough`; days without any are left
/// out. Rows are read as they are wanted, so that the days after those cost nothing.
pub(super) fn by_day(
    db: &Connection,
    wanted: Wanted,
    enough: u64,
) -> rusqlite::Result<Vec<(i64, u64)>> {
    let mut find = db.prepare_cached(by_day_sql(wanted))?;
    let mut rows = find.query(named_params! {
        ":tenant": wanted.tenant, ":first": wanted.first, ":end": wanted.end,
        ":state": wanted.state, ":country": wanted.country,
    })?;
    let (mut days, mut found) = (Vec::new(), 0);
    while found < enough
        && let Some(row) = rows.next()?
    {
        let parcels = row.get::<_, i64>(1)?.unsigned_abs();
        found += parcels;
        days.push((row.get(0)?, parcels));
    }
    Ok(days)
}

pub(super) const fn by_day_sql(wanted: Wanted) -> &'static str {
    counts!(
        wanted,
        "day, sum(total) AS parcels",
        " GROUP BY day HAVING parcels > 0 ORDER BY day DESC"
    )
}

/// How many parcels those days have together.
pub(super) fn in_days(db: &Connection, wanted: Wanted) -> rusqlite::Result<u64> {
    let mut count = db.prepare_cached(counts!(wanted, "coalesce(sum(total), 0)", ""))?;
    let bound = named_params! {
        ":tenant": wanted.tenant, ":first": wanted.first, ":end": wanted.end,
        ":state": wanted.state, ":country": wanted.country,
    };
    count.query_row(bound, |row| row.get::<_, i64>(0).map(i64::unsigned_abs))
}

/// How many parcels of the wanted states and countries there are, of whatever day.
pub(super) fn in_all(db: &Connection, wanted: Wanted) -> rusqlite::Result<u64> {
    let mut count = db.prepare_cached(
        "SELECT coalesce(sum(total), 0) FROM parcel_totals WHERE tenant = ?1 \
         AND (?2 IS NULL OR state = ?2) AND (?3 IS NULL OR country = ?3)",
    )?;
    let bound = params![wanted.tenant, wanted.state, wanted.country];
    count.query_row(bound, |row| row.get::<_, i64>(0).map(i64::unsigned_abs))
}

/// How many parcels that were created on `first` or later are in which state, by day and country.
pub(super) fn activity(
    db: &Connection,
    tenant: Tenant,
    first: i64,
) -> rusqlite::Result<Vec<ParcelCount>> {
    let mut find = db.prepare_cached(concat!(
        "SELECT day, state, country, sum(total) AS parcels FROM parcel_counts WHERE tenant = ",
        current!("?1"),
        " AND day >= ?2 GROUP BY day, state, country HAVING parcels > 0 ORDER BY day, state, country"
    ))?;
    let counted = |row: &Row<'_>| {
        let (created_day, state) = (row.get(0)?, read_state(row, 1)?);
        let country = row.get_ref(2)?.as_str()?;
        let country = CountryCode::parse(country).map_err(|error| damaged(2, error))?;
        let parcels = row.get::<_, i64>(3)?.unsigned_abs();
        Ok(ParcelCount { created_day, state, country, parcels })
    };
    find.query_map([tenant.number(), first], counted)?.collect()
}

/// Returns where a parcel is counted.
pub(super) fn place(db: &Connection, parcel: ParcelRowId) -> rusqlite::Result<Option<Place>> {
    const PLACE: &str =
        concat!("SELECT tenant, ", day!(), ", state, country FROM parcels WHERE id = ?1");
    let read = |row: &Row<'_>| {
        let country = row.get_ref(3)?.as_str()?;
        let country = CountryCode::parse(country).map_err(|error| damaged(3, error))?;
        Ok(Place { tenant: row.get(0)?, day: row.get(1)?, state: row.get(2)?, country })
    };
    db.prepare_cached(PLACE)?.query_row([parcel.0], read).optional()
}
