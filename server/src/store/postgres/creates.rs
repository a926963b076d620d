//! The orders of a group, inserted together by one statement.

use std::collections::{BTreeMap, HashSet};

use super::{
    connection::{Connection, get},
    error::DbResult,
    generations::Generations,
    parcels,
};
use crate::{
    clock::Millis,
    domain::{NewParcel, State},
};

/// Inserts parcels whose number is free, in their order, which is that of the numbers; answers which those were.
pub(super) const INSERT: &str = "WITH created AS (INSERT INTO parcels (id, version, tenant, created_at, updated_at, \
     step_due, promised_day, label_version, last_sequence, environment, state, step_index, \
     country, number, public_id, origin, destination, external_order_id) \
     SELECT n.id, 1, n.tenant, n.created_at, n.created_at, n.step_due, n.promised_day, 1, 2, n.environment, $15, \
     n.step_index, n.country, n.number, n.public_id, n.origin, n.destination, \
     n.external_order_id \
     FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::text[], $5::bytea[], \
     $6::bigint[], $7::text[], $8::text[], $9::text[], $10::integer[], $11::smallint[], \
     $12::bigint[], $13::text[]) WITH ORDINALITY AS n (id, tenant, \
     environment, number, public_id, created_at, origin, destination, country, promised_day, \
     step_index, step_due, external_order_id, place) ORDER BY n.place \
     ON CONFLICT DO NOTHING RETURNING id), \
     written AS (INSERT INTO orders (parcel, order_json) SELECT n.id, n.order_json \
     FROM unnest($1, $14::text[]) AS n (id, order_json) JOIN created USING (id)) \
     SELECT id FROM created";

/// Inserts one parcel. Returns false when its row or its number is taken.
pub(super) async fn insert_one(
    db: &Connection,
    generations: &Generations,
    (parcel, order): (&NewParcel, &str),
) -> DbResult<bool> {
    let mut batch = Batch::default();
    batch.add(0, parcel, order, parcel.created_at);
    Ok(!batch.insert_parcels(db, generations).await?.is_empty())
}

/// Environment and number, as the index has them.
type Number = (i16, String);

/// Parcels to insert, each of a number of its own, in the order of their numbers: so the groups of two servers
/// wait for one another and never deadlock.
#[derive(Default)]
pub(super) struct Batch<'w>(BTreeMap<Number, NewRow<'w>>);

struct NewRow<'w> {
    /// The position of its write.
    at: usize,
    id: i64,
    parcel: &'w NewParcel,
    order: &'w str,
    /// When it was decided.
    now: Millis,
}

/// A parcel that was inserted.
pub(super) struct Created<'w> {
    /// The position of its write.
    pub(super) at: usize,
    pub(super) parcel: &'w NewParcel,
    /// When it was decided.
    pub(super) now: Millis,
}

impl<'w> Batch<'w> {
    /// Adds a parcel under its id. One whose number another of the batch has is left out: it is refused
    /// later, unless that one is.
    pub(super) fn add(&mut self, at: usize, parcel: &'w NewParcel, order: &'w str, now: Millis) {
        let number = (
            parcels::environment(parcel.tenant.environment),
            parcels::indexed(&parcel.tracking_number),
        );
        self.0.entry(number).or_insert(NewRow { at, id: parcel.row.0, parcel, order, now });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Inserts those whose number is free, and returns them.
    pub(super) async fn insert(
        self,
        db: &Connection,
        generations: &Generations,
    ) -> DbResult<Vec<Created<'w>>> {
        let inserted = self.insert_parcels(db, generations).await?;
        let created = self.0.into_values().filter(|new| inserted.contains(&new.id));
        Ok(created.map(|NewRow { at, parcel, now, .. }| Created { at, parcel, now }).collect())
    }

    /// Returns the ids of the parcels that were inserted.
    async fn insert_parcels(
        &self,
        db: &Connection,
        generations: &Generations,
    ) -> DbResult<HashSet<i64>> {
        let all: Vec<&NewRow<'_>> = self.0.values().collect();
        /// A column of the new rows.
        macro_rules! column {
            ($new:ident => $value:expr) => {
                all.iter().map(|$new| $value).collect::<Vec<_>>()
            };
        }
        let ids = column!(new => new.id);
        let tenants = column!(new => generations.number(new.parcel.tenant));
        let environments: Vec<i16> = self.0.keys().map(|number| number.0).collect();
        let numbers = column!(new => new.parcel.tracking_number.as_str());
        let public_ids = column!(new => new.parcel.id.to_bytes().to_vec());
        let created = column!(new => new.parcel.created_at.0);
        let origins = column!(new => new.parcel.origin.as_str());
        let destinations = column!(new => new.parcel.destination.as_str());
        let countries = column!(new => new.parcel.country.as_str());
        let days = column!(new => new.parcel.promised_day);
        let steps = column!(new => new.parcel.step.map(|step| i16::from(step.index)));
        let dues = column!(new => new.parcel.step.map(|step| step.due.0));
        let external = column!(new => new.parcel.order.external_order_id.as_deref());
        let orders = column!(new => new.order);
        let state = i16::from(State::LabelGenerated.number());
        let given: [&(dyn tokio_postgres::types::ToSql + Sync); 15] = [
            &ids,
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
        Ok(db.each(INSERT, &given, |row| get(row, 0)).await?.into_iter().collect())
    }
}
