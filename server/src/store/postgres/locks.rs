//! The parcels that a group of writes is about, locked by one statement in the order of their ids. The lock
//! makes the versions that were seen hold until the commit, and keeps deliveries of the same parcel from being
//! settled while another of its events is enqueued.

use std::collections::HashMap;

use tokio_postgres::Row;
use ulid::Ulid;

use super::{
    connection::{Connection, bytes, get, number},
    error::DbResult,
    parcels::read_state,
};
use crate::{
    clock::Millis,
    domain::{Changes, NewParcel, Op, ParcelRowId, State, Tenant, Version, activity},
};

/// A parcel as it is in this transaction.
#[derive(Debug, Clone)]
pub(super) struct Locked {
    pub(super) version: Version,
    pub(super) tenant: Tenant,
    pub(super) epoch: i64,
    /// The day it was created, since 1970 began.
    pub(super) day: i64,
    pub(super) state: State,
    pub(super) country: String,
    pub(super) id: Ulid,
}

impl Locked {
    /// A parcel that this transaction has inserted.
    pub(super) fn new_parcel(parcel: &NewParcel, epoch: i64) -> Self {
        Self {
            version: Version(1),
            tenant: parcel.tenant,
            epoch,
            day: activity::day_of(parcel.created_at),
            state: State::LabelGenerated,
            country: parcel.country.as_str().to_owned(),
            id: parcel.id,
        }
    }
}

/// The parcels that changes are about, sorted, each once.
pub(super) fn parcels<'c>(changes: impl Iterator<Item = &'c Changes>) -> Vec<i64> {
    let mut parcels = Vec::new();
    for changes in changes {
        parcels.extend(changes.expect.iter().map(|(parcel, _)| parcel.0));
        parcels.extend(changes.ops.iter().filter_map(subject).map(|parcel| parcel.0));
    }
    parcels.sort_unstable();
    parcels.dedup();
    parcels
}

fn subject(op: &Op) -> Option<ParcelRowId> {
    match op {
        Op::Move { parcel, .. }
        | Op::AddEvent { parcel, .. }
        | Op::Schedule { parcel, .. }
        | Op::Reprint { parcel, .. }
        | Op::CancelSteps { parcel } => Some(*parcel),
        Op::InsertParcel(_)
        | Op::InsertManifest(_)
        | Op::RecordCarrierEvent(_)
        | Op::LogCarrierException(_) => None,
    }
}

/// Locks those that are there, and beside them those whose deliveries are settled: by one statement, since two would
/// lock in two orders.
pub(super) async fn lock(
    db: &Connection,
    parcels: &[i64],
    settled: &[i64],
) -> DbResult<HashMap<ParcelRowId, Locked>> {
    if parcels.is_empty() && settled.is_empty() {
        return Ok(HashMap::new());
    }
    let sql = "SELECT id, version, tenant, epoch, created_at, state, country, public_id \
         FROM living_parcels WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE";
    let all = [parcels, settled].concat();
    let mut locked = HashMap::new();
    for row in &db.all(sql, &[&all]).await? {
        match (get(row, 0)?, read(row)) {
            (id, Ok(parcel)) => drop(locked.insert(ParcelRowId(id), parcel)),
            // A row that cannot be read keeps none of its events from being settled.
            (id, Err(_)) if parcels.binary_search(&id).is_err() => {}
            (_, Err(failure)) => return Err(failure),
        }
    }
    Ok(locked)
}

fn read(row: &Row) -> DbResult<Locked> {
    Ok(Locked {
        version: Version(get(row, 1)?),
        tenant: Tenant::from_number(number(row, 2)?),
        epoch: get(row, 3)?,
        day: activity::day_of(Millis(get(row, 4)?)),
        state: read_state(row, 5)?,
        country: get(row, 6)?,
        id: Ulid::from_bytes(bytes(row, 7)?),
    })
}
