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
    domain::{
        Event, NewParcel, ParcelRow, ParcelRowId, State, Step, StoredOrder, Tenant, Version,
        history,
    },
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
        self.read(|db| one(db, select_parcels!("", "WHERE id = ?1"), (environment, number), read))
    }

    /// As [`Store::parcel`], with its order.
    pub async fn parcel_with_order(
        &self,
        environment: Environment,
        number: &TrackingNumber,
    ) -> Result<Option<(ParcelRow, StoredOrder)>, StoreError> {
        let sql = select_parcels!(", order_json", "WHERE id = ?1");
        self.read(|db| one(db, sql, (environment, number), read_with_order))
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

/// Takes a parcel of an ended generation away from the number that a new one is to have. Returns true if there was one.
pub(super) fn free_number(db: &Connection, new: &NewParcel) -> rusqlite::Result<bool> {
    let mut free = db.prepare_cached(
        "UPDATE parcels SET environment = -id WHERE environment = ?1 AND number = ?2 \
         AND tenant IN (SELECT number FROM ended_generations)",
    )?;
    let freed =
        free.execute(params![environment(new.tenant.environment), new.tracking_number.as_str()])?;
    Ok(freed > 0)
}

fn read_with_order(row: &Row<'_>) -> rusqlite::Result<(ParcelRow, StoredOrder)> {
    let order = row.get_ref(ORDER)?.as_str()?;
    let order = StoredOrder::from_json(order).map_err(|error| damaged(ORDER, error))?;
    Ok((read(row)?, order))
}

/// Finds the parcel with a number, in any case, and reads it by `sql`, whose parameter is its row. A row that cannot be
/// read is named.
pub(super) fn one<T>(
    db: &Connection,
    sql: &str,
    (in_environment, number): (Environment, &TrackingNumber),
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    let mut find =
        db.prepare_cached("SELECT id FROM parcels WHERE environment = ?1 AND number = ?2")?;
    let row =
        find.query_row(params![environment(in_environment), number.as_str()], |row| row.get(0));
    let Some(row) = row.optional()? else { return Ok(None) };
    by_id(db, sql, row, read)?.transpose().map_err(|unread| unread.error)
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
