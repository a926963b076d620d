//! The parcels of a group of writes. One statement locks them in the order of their ids, and one writes them back. The
//! lock keeps the read values valid until the commit. It also prevents deliveries of a parcel from being settled while
//! another event of the same parcel is enqueued.

use std::collections::HashMap;

use parcelo_domain::{Changes, Millis, ParcelRowId, State, Step, StoreOp, Version, activity};
use tokio_postgres::{Row, types::ToSql};
use ulid::Ulid;

use super::{
    connection::{Connection, bytes, column, get},
    counts::CountKey,
    error::DbResult,
};
use crate::{parcels::read_step, sql};

/// A parcel as this transaction sees it.
#[derive(Debug, Clone)]
pub(super) struct LockedParcel {
    pub(super) version: Version,
    /// The owner's number, combined with the parcel's generation.
    pub(super) tenant: i64,
    /// The day on which it was created, in days since 1970 began.
    pub(super) day: i64,
    pub(super) state: State,
    pub(super) country: String,
    pub(super) id: Ulid,
    pub(super) updated_at: Millis,
    pub(super) last_sequence: i64,
    pub(super) label_version: i64,
    pub(super) reprinted_at: Option<Millis>,
    pub(super) step: Option<Step>,
}

impl LockedParcel {
    /// Returns the key of the count that it belongs to.
    pub(super) fn count_key(&self) -> CountKey {
        (self.tenant, self.day, self.state.number().into(), self.country.clone())
    }
}

/// Returns the parcels that changes concern, sorted, without duplicates.
pub(super) fn affected_parcels<'c>(changes: impl Iterator<Item = &'c Changes>) -> Vec<i64> {
    let mut parcels = Vec::new();
    for changes in changes {
        parcels.extend(changes.expect.iter().map(|(parcel, _)| parcel.0));
        parcels.extend(changes.ops.iter().flat_map(op_parcels).map(|parcel| parcel.0));
    }
    parcels.sort_unstable();
    parcels.dedup();
    parcels
}

fn op_parcels(op: &StoreOp) -> &[ParcelRowId] {
    match op {
        StoreOp::Move { parcel, .. }
        | StoreOp::AddEvent { parcel, .. }
        | StoreOp::Schedule { parcel, .. }
        | StoreOp::Reprint { parcel, .. }
        | StoreOp::CancelSteps { parcel } => std::slice::from_ref(parcel),
        StoreOp::InsertManifest(manifest) => &manifest.parcels,
        StoreOp::InsertMail(mail) => std::slice::from_ref(&mail.parcel),
        StoreOp::InsertParcel(_)
        | StoreOp::RecordCarrierEvent(_)
        | StoreOp::LogCarrierException(_) => &[],
    }
}

/// Locks the `parcels` to change and the parcels whose deliveries are `settled`, as far as they exist. One statement
/// locks all of them in one order.
pub(super) async fn lock_parcels(
    db: &Connection,
    parcels: &[i64],
    settled: &[i64],
) -> DbResult<HashMap<ParcelRowId, LockedParcel>> {
    if parcels.is_empty() && settled.is_empty() {
        return Ok(HashMap::new());
    }
    let sql = "SELECT id, version, tenant, created_at, state, country, public_id, updated_at, \
         last_sequence, label_version, reprinted_at, step_index, step_due \
         FROM parcels WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE";
    let ids = [parcels, settled].concat();
    let mut locked = HashMap::new();
    for row in &db.all(sql, &[&ids]).await? {
        match (get(row, 0)?, read_locked_parcel(row)) {
            (id, Ok(parcel)) => drop(locked.insert(ParcelRowId(id), parcel)),
            // An unreadable row must not prevent its events from being settled.
            (id, Err(_)) if parcels.binary_search(&id).is_err() => {}
            (_, Err(failure)) => return Err(failure),
        }
    }
    Ok(locked)
}

/// Writes changed parcels back: every column that can change, with its current value.
pub(super) async fn write_parcels(
    db: &Connection,
    changed: &[(ParcelRowId, &LockedParcel)],
) -> DbResult<()> {
    if changed.is_empty() {
        return Ok(());
    }
    let ids = column!(changed, (parcel, _) => parcel.0);
    let versions = column!(changed, (_, parcel) => parcel.version.0);
    let states = column!(changed, (_, parcel) => i16::from(parcel.state.number()));
    let updated = column!(changed, (_, parcel) => parcel.updated_at.0);
    let sequences = column!(changed, (_, parcel) => parcel.last_sequence);
    let labels = column!(changed, (_, parcel) => parcel.label_version);
    let reprinted = column!(changed, (_, parcel) => parcel.reprinted_at.map(|at| at.0));
    let steps = column!(changed, (_, parcel) => parcel.step.map(|step| i16::from(step.index)));
    let dues = column!(changed, (_, parcel) => parcel.step.map(|step| step.due.0));
    let sql = "UPDATE parcels AS p SET version = n.version, state = n.state, \
         updated_at = n.updated_at, last_sequence = n.last_sequence, \
         label_version = n.label_version, reprinted_at = n.reprinted_at, \
         step_index = n.step_index, step_due = n.step_due \
         FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::bigint[], $5::bigint[], \
         $6::bigint[], $7::bigint[], $8::smallint[], $9::bigint[]) AS n (id, version, state, \
         updated_at, last_sequence, label_version, reprinted_at, step_index, step_due) \
         WHERE p.id = n.id";
    let params: [&(dyn ToSql + Sync); 9] =
        [&ids, &versions, &states, &updated, &sequences, &labels, &reprinted, &steps, &dues];
    db.execute(sql, &params).await.map(drop)
}

fn read_locked_parcel(row: &Row) -> DbResult<LockedParcel> {
    Ok(LockedParcel {
        version: Version(get(row, 1)?),
        tenant: get(row, 2)?,
        day: activity::epoch_day(Millis(get(row, 3)?)),
        state: sql::Row::Postgres(row).parse_number(4, State::from_number)?,
        country: get(row, 5)?,
        id: Ulid::from_bytes(bytes(row, 6)?),
        updated_at: Millis(get(row, 7)?),
        last_sequence: get(row, 8)?,
        label_version: get(row, 9)?,
        reprinted_at: get::<Option<i64>>(row, 10)?.map(Millis),
        step: read_step(&sql::Row::Postgres(row), 11)?,
    })
}
