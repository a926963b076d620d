//! Inserts the orders of a group, and what they change in the counts, with one statement.

use std::collections::BTreeMap;

use parcelo_domain::{NewParcel, State};

use super::{
    connection::{Connection, column, get},
    error::DbResult,
    generations::Generations,
};
use crate::{columns::environment_number, outbox::ChangeOrigin};

/// Inserts the parcels whose number is free, in the order of the passed rows, which are sorted by number, with their
/// orders and the changes of counts. Returns the positions of the inserted rows, and their ids.
pub(super) const INSERT: &str = "WITH new AS MATERIALIZED (SELECT nextval('parcel_rows') AS id, n.* \
     FROM unnest($1::bigint[], $2::smallint[], $3::text[], $4::bytea[], $5::bigint[], $6::text[], $7::text[], \
     $8::text[], $9::integer[], $10::smallint[], $11::bigint[], $12::text[], $13::text[]) WITH ORDINALITY AS n (tenant, \
     environment, number, public_id, created_at, origin, destination, country, promised_day, step_index, step_due, \
     external_order_id, order_json, place)), \
     created AS (INSERT INTO parcels (id, version, tenant, created_at, updated_at, step_due, promised_day, \
     label_version, last_sequence, environment, state, step_index, country, number, public_id, origin, destination, \
     external_order_id) \
     SELECT id, 1, tenant, created_at, created_at, step_due, promised_day, 1, 2, environment, $14, step_index, country, \
     number, public_id, origin, destination, external_order_id FROM new ORDER BY place \
     ON CONFLICT (environment, upper(number)) DO NOTHING RETURNING id), \
     placed AS MATERIALIZED (SELECT new.* FROM new JOIN created USING (id)), \
     written AS (INSERT INTO orders (parcel, order_json) SELECT id, order_json FROM placed), \
     counted AS (INSERT INTO parcel_count_changes (tenant, day, state, country, difference) \
     SELECT tenant, floor(created_at / 86400000.0), $14, country, count(*) FROM placed GROUP BY 1, 2, 4) \
     SELECT place, id FROM placed";

/// Inserts one parcel and returns its id, or `None` if its number is taken.
pub(super) async fn insert_one(
    db: &Connection,
    generations: &Generations,
    parcel: &NewParcel,
) -> DbResult<Option<i64>> {
    let inserted = insert_all(db, generations, &[parcel]).await?;
    Ok(inserted.first().map(|(_, id)| *id))
}

/// Environment and number, in the form of the index.
type NumberKey = (u8, String);

/// Parcels to insert, each with a different number, sorted by number so that the groups of two servers wait for each
/// other and never deadlock.
#[derive(Default)]
pub(super) struct CreateBatch<'w>(BTreeMap<NumberKey, NewRow<'w>>);

#[derive(Clone, Copy)]
pub(super) struct NewRow<'w> {
    /// The position of its write.
    pub(super) at: usize,
    pub(super) parcel: &'w NewParcel,
    pub(super) origin: ChangeOrigin,
}

impl<'w> CreateBatch<'w> {
    /// Adds a parcel, unless the batch already has a parcel with the same number. A parcel that is left out is applied
    /// separately after the batch.
    pub(super) fn add(&mut self, at: usize, parcel: &'w NewParcel, origin: ChangeOrigin) {
        // In the form of the case-insensitive index.
        let number = parcel.tracking_number.as_str().to_ascii_uppercase();
        let number = (environment_number(parcel.tenant.environment), number);
        self.0.entry(number).or_insert(NewRow { at, parcel, origin });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Inserts the parcels whose number is free, and returns them with their ids.
    pub(super) async fn insert(
        self,
        db: &Connection,
        generations: &Generations,
    ) -> DbResult<Vec<(i64, NewRow<'w>)>> {
        let rows: Vec<NewRow<'w>> = self.0.into_values().collect();
        let parcels: Vec<&NewParcel> = rows.iter().map(|row| row.parcel).collect();
        let inserted = insert_all(db, generations, &parcels).await?;
        let created = inserted.into_iter();
        Ok(created.filter_map(|(position, id)| Some((id, *rows.get(position)?))).collect())
    }
}

/// Inserts parcels, which are sorted by number. Returns the positions of those with a free number, and their ids.
async fn insert_all(
    db: &Connection,
    generations: &Generations,
    parcels: &[&NewParcel],
) -> DbResult<Vec<(usize, i64)>> {
    let tenants = column!(parcels, new => generations.storage_tenant_id(new.tenant));
    let environments =
        column!(parcels, new => i16::from(environment_number(new.tenant.environment)));
    let numbers = column!(parcels, new => new.tracking_number.as_str());
    let public_ids = column!(parcels, new => new.id.to_bytes().to_vec());
    let created = column!(parcels, new => new.created_at.0);
    let origins = column!(parcels, new => new.origin.as_str());
    let destinations = column!(parcels, new => new.destination.as_str());
    let countries = column!(parcels, new => new.country.as_str());
    let days = column!(parcels, new => new.promised_day);
    let steps = column!(parcels, new => new.step.map(|step| i16::from(step.index)));
    let dues = column!(parcels, new => new.step.map(|step| step.due.0));
    let external = column!(parcels, new => new.external_order_id.as_deref());
    let orders = column!(parcels, new => new.order.as_str());
    let state = i16::from(State::LabelGenerated.number());
    let params: [&(dyn tokio_postgres::types::ToSql + Sync); 14] = [
        &tenants,
        &environments,
        &numbers,
        &public_ids,
        &created,
        &origins,
        &destinations,
        &countries,
        &days,
        &steps,
        &dues,
        &external,
        &orders,
        &state,
    ];
    let read = |row: &tokio_postgres::Row| -> DbResult<(usize, i64)> {
        let position: i64 = get(row, 0)?;
        Ok((usize::try_from(position - 1).unwrap_or(usize::MAX), get(row, 1)?))
    };
    db.query_map(INSERT, &params, read).await
}
