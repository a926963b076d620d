//! Parcels and their histories, as they are read.

use std::error::Error;

use parcelo::{CountryCode, Environment, OrderRequest, TrackingNumber};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params, types::Type};
use ulid::Ulid;

use super::{Store, StoreError};
use crate::{
    clock::Millis,
    core::{Event, ParcelKey, ParcelRow, State, Step, Tenant, Version, history},
};

/// The columns of a [`ParcelRow`] in the order in which [`read`] takes them; more may follow.
macro_rules! select_parcels {
    ($more:literal, $rest:literal) => {
        concat!(
            "SELECT id, version, public_id, tenant, number, state, created_at, updated_at, \
             origin, destination, country, promised_day, label_version, last_sequence, \
             step_index, step_due, reprinted_at",
            $more,
            " FROM living_parcels AS parcels ",
            $rest
        )
    };
}

pub(super) use select_parcels;

/// The first column after those of a [`ParcelRow`].
pub(super) const MORE: usize = 17;
const ORDER: usize = MORE;

/// A parcel, and the idempotency key that its order names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// Whose it is.
    pub tenant: Tenant,
    /// The parcel's public id, without its prefix.
    pub id: Ulid,
    /// Its tracking number.
    pub number: String,
    /// When it was created.
    pub created_at: Millis,
    /// The key in its order.
    pub idempotency_key: String,
}

impl Store {
    /// What every parcel was created by, oldest first.
    pub fn creations(&self) -> Result<Vec<Created>, StoreError> {
        self.read(|db| {
            let mut find = db.prepare_cached(
                "SELECT tenant, public_id, number, created_at, \
                 coalesce(json_extract(order_json, '$.idempotencyKey'), '') FROM living_parcels ORDER BY id",
            )?;
            let creation = |row: &Row<'_>| {
                Ok(Created {
                    tenant: Tenant::of_number(row.get(0)?),
                    id: Ulid::from_bytes(row.get(1)?),
                    number: row.get(2)?,
                    created_at: Millis(row.get(3)?),
                    idempotency_key: row.get(4)?,
                })
            };
            find.query_map([], creation)?.collect()
        })
    }
}

/// The number under which an environment is stored.
pub(super) const fn environment(environment: Environment) -> i64 {
    match environment {
        Environment::Production => 0,
        Environment::Sandbox => 1,
    }
}

/// The parcel with a number, whosever it is.
pub(super) fn find(
    db: &Connection,
    in_environment: Environment,
    number: &TrackingNumber,
) -> rusqlite::Result<Option<ParcelRow>> {
    let sql = select_parcels!("", "WHERE environment = ?1 AND number = ?2");
    let mut find = db.prepare_cached(sql)?;
    find.query_row(params![environment(in_environment), number.as_str()], read).optional()
}

/// The parcel with a number, whosever it is, and its order.
pub(super) fn find_with_order(
    db: &Connection,
    in_environment: Environment,
    number: &TrackingNumber,
) -> rusqlite::Result<Option<(ParcelRow, OrderRequest)>> {
    let sql = select_parcels!(", order_json", "WHERE environment = ?1 AND number = ?2");
    let mut find = db.prepare_cached(sql)?;
    let both = |row: &Row<'_>| {
        let order = row.get_ref(ORDER)?.as_str()?;
        let order = serde_json::from_str(order).map_err(|error| damaged(ORDER, error))?;
        Ok((read(row)?, order))
    };
    find.query_row(params![environment(in_environment), number.as_str()], both).optional()
}

/// Parcels whose next step is due, earliest first.
pub(super) fn due(db: &Connection, until: Millis, most: usize) -> rusqlite::Result<Vec<ParcelRow>> {
    let sql = select_parcels!("", "WHERE step_due <= ?1 ORDER BY step_due LIMIT ?2");
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rows: [&dyn ToSql; 2] = [&until.0, &most];
    db.prepare_cached(sql)?.query_map(rows, read)?.collect()
}

/// The same of one tenant's parcels.
pub(super) fn due_of(
    db: &Connection,
    tenant: Tenant,
    until: Millis,
    most: usize,
) -> rusqlite::Result<Vec<ParcelRow>> {
    // The few that are due are looked through, not the many of the tenant.
    let sql =
        select_parcels!("", "WHERE step_due <= ?1 AND +tenant = ?2 ORDER BY step_due LIMIT ?3");
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    db.prepare_cached(sql)?.query_map([until.0, tenant.number(), most], read)?.collect()
}

/// When the next step after a moment is due.
pub(super) fn next_due(db: &Connection, after: Millis) -> rusqlite::Result<Option<Millis>> {
    let mut next = db.prepare_cached(
        "SELECT step_due FROM living_parcels WHERE step_due > ?1 ORDER BY step_due LIMIT 1",
    )?;
    next.query_row([after.0], |row| row.get(0).map(Millis)).optional()
}

/// The history of a parcel as it was when its row was read.
pub(super) fn events(db: &Connection, parcel: &ParcelRow) -> rusqlite::Result<Vec<Event>> {
    let mut find = db.prepare_cached(
        "SELECT sequence, state, at, location, description FROM events \
         WHERE parcel = ?1 AND sequence <= ?2 ORDER BY sequence",
    )?;
    let rows = find.query_map(params![parcel.key.0, parcel.last_sequence], read_event)?;
    let mut events = Vec::from(history::first_events(parcel));
    for event in rows {
        events.push(event?);
    }
    events.sort_by_key(|event| (event.at, event.sequence));
    Ok(events)
}

/// The row that `select_parcels` selects.
pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<ParcelRow> {
    let number = row.get_ref(4)?.as_str()?;
    let country = row.get_ref(10)?.as_str()?;
    let step = row.get::<_, Option<u8>>(14)?.zip(row.get::<_, Option<i64>>(15)?);
    Ok(ParcelRow {
        key: ParcelKey(row.get(0)?),
        version: Version(row.get(1)?),
        id: Ulid::from_bytes(row.get(2)?),
        tenant: Tenant::of_number(row.get(3)?),
        tracking_number: TrackingNumber::parse(number).map_err(|error| damaged(4, error))?,
        state: read_state(row, 5)?,
        created_at: Millis(row.get(6)?),
        updated_at: Millis(row.get(7)?),
        origin: row.get(8)?,
        destination: row.get(9)?,
        country: CountryCode::parse(country).map_err(|error| damaged(10, error))?,
        promised_day: row.get(11)?,
        label_version: row.get(12)?,
        reprinted_at: row.get::<_, Option<i64>>(16)?.map(Millis),
        last_sequence: row.get(13)?,
        step: step.map(|(index, due)| Step { index, due: Millis(due) }),
    })
}

fn read_event(row: &Row<'_>) -> rusqlite::Result<Event> {
    Ok(Event {
        sequence: row.get(0)?,
        state: read_state(row, 1)?,
        at: Millis(row.get(2)?),
        location: row.get(3)?,
        description: row.get(4)?,
    })
}

pub(super) fn read_state(row: &Row<'_>, column: usize) -> rusqlite::Result<State> {
    let number = row.get(column)?;
    State::of_number(number)
        .ok_or_else(|| rusqlite::Error::IntegralValueOutOfRange(column, number.into()))
}

/// A text column that does not hold what was once written to it.
pub(super) fn damaged(column: usize, error: impl Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}
