//! Parcels and their histories, as they are read.

use std::{error::Error, sync::PoisonError};

use parcelo::{CountryCode, Environment, TrackingNumber};
use rusqlite::{Connection, OptionalExtension, Row, params, types::Type};
use ulid::Ulid;

use super::{
    Store, StoreError,
    error::{is_of_row, unreadable},
};
use crate::{
    clock::Millis,
    domain::{Event, ParcelRow, ParcelRowId, State, Step, StoredOrder, Tenant, Version, history},
    store::generations::is_current,
};

/// The columns of a [`ParcelRow`] in the order in which [`read`] takes them; more may follow.
macro_rules! select_parcels {
    ($more:literal, $($rest:tt)+) => {
        concat!(
            "SELECT id, version, public_id, tenant, number, state, created_at, updated_at, \
             origin, destination, country, promised_day, label_version, last_sequence, \
             step_index, step_due, reprinted_at",
            $more,
            " FROM (SELECT * FROM parcels WHERE ",
            $crate::store::generations::is_current!("tenant"),
            ") AS parcels ",
            $($rest)+
        )
    };
}

pub(super) use select_parcels;

/// The first column after those of a [`ParcelRow`].
pub(super) const MORE: usize = 17;
const ORDER: usize = MORE;

/// A tracking number that is looked for, in any case.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberLookup<'a> {
    environment: i64,
    number: &'a str,
    /// The row that it carries, if it has the form of a generated number.
    carried: Option<ParcelRowId>,
}

/// A parcel, and the idempotency key that its order names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreationRecord {
    /// Whose it is.
    pub tenant: Tenant,
    /// The parcel's public id, without its prefix.
    pub id: Ulid,
    /// Its tracking number.
    pub number: String,
    /// When it was created.
    pub created_at: Millis,
    /// Where it stands.
    pub state: State,
    /// The key in its order.
    pub idempotency_key: String,
    /// The order's id in the caller's system.
    pub external_order_id: Option<String>,
}

impl Store {
    /// The parcel with a number, in any case, whosever it is: the caller checks the tenant.
    pub async fn parcel(
        &self,
        environment: Environment,
        number: &TrackingNumber,
    ) -> Result<Option<ParcelRow>, StoreError> {
        let number = self.lookup(environment, number);
        self.read(|db| find(db, number))
    }

    /// As [`Store::parcel`], with its order.
    pub async fn parcel_with_order(
        &self,
        environment: Environment,
        number: &TrackingNumber,
    ) -> Result<Option<(ParcelRow, StoredOrder)>, StoreError> {
        let number = self.lookup(environment, number);
        self.read(|db| find_with_order(db, number))
    }

    /// The parcel in a row, with its order.
    pub async fn parcel_in_row(
        &self,
        parcel: ParcelRowId,
    ) -> Result<Option<(ParcelRow, StoredOrder)>, StoreError> {
        let sql = select_parcels!(", order_json", "WHERE id = ?1");
        let found = |db: &Connection| {
            db.prepare_cached(sql)?.query_row([parcel.0], read_with_order).optional()
        };
        self.read(found)
    }

    /// The whole history of a parcel as of its row, by time, then sequence.
    pub async fn events(&self, parcel: &ParcelRow) -> Result<Vec<Event>, StoreError> {
        self.read(|db| events(db, parcel))
    }

    /// What every parcel was created by, oldest first.
    pub async fn creations(&self) -> Result<Vec<CreationRecord>, StoreError> {
        self.read(|db| {
            let mut find = db.prepare_cached(concat!(
                "SELECT tenant, public_id, number, created_at, state, \
                 coalesce(json_extract(order_json, '$.idempotencyKey'), ''), \
                 external_order_id FROM parcels WHERE ",
                is_current!("tenant"),
                " ORDER BY id"
            ))?;
            let creation = |row: &Row<'_>| {
                Ok(CreationRecord {
                    tenant: Tenant::from_number(row.get(0)?),
                    id: Ulid::from_bytes(row.get(1)?),
                    number: row.get(2)?,
                    created_at: Millis(row.get(3)?),
                    state: read_state(row, 4)?,
                    idempotency_key: row.get(5)?,
                    external_order_id: row.get(6)?,
                })
            };
            find.query_map([], creation)?.collect()
        })
    }

    /// Up to `most` parcels whose next step is due at `until`, earliest first.
    pub async fn due(&self, until: Millis, most: usize) -> Result<Vec<ParcelRow>, StoreError> {
        self.due_among(None, until, most)
    }

    /// As [`Store::due`], of one tenant's parcels.
    pub async fn due_of(
        &self,
        tenant: Tenant,
        until: Millis,
        most: usize,
    ) -> Result<Vec<ParcelRow>, StoreError> {
        self.due_among(Some(tenant), until, most)
    }

    fn due_among(
        &self,
        tenant: Option<Tenant>,
        until: Millis,
        most: usize,
    ) -> Result<Vec<ParcelRow>, StoreError> {
        let (due, unread) = self.read(|db| due(db, tenant, until, most))?;
        let mut logged_unreadable =
            self.0.logged_unreadable.lock().unwrap_or_else(PoisonError::into_inner);
        for one in unread {
            // It is found again at every look for due steps.
            if logged_unreadable.insert(one.row) {
                let error = self.read_error(one.error);
                tracing::error!(%error, "a parcel's steps cannot be taken; others go on");
            }
        }
        Ok(due)
    }

    /// When the next step after a moment is due.
    pub async fn next_due(&self, after: Millis) -> Result<Option<Millis>, StoreError> {
        self.read(|db| next_due(db, after))
    }
}

/// The number under which an environment is stored.
pub(super) const fn environment(environment: Environment) -> i64 {
    match environment {
        Environment::Production => 0,
        Environment::Sandbox => 1,
    }
}

impl<'a> NumberLookup<'a> {
    pub(super) fn new(
        in_environment: Environment,
        number: &'a TrackingNumber,
        carried: Option<ParcelRowId>,
    ) -> Self {
        Self { environment: environment(in_environment), number: number.as_str(), carried }
    }

    /// Whether it is the generated number of this row, and so needs no index.
    pub(super) fn carries(&self, row: ParcelRowId) -> bool {
        self.carried == Some(row)
    }

    /// Returns true if a parcel has this number, another than the one that is about to be inserted. One of a generation
    /// that has ended leaves it.
    pub(super) fn is_taken(&self, db: &Connection, new: ParcelRowId) -> rusqlite::Result<bool> {
        if let Some(row) = self.indexed(db)? {
            let leave = "UPDATE parcels SET number_is_indexed = 0 \
                 WHERE id = ?1 AND tenant IN (SELECT number FROM ended_generations)";
            if db.prepare_cached(leave)?.execute([row])? == 0 {
                return Ok(true);
            }
        }
        let Some(carried) = self.carried.filter(|row| *row != new) else { return Ok(false) };
        let mut find = db.prepare_cached(concat!(
            "SELECT 1 FROM parcels WHERE id = ?1 AND environment = ?2 AND number = ?3 AND ",
            is_current!("tenant")
        ))?;
        find.exists(params![carried.0, self.environment, self.number])
    }

    /// The row that has this number and does not follow from it.
    fn indexed(&self, db: &Connection) -> rusqlite::Result<Option<i64>> {
        let sql = "SELECT id FROM parcels WHERE number_is_indexed = 1 AND environment = ?1 AND number = ?2";
        let mut find = db.prepare_cached(sql)?;
        find.query_row(params![self.environment, self.number], |row| row.get(0)).optional()
    }
}

/// The parcel with a number, whosever it is.
pub(super) fn find(
    db: &Connection,
    number: NumberLookup<'_>,
) -> rusqlite::Result<Option<ParcelRow>> {
    let sql = select_parcels!("", "WHERE id = ?1 AND environment = ?2 AND number = ?3");
    one(db, sql, number, read)
}

/// The parcel with a number, whosever it is, and its order.
fn find_with_order(
    db: &Connection,
    number: NumberLookup<'_>,
) -> rusqlite::Result<Option<(ParcelRow, StoredOrder)>> {
    let sql = select_parcels!(", order_json", "WHERE id = ?1 AND environment = ?2 AND number = ?3");
    one(db, sql, number, read_with_order)
}

fn read_with_order(row: &Row<'_>) -> rusqlite::Result<(ParcelRow, StoredOrder)> {
    let order = row.get_ref(ORDER)?.as_str()?;
    let order = StoredOrder::from_json(order).map_err(|error| damaged(ORDER, error))?;
    Ok((read(row)?, order))
}

/// What `sql` finds in the row (`?1`) that has a number (`?3`) in an environment (`?2`). A row that cannot
/// be read is named.
pub(super) fn one<T>(
    db: &Connection,
    sql: &str,
    number: NumberLookup<'_>,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    let in_row = |row: i64| {
        let bound = params![row, number.environment, number.number];
        let named =
            |error| if is_of_row(&error) { unreadable("parcels", row, error) } else { error };
        db.prepare_cached(sql)?.query_row(bound, &read).optional().map_err(named)
    };
    if let Some(ParcelRowId(row)) = number.carried
        && let Some(found) = in_row(row)?
    {
        return Ok(Some(found));
    }
    // A given number may have the form of a generated one.
    number.indexed(db)?.map_or(Ok(None), in_row)
}

/// What `sql` finds in the row with an id (`?1`), alone, so that a row that cannot be read is only its own error.
pub(super) fn by_id<T>(
    db: &Connection,
    sql: &str,
    id: i64,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<Result<T, Unread>>> {
    match db.prepare_cached(sql)?.query_row([id], read).optional() {
        Err(error) if is_of_row(&error) => {
            Ok(Some(Err(Unread { row: id, error: unreadable("parcels", id, error) })))
        }
        found => Ok(found?.map(Ok)),
    }
}

/// A row that cannot be read.
pub(super) struct Unread {
    pub(super) row: i64,
    pub(super) error: rusqlite::Error,
}

/// Parcels whose next step is due, earliest first; `most` of those that can be read.
fn due(
    db: &Connection,
    tenant: Option<Tenant>,
    until: Millis,
    most: usize,
) -> rusqlite::Result<(Vec<ParcelRow>, Vec<Unread>)> {
    // The few that are due are looked through, not the many of a tenant.
    let due = "SELECT id FROM parcels WHERE step_due <= ?1 ORDER BY step_due";
    let mut due = db.prepare_cached(due)?;
    let mut ids = due.query([until.0])?;
    let (mut read_rows, mut unread) = (Vec::new(), Vec::new());
    while read_rows.len() < most {
        let Some(id) = ids.next()? else { break };
        match by_id(db, select_parcels!("", "WHERE id = ?1"), id.get(0)?, read)? {
            Some(Ok(parcel)) if tenant.is_none_or(|tenant| parcel.tenant == tenant) => {
                read_rows.push(parcel);
            }
            Some(Err(one)) => unread.push(one),
            // Another's, or one of a generation that has ended.
            Some(Ok(_)) | None => {}
        }
    }
    Ok((read_rows, unread))
}

/// When the next step after a moment is due.
fn next_due(db: &Connection, after: Millis) -> rusqlite::Result<Option<Millis>> {
    let mut next = db.prepare_cached(concat!(
        "SELECT step_due FROM parcels WHERE step_due > ?1 AND ",
        is_current!("tenant"),
        " ORDER BY step_due LIMIT 1"
    ))?;
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
        events.push(event.map_err(|error| {
            if is_of_row(&error) { unreadable("events", parcel.key.0, error) } else { error }
        })?);
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
        key: ParcelRowId(row.get(0)?),
        version: Version(row.get(1)?),
        id: Ulid::from_bytes(row.get(2)?),
        tenant: Tenant::from_number(row.get(3)?),
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
    State::from_number(number)
        .ok_or_else(|| rusqlite::Error::IntegralValueOutOfRange(column, number.into()))
}

/// A text column that does not hold what was once written to it.
pub(super) fn damaged(column: usize, error: impl Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}
