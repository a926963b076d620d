//! Reads of parcels, their orders and their histories.

use parcelo_domain::{
    Event, Millis, ParcelRow, ParcelRowId, State, Step, StoredOrder, Tenant, Version, history,
};
use parcelo_types::{CountryCode, Environment, TrackingNumber};
use serde::de::DeserializeOwned;
use ulid::Ulid;

use super::{
    Store, StoreError, columns,
    generations::is_current,
    sql::{Row, Sql, SqlError, SqlResult, params},
};

/// Selects the columns of a [`ParcelRow`] in the order in which [`read`] takes them; more may follow.
macro_rules! select_parcels {
    ($more:literal, $($rest:tt)+) => {
        concat!(
            "SELECT parcels.id, version, parcels.public_id, parcels.tenant, number, state, created_at, \
             updated_at, origin, destination, country, promised_day, parcels.label_version, last_sequence, \
             step_index, step_due, reprinted_at",
            $more,
            " FROM (SELECT * FROM parcels WHERE ",
            $crate::generations::is_current!("tenant"),
            ") AS parcels ",
            $($rest)+
        )
    };
}

/// Joins the orders, which are a separate table in PostgreSQL.
macro_rules! with_order {
    () => {
        "{JOIN orders ON orders.parcel = parcels.id|} "
    };
}

/// Returns the condition that selects the parcel with a number (`$2`, in capitals) in an environment (`$1`).
macro_rules! by_number {
    () => {
        "WHERE environment = $1 AND {upper(number)|number} = $2"
    };
}

/// Returns the end of a statement for [`read_each`].
macro_rules! by_ids {
    () => {
        "{JOIN unnest(string_to_array($1, ',')::bigint[]) WITH ORDINALITY AS wanted (id, place) \
         ON wanted.id = parcels.id ORDER BY wanted.place|WHERE parcels.id = $1}"
    };
}

pub(super) use {by_ids, by_number, select_parcels, with_order};

/// The first column after the columns of a [`ParcelRow`].
pub(super) const FIRST_EXTRA_COLUMN: usize = 17;

/// A parcel and the idempotency key of its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreationRecord {
    /// The tenant that it belongs to.
    pub tenant: Tenant,
    /// The parcel's public id, without its prefix.
    pub id: Ulid,
    /// Its tracking number.
    pub number: String,
    /// The time at which it was created.
    pub created_at: Millis,
    /// Its current state.
    pub state: State,
    /// The idempotency key of its order.
    pub idempotency_key: String,
    /// The order's id in the caller's system.
    pub external_order_id: Option<String>,
}

impl Store {
    /// Returns the parcel with a number, ignoring case, across tenants. The caller must check the tenant.
    pub async fn parcel(
        &self,
        environment: Environment,
        number: &TrackingNumber,
    ) -> Result<Option<ParcelRow>, StoreError> {
        let number = number.clone();
        self.query(async move |db| {
            find_by_number(db, select_parcels!("", by_number!()), (environment, &number), read)
                .await
        })
        .await
    }

    /// Returns the same parcel as [`Store::parcel`], with its order.
    pub async fn parcel_with_order(
        &self,
        environment: Environment,
        number: &TrackingNumber,
    ) -> Result<Option<(ParcelRow, StoredOrder)>, StoreError> {
        let number = number.clone();
        self.query(async move |db| {
            let sql = select_parcels!(", order_json", with_order!(), by_number!());
            find_by_number(db, sql, (environment, &number), read_with_order).await
        })
        .await
    }

    /// Returns the parcel in a row, with its order.
    pub async fn parcel_in_row(
        &self,
        parcel: ParcelRowId,
    ) -> Result<Option<(ParcelRow, StoredOrder)>, StoreError> {
        self.query(async move |db| {
            let sql = select_parcels!(", order_json", with_order!(), "WHERE parcels.id = $1");
            db.first(sql, params![parcel], read_with_order).await
        })
        .await
    }

    /// Returns the history of a parcel as of when its row was read, ordered by time, then by sequence.
    pub async fn events(&self, parcel: &ParcelRow) -> Result<Vec<Event>, StoreError> {
        let parcel = parcel.clone();
        self.query(async move |db| events(db, &parcel).await).await
    }

    /// Returns the keys and ids under which every parcel was created, oldest first.
    pub async fn creations(&self) -> Result<Vec<CreationRecord>, StoreError> {
        self.query(async |db| {
            let sql = concat!(
                "SELECT tenant, public_id, number, created_at, state, \
                 {order_json::json ->> 'idempotencyKey'|json_extract(order_json, '$.idempotencyKey')}, \
                 external_order_id FROM parcels ",
                with_order!(),
                "WHERE ",
                is_current!("tenant"),
                " ORDER BY {created_at, |}id"
            );
            db.query_map(sql, &[], |row| {
                Ok(CreationRecord {
                    tenant: Tenant::from_number(row.get(0)?),
                    id: Ulid::from_bytes(row.get(1)?),
                    number: row.get(2)?,
                    created_at: row.get(3)?,
                    state: row.parse_number(4, State::from_number)?,
                    idempotency_key: row.get::<Option<String>>(5)?.unwrap_or_default(),
                    external_order_id: row.get(6)?,
                })
            })
            .await
        })
        .await
    }

    /// Returns up to `max` parcels whose next step is due at `until` or earlier, earliest first.
    pub async fn due(&self, until: Millis, max: usize) -> Result<Vec<ParcelRow>, StoreError> {
        self.readable_due(None, until, max).await
    }

    /// Returns up to `max` parcels of one tenant whose next step is due at `until` or earlier, earliest first.
    pub async fn due_for_tenant(
        &self,
        tenant: Tenant,
        until: Millis,
        max: usize,
    ) -> Result<Vec<ParcelRow>, StoreError> {
        self.readable_due(Some(tenant), until, max).await
    }

    /// Returns the readable parcels that are due, of one tenant or of all (`None`). Unreadable ones are logged once.
    async fn readable_due(
        &self,
        tenant: Option<Tenant>,
        until: Millis,
        max: usize,
    ) -> Result<Vec<ParcelRow>, StoreError> {
        let mut found = self.query(async move |db| due(db, tenant, until, max).await).await?;
        // Each search for due steps finds the same unreadable rows again, so they are counted once.
        found.retain(|row| {
            row.as_ref().err().is_none_or(|error| self.should_log(error.to_string()))
        });
        Ok(self.readable_rows(
            found,
            "the steps of an unreadable parcel are skipped; other parcels are not affected",
        ))
    }

    /// Returns the time of the first step after a time.
    pub async fn next_due(&self, after: Millis) -> Result<Option<Millis>, StoreError> {
        self.query(async move |db| {
            let sql = concat!(
                "SELECT step_due FROM parcels WHERE step_due > $1 AND ",
                is_current!("tenant"),
                " ORDER BY step_due LIMIT 1"
            );
            db.first(sql, params![after], |row| row.get(0)).await
        })
        .await
    }
}

/// Returns the first `max` readable parcels whose next step is due, earliest first, and the unreadable parcels among
/// them.
async fn due(
    db: Sql<'_>,
    tenant: Option<Tenant>,
    until: Millis,
    max: usize,
) -> SqlResult<Vec<SqlResult<ParcelRow>>> {
    // Reads only the index, since a row of a file may be damaged, and visits the few due parcels, not all of a
    // tenant's.
    let sql = "SELECT id FROM parcels WHERE step_due <= $1 \
         {AND ($3::bigint IS NULL OR tenant & 4294967295 = $3)|} ORDER BY step_due LIMIT $2";
    let is_wanted = |parcel: &ParcelRow| tenant.is_none_or(|tenant| parcel.tenant == tenant);
    let mut limit = max;
    loop {
        let params = params![until, limit, tenant.map(Tenant::number)];
        let ids = db.query_map(sql, params, |row| row.get(0)).await?;
        let mut rows = read_each(db, select_parcels!("", by_ids!()), &ids, read).await?;
        rows.retain(|row| row.as_ref().map_or(true, is_wanted));
        let readable = rows.iter().filter(|row| row.is_ok()).count();
        if readable >= max || ids.len() < limit {
            let mut left = 0..max;
            rows.retain(|row| row.is_err() || left.next().is_some());
            return Ok(rows);
        }
        limit = limit.saturating_mul(2);
    }
}

/// Returns the parcel with a number, ignoring case. `sql` reads it and ends with `by_number!`. If its row is
/// unreadable, the error names the parcel.
pub(super) async fn find_by_number<T>(
    db: Sql<'_>,
    sql: &str,
    (environment, number): (Environment, &TrackingNumber),
    read: impl Fn(&Row<'_>) -> SqlResult<T>,
) -> SqlResult<Option<T>> {
    let number = number.as_str().to_ascii_uppercase();
    let params = params![columns::environment_number(environment), number];
    match db.first(sql, params, |row| read(row).map_err(|error| with_row_id(row, error))).await {
        Err(error) if error.is_page_error() => {
            let row = concat!("SELECT id FROM parcels ", by_number!());
            let row = db.value(row, params).await?;
            Err(error.with_parcel("parcels", row))
        }
        found => found,
    }
}

/// Reads parcels by their rows, in the order of `ids`. `sql` ends with `by_ids!`. Each unreadable parcel is a separate
/// error and does not hide others.
pub(super) async fn read_each<T>(
    db: Sql<'_>,
    sql: &str,
    ids: &[i64],
    read: impl Fn(&Row<'_>) -> SqlResult<T>,
) -> SqlResult<Vec<SqlResult<T>>> {
    let read = |row: &Row<'_>| Ok(read(row).map_err(|error| with_row_id(row, error)));
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    if db.is_postgres() {
        return db.query_map(sql, params![&columns::join_with_commas(ids)], read).await;
    }
    let mut all = Vec::with_capacity(ids.len());
    for id in ids {
        match db.first(sql, params![*id], read).await {
            Err(error) if error.is_page_error() => all.push(Err(error.with_parcel("parcels", *id))),
            found => all.extend(found?),
        }
    }
    Ok(all)
}

/// Adds the row's id to the error of a row of `select_parcels!`.
fn with_row_id(row: &Row<'_>, error: SqlError) -> SqlError {
    match row.get(0) {
        Ok(id) if error.is_row_error() => error.with_parcel("parcels", id),
        Ok(_) | Err(_) => error,
    }
}

/// Returns the history of a parcel as of the read of its row.
pub(super) async fn events(db: Sql<'_>, parcel: &ParcelRow) -> SqlResult<Vec<Event>> {
    let sql = "SELECT sequence, state, at, location, description FROM events \
         WHERE parcel = $1 AND sequence <= $2 ORDER BY sequence";
    let params = params![parcel.key, parcel.last_sequence];
    let later = db.query_map(sql, params, |row| {
        read_event(row).map_err(|error| error.with_parcel("events", parcel.key.0))
    });
    let mut events = Vec::from(history::first_events(parcel));
    events.extend(later.await?);
    events.sort_by_key(|event| (event.at, event.sequence));
    Ok(events)
}

/// Reads a row of `select_parcels!`.
pub(super) fn read(row: &Row<'_>) -> SqlResult<ParcelRow> {
    Ok(ParcelRow {
        key: row.get(0)?,
        version: Version(row.get(1)?),
        id: Ulid::from_bytes(row.get(2)?),
        tenant: Tenant::from_number(row.get(3)?),
        tracking_number: row.parse(4, TrackingNumber::parse)?,
        state: row.parse_number(5, State::from_number)?,
        created_at: row.get(6)?,
        updated_at: row.get(7)?,
        origin: row.get(8)?,
        destination: row.get(9)?,
        country: row.parse(10, CountryCode::parse)?,
        promised_day: row.get(11)?,
        label_version: row.get(12)?,
        reprinted_at: row.get(16)?,
        last_sequence: row.get(13)?,
        step: read_step(row, 14)?,
    })
}

/// Reads a step: its index and, from the next column, its due time.
pub(super) fn read_step(row: &Row<'_>, column: usize) -> SqlResult<Option<Step>> {
    let step = row.get::<Option<u8>>(column)?.zip(row.get(column + 1)?);
    Ok(step.map(|(index, due)| Step { index, due }))
}

fn read_with_order(row: &Row<'_>) -> SqlResult<(ParcelRow, StoredOrder)> {
    Ok((read(row)?, row.parse(FIRST_EXTRA_COLUMN, StoredOrder::from_json)?))
}

/// Reads an order, or a part of it, from its JSON. The database does not parse the JSON, because a damaged order would
/// fail the statement, and with it the other rows.
pub(super) fn read_order<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> SqlResult<T> {
    row.parse(column, |json| serde_json::from_str(json))
}

fn read_event(row: &Row<'_>) -> SqlResult<Event> {
    Ok(Event {
        sequence: row.get(0)?,
        state: row.parse_number(1, State::from_number)?,
        at: row.get(2)?,
        location: row.get(3)?,
        description: row.get(4)?,
    })
}
