//! How many parcels a tenant has by day, state and country: kept in the commit that changes them, so
//! that a list knows its total without a look at the parcels.

use rusqlite::{Connection, OptionalExtension, Row, named_params, params};

use super::parcels::read_state;
use crate::domain::{NewParcel, ParcelRowId, State, Tenant, activity, activity::ParcelCount};

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

/// Counts a parcel that was created.
pub(super) fn created(db: &Connection, parcel: &NewParcel) -> rusqlite::Result<()> {
    let day = activity::day_of(parcel.created_at);
    let (tenant, state) = (parcel.tenant.number(), State::LabelGenerated.number());
    add(db, params![tenant, day, state, parcel.country.as_str()])
}

/// Counts a parcel under the state that it is about to reach. One that is not there counts nowhere.
pub(super) fn moves(db: &Connection, parcel: ParcelRowId, to: State) -> rusqlite::Result<()> {
    let Some((tenant, day, from, country)) = place(db, parcel)? else { return Ok(()) };
    take(db, params![tenant, day, from, country])?;
    let mut empty = db.prepare_cached(
        "DELETE FROM parcel_counts \
         WHERE tenant = ?1 AND day = ?2 AND state = ?3 AND country = ?4 AND total = 0",
    )?;
    empty.execute(params![tenant, day, from, country])?;
    add(db, params![tenant, day, to.number(), country])
}

/// Takes off a parcel that is about to be deleted. What is left of a count may be 0, until [`sweep`].
pub(super) fn deletes(db: &Connection, parcel: ParcelRowId) -> rusqlite::Result<()> {
    let Some((tenant, day, state, country)) = place(db, parcel)? else { return Ok(()) };
    take(db, params![tenant, day, state, country])
}

/// Counts none of a tenant's parcels any more.
pub(super) fn forget(db: &Connection, tenant: i64) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM parcel_counts WHERE tenant = ?1")?.execute([tenant]).map(drop)
}

/// Drops the counts that have come down to 0.
pub(super) fn sweep(db: &Connection) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM parcel_counts WHERE total = 0")?.execute([]).map(drop)
}

/// What is done with the counts that are wanted. A filter is in the text when it applies: with `:state IS NULL OR …`
/// no index would be used for it.
macro_rules! counts {
    ($select:literal, $filter:literal, $rest:literal) => {
        concat!(
            "SELECT ",
            $select,
            " FROM parcel_counts WHERE tenant = :tenant AND day >= :first AND day < :end AND ",
            $filter,
            $rest
        )
    };
    ($wanted:expr, $select:literal, $rest:literal) => {
        match ($wanted.state, $wanted.country) {
            (None, None) => counts!($select, ":state IS NULL AND :country IS NULL", $rest),
            (Some(_), None) => counts!($select, "state = :state AND :country IS NULL", $rest),
            (None, Some(_)) => counts!($select, ":state IS NULL AND country = :country", $rest),
            (Some(_), Some(_)) => counts!($select, "state = :state AND country = :country", $rest),
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

/// How many parcels that were created on `first` or later are in which state, by day.
pub(super) fn activity(
    db: &Connection,
    tenant: Tenant,
    first: i64,
) -> rusqlite::Result<Vec<ParcelCount>> {
    let mut find = db.prepare_cached(
        "SELECT day, state, sum(total) AS parcels FROM parcel_counts WHERE tenant = ?1 AND day >= ?2 \
         GROUP BY day, state HAVING parcels > 0 ORDER BY day, state",
    )?;
    let counted = |row: &Row<'_>| {
        let (created_day, state) = (row.get(0)?, read_state(row, 1)?);
        Ok(ParcelCount { created_day, state, parcels: row.get::<_, i64>(2)?.unsigned_abs() })
    };
    find.query_map([tenant.number(), first], counted)?.collect()
}

fn add(db: &Connection, place: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<()> {
    let mut more = db.prepare_cached(
        "INSERT INTO parcel_counts (tenant, day, state, country, total) VALUES (?1, ?2, ?3, ?4, 1) \
         ON CONFLICT DO UPDATE SET total = total + 1",
    )?;
    more.execute(place).map(drop)
}

fn take(db: &Connection, place: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<()> {
    let mut less = db.prepare_cached(
        "UPDATE parcel_counts SET total = total - 1 \
         WHERE tenant = ?1 AND day = ?2 AND state = ?3 AND country = ?4",
    )?;
    less.execute(place).map(drop)
}

/// Where a parcel is counted: tenant, day, state, country. One that a reset hides is counted nowhere.
fn place(db: &Connection, parcel: ParcelRowId) -> rusqlite::Result<Option<(i64, i64, u8, String)>> {
    const PLACE: &str =
        concat!("SELECT tenant, ", day!(), ", state, country FROM living_parcels WHERE id = ?1");
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    db.prepare_cached(PLACE)?.query_row([parcel.0], read).optional()
}
