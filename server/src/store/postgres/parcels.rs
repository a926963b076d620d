//! Parcels and their histories, as they are read.

use parcelo::{CountryCode, Environment, TrackingNumber};
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use ulid::Ulid;

use super::{
    Store,
    connection::{Connection, bytes, get, number, small},
    error::{DbResult, Failure},
    generations::IS_CURRENT,
};
use crate::{
    clock::Millis,
    domain::{Event, ParcelRow, ParcelRowId, State, Step, StoredOrder, Tenant, Version, history},
    store::{CreationRecord, StoreError},
};

/// The columns of a [`ParcelRow`] in the order in which [`read`] takes them; more may follow.
macro_rules! select_parcels {
    ($more:literal, $rest:literal) => {
        concat!(
            "SELECT parcels.id, version, parcels.public_id, tenant, number, state, created_at, updated_at, \
             origin, destination, country, promised_day, label_version, last_sequence, \
             step_index, step_due, reprinted_at",
            $more,
            " FROM (SELECT * FROM parcels WHERE ",
            $crate::store::generations::is_current!("tenant"),
            ") AS parcels ",
            $rest
        )
    };
}

pub(super) use select_parcels;

/// The first column after those of a [`ParcelRow`].
pub(super) const MORE: usize = 17;

impl Store {
    pub(crate) async fn parcel(
        &self,
        environment: Environment,
        number: &TrackingNumber,
    ) -> Result<Option<ParcelRow>, StoreError> {
        let number = number.clone();
        self.read(async move |db| find(db, environment, &number).await).await
    }

    pub(crate) async fn parcel_with_order(
        &self,
        environment: Environment,
        number: &TrackingNumber,
    ) -> Result<Option<(ParcelRow, StoredOrder)>, StoreError> {
        let number = number.clone();
        self.read(async move |db| {
            let sql = select_parcels!(
                ", order_json",
                "JOIN orders ON orders.parcel = parcels.id \
                 WHERE environment = $1 AND upper(number) = $2"
            );
            let both = |row: &Row| Ok((read(row)?, stored_order(row)?));
            one(db, sql, (environment, &number), both).await
        })
        .await
    }

    pub(crate) async fn parcel_in_row(
        &self,
        parcel: ParcelRowId,
    ) -> Result<Option<(ParcelRow, StoredOrder)>, StoreError> {
        self.read(async move |db| {
            let sql = select_parcels!(
                ", order_json",
                "JOIN orders ON orders.parcel = parcels.id WHERE parcels.id = $1"
            );
            let Some(row) = db.first(sql, &[&parcel.0]).await? else { return Ok(None) };
            Ok(Some((read(&row)?, stored_order(&row)?)))
        })
        .await
    }

    pub(crate) async fn events(&self, parcel: &ParcelRow) -> Result<Vec<Event>, StoreError> {
        let parcel = parcel.clone();
        self.read(async move |db| events(db, &parcel).await).await
    }

    pub(crate) async fn creations(&self) -> Result<Vec<CreationRecord>, StoreError> {
        self.read(async |db| {
            let sql = format!(
                "SELECT tenant, public_id, number, created_at, state, \
                 coalesce(order_json::json ->> 'idempotencyKey', ''), external_order_id \
                 FROM parcels JOIN orders ON parcel = id WHERE {IS_CURRENT} ORDER BY created_at, id"
            );
            db.each(&sql, &[], |row| {
                Ok(CreationRecord {
                    tenant: Tenant::from_number(get(row, 0)?),
                    id: Ulid::from_bytes(bytes(row, 1)?),
                    number: get(row, 2)?,
                    created_at: Millis(get(row, 3)?),
                    state: read_state(row, 4)?,
                    idempotency_key: get(row, 5)?,
                    external_order_id: get(row, 6)?,
                })
            })
            .await
        })
        .await
    }

    pub(crate) async fn due(
        &self,
        until: Millis,
        most: usize,
    ) -> Result<Vec<ParcelRow>, StoreError> {
        self.due_among(None, until, most).await
    }

    pub(crate) async fn due_of(
        &self,
        tenant: Tenant,
        until: Millis,
        most: usize,
    ) -> Result<Vec<ParcelRow>, StoreError> {
        self.due_among(Some(tenant), until, most).await
    }

    async fn due_among(
        &self,
        tenant: Option<Tenant>,
        until: Millis,
        most: usize,
    ) -> Result<Vec<ParcelRow>, StoreError> {
        let (tenant, limit) = (tenant.map(Tenant::number), i64::try_from(most).unwrap_or(i64::MAX));
        let found = self
            .read(async move |db| {
                // The few that are due are looked through, not the many of a tenant.
                let sql = select_parcels!(
                    "",
                    "WHERE step_due <= $1 AND ($2::bigint IS NULL OR tenant & 4294967295 = $2) \
                     ORDER BY step_due LIMIT $3"
                );
                let rows = db.all(sql, &[&until.0, &tenant, &limit]).await?;
                Ok(rows.iter().map(read_or_name).collect::<Vec<_>>())
            })
            .await?;
        Ok(self.readable(found, "a parcel's steps cannot be taken; others go on"))
    }

    pub(crate) async fn next_due(&self, after: Millis) -> Result<Option<Millis>, StoreError> {
        self.read(async move |db| {
            let sql = format!(
                "SELECT step_due FROM parcels WHERE step_due > $1 AND {IS_CURRENT} \
                 ORDER BY step_due LIMIT 1"
            );
            let found = db.first(&sql, &[&after.0]).await?;
            found.map(|row| get(&row, 0).map(Millis)).transpose()
        })
        .await
    }
}

/// The number under which an environment is stored.
pub(super) const fn environment(environment: Environment) -> i16 {
    match environment {
        Environment::Production => 0,
        Environment::Sandbox => 1,
    }
}

/// A number as the index has it: its case does not count.
pub(super) fn indexed(number: &TrackingNumber) -> String {
    number.as_str().to_ascii_uppercase()
}

/// The parcel with a number, whosever it is.
pub(super) async fn find(
    db: &Connection,
    in_environment: Environment,
    number: &TrackingNumber,
) -> DbResult<Option<ParcelRow>> {
    let sql = select_parcels!("", "WHERE environment = $1 AND upper(number) = $2");
    one(db, sql, (in_environment, number), read).await
}

/// What `sql` finds under an environment (`$1`) and a number (`$2`). A row that cannot be read is named.
pub(super) async fn one<T>(
    db: &Connection,
    sql: &str,
    (in_environment, number): (Environment, &TrackingNumber),
    read: impl FnOnce(&Row) -> DbResult<T>,
) -> DbResult<Option<T>> {
    let found = db.first(sql, &[&environment(in_environment), &indexed(number)]).await?;
    found.map(|row| read(&row).map_err(|failure| named(&row, failure))).transpose()
}

/// A row of [`select_parcels`], alone: one that cannot be read is its own error.
pub(super) fn read_or_name(row: &Row) -> DbResult<ParcelRow> {
    read(row).map_err(|failure| named(row, failure))
}

/// The error of a row of [`select_parcels`], with its id.
pub(super) fn named(row: &Row, failure: Failure) -> Failure {
    match row.try_get(0) {
        Ok(id) => failure.of_parcel("parcels", id),
        Err(_) => failure,
    }
}

/// The history of a parcel as it was when its row was read.
pub(super) async fn events(db: &Connection, parcel: &ParcelRow) -> DbResult<Vec<Event>> {
    let sql = "SELECT sequence, state, at, location, description FROM events \
         WHERE parcel = $1 AND sequence <= $2 ORDER BY sequence";
    let rows = db.all(sql, &[&parcel.key.0, &i64::from(parcel.last_sequence)]).await?;
    let mut events = Vec::from(history::first_events(parcel));
    for row in &rows {
        let event = read_event(row);
        events.push(event.map_err(|failure| failure.of_parcel("events", parcel.key.0))?);
    }
    events.sort_by_key(|event| (event.at, event.sequence));
    Ok(events)
}

/// The row that `select_parcels` selects.
pub(super) fn read(row: &Row) -> DbResult<ParcelRow> {
    Ok(ParcelRow {
        key: ParcelRowId(get(row, 0)?),
        version: Version(get(row, 1)?),
        id: Ulid::from_bytes(bytes(row, 2)?),
        tenant: Tenant::from_number(get(row, 3)?),
        tracking_number: TrackingNumber::parse(get(row, 4)?).map_err(Failure::row)?,
        state: read_state(row, 5)?,
        created_at: Millis(get(row, 6)?),
        updated_at: Millis(get(row, 7)?),
        origin: get(row, 8)?,
        destination: get(row, 9)?,
        country: CountryCode::parse(get(row, 10)?).map_err(Failure::row)?,
        promised_day: get(row, 11)?,
        label_version: number(row, 12)?,
        reprinted_at: get::<Option<i64>>(row, 16)?.map(Millis),
        last_sequence: number(row, 13)?,
        step: read_step(row, 14)?,
    })
}

fn stored_order(row: &Row) -> DbResult<StoredOrder> {
    StoredOrder::from_json(get(row, MORE)?).map_err(Failure::row)
}

/// Reads an order, or a part of it, from its JSON. PostgreSQL does not take it apart, since a damaged one would fail the
/// statement, and with it the rows beside it.
pub(super) fn read_order<T: DeserializeOwned>(row: &Row, column: usize) -> DbResult<T> {
    serde_json::from_str(get(row, column)?).map_err(Failure::row)
}

/// A step's index and, in the next column, when it is due.
pub(super) fn read_step(row: &Row, column: usize) -> DbResult<Option<Step>> {
    let index: Option<i16> = get(row, column)?;
    let step = index.zip(get::<Option<i64>>(row, column + 1)?).map(|(index, due)| {
        Ok(Step { index: u8::try_from(index).map_err(Failure::row)?, due: Millis(due) })
    });
    step.transpose()
}

fn read_event(row: &Row) -> DbResult<Event> {
    Ok(Event {
        sequence: number(row, 0)?,
        state: read_state(row, 1)?,
        at: Millis(get(row, 2)?),
        location: get(row, 3)?,
        description: get(row, 4)?,
    })
}

pub(super) fn read_state(row: &Row, column: usize) -> DbResult<State> {
    let number = small(row, column)?;
    State::from_number(number).ok_or_else(|| Failure::row(format!("no state is numbered {number}")))
}
