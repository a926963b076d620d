//! `Changes` as SQL. What can forbid them is asked in this order: idempotency, versions, the operations; it stops
//! at the first. Undoing what it did until then is the caller's part. A refused creation has done nothing:
//! the key is asked for before the parcel is inserted, and its record is written last.

use rusqlite::{Connection, OptionalExtension, params};

use super::{
    CommitOutcome, carriers, counts,
    living_keys::LivingKeys,
    mails, manifests, outbox,
    parcels::{self, NumberLookup},
    pending::Pending,
    records,
};
use crate::{
    clock::Millis,
    domain::{
        Changes, Event, IdempotencyRecord, NewManifest, NewParcel, NumberKey, Op, ParcelRowId,
        State, Step, StoredOrder, Version, idempotency::is_alive,
    },
    store::generations::is_current,
};

/// Changes with what the writer need not do: their orders are written as JSON, their numbers decrypted.
pub(super) struct Ready {
    pub(super) changes: Changes,
    orders: Vec<ReadyOrder>,
}

struct ReadyOrder {
    json: String,
    /// The row that the parcel's number carries.
    carried: Option<ParcelRowId>,
}

impl Ready {
    pub(super) fn new(changes: Changes, number_key: &NumberKey) -> serde_json::Result<Self> {
        let orders = changes.ops.iter().filter_map(|op| match op {
            Op::InsertParcel(parcel) => Some(ReadyOrder::new(parcel, number_key)),
            Op::Move { .. }
            | Op::AddEvent { .. }
            | Op::RecordCarrierEvent(_)
            | Op::LogCarrierException(_)
            | Op::InsertManifest(_)
            | Op::Schedule { .. }
            | Op::CancelSteps { .. }
            | Op::Reprint { .. }
            | Op::InsertMail(_) => None,
        });
        let orders = orders.collect::<Result<_, _>>()?;
        Ok(Self { changes, orders })
    }

    /// Whether an idempotency record is among them.
    pub(super) const fn keeps_record(&self) -> bool {
        self.changes.idempotency_record.is_some()
    }

    /// How many orders are among them.
    pub(super) fn orders(&self) -> usize {
        self.orders.len()
    }
}

impl ReadyOrder {
    fn new(parcel: &NewParcel, number_key: &NumberKey) -> serde_json::Result<Self> {
        let carried = number_key.row_of(parcel.tenant.environment, &parcel.tracking_number);
        Ok(Self { json: StoredOrder::to_json(&parcel.order)?, carried })
    }
}

/// Applies all of it, or says what forbids it; and whether the outbox has something new.
pub(super) fn apply(
    db: &Connection,
    keys: &LivingKeys,
    ready: &Ready,
    pending: &mut Pending,
) -> rusqlite::Result<(CommitOutcome, bool)> {
    let changes = &ready.changes;
    let mut dead = None;
    if let Some(record) = &changes.idempotency_record {
        // Another process may have kept one since the last write.
        keys.catch_up(db)?;
        match records::find(db, keys, &record.key)? {
            Some((_, found)) if is_alive(found.first_seen, changes.now) => {
                return Ok((CommitOutcome::IdempotencyTaken(found), false));
            }
            found => dead = found.map(|(id, _)| id),
        }
    }
    for (parcel, version) in &changes.expect {
        if version_of(db, *parcel)? != Some(*version) {
            return Ok((CommitOutcome::VersionConflict, false));
        }
    }
    let (now, orders) = (changes.now, ready.orders.iter());
    let mut work = Application { db, pending, now, orders, enqueued: false };
    for op in &changes.ops {
        if let Some(refusal) = work.apply(op)? {
            return Ok((refusal, false));
        }
    }
    let enqueued = work.enqueued;
    #[cfg(test)]
    crate::store::tests::conformance::panic_if_asked(changes);
    if let Some(record) = &changes.idempotency_record {
        let number = pending.generation(db, record.tenant)?;
        keep_record((db, keys), (record, number), dead)?;
    }
    Ok((CommitOutcome::Committed, enqueued))
}

/// Keeps the record, in the place of a dead one.
fn keep_record(
    (db, keys): (&Connection, &LivingKeys),
    record: (&IdempotencyRecord, i64),
    dead: Option<i64>,
) -> rusqlite::Result<()> {
    if let Some(id) = dead {
        records::delete(db, id)?;
    }
    records::insert(db, keys, record)?;
    keys.write_chunks(db)
}

fn version_of(db: &Connection, parcel: ParcelRowId) -> rusqlite::Result<Option<Version>> {
    let mut find = db.prepare_cached(concat!(
        "SELECT version FROM parcels WHERE id = ?1 AND ",
        is_current!("tenant")
    ))?;
    find.query_row([parcel.0], |row| row.get(0).map(Version)).optional()
}

/// Operations on their way into the database.
struct Application<'a> {
    db: &'a Connection,
    pending: &'a mut Pending,
    now: Millis,
    /// Of the parcels that are still to be inserted.
    orders: std::slice::Iter<'a, ReadyOrder>,
    /// Whether an event was enqueued.
    enqueued: bool,
}

impl Application<'_> {
    /// Applies one operation, or says what forbids it.
    fn apply(&mut self, op: &Op) -> rusqlite::Result<Option<CommitOutcome>> {
        let db = self.db;
        let (done, refusal) = match op {
            Op::InsertParcel(parcel) => return self.insert_parcel(parcel),
            Op::Move { parcel, event } => {
                (self.move_to(*parcel, event)?, CommitOutcome::VersionConflict)
            }
            Op::AddEvent { parcel, event } => {
                (add(db, *parcel, event)?, CommitOutcome::VersionConflict)
            }
            Op::RecordCarrierEvent(event) => {
                (carriers::see(db, event)?, CommitOutcome::DuplicateCarrierEvent)
            }
            Op::LogCarrierException(exception) => {
                let number = self.pending.generation(db, exception.tenant)?;
                carriers::log(db, exception, number)?;
                return Ok(None);
            }
            Op::Schedule { parcel, step } => {
                (schedule(db, *parcel, Some(*step))?, CommitOutcome::VersionConflict)
            }
            Op::InsertManifest(manifest) => {
                (self.insert_manifest(manifest)?, CommitOutcome::DuplicateAwb)
            }
            Op::CancelSteps { parcel } => {
                (schedule(db, *parcel, None)?, CommitOutcome::VersionConflict)
            }
            Op::Reprint { parcel, at } => {
                (reprint(db, *parcel, *at)?, CommitOutcome::VersionConflict)
            }
            Op::InsertMail(mail) => {
                mails::insert(db, mail)?;
                return Ok(None);
            }
        };
        Ok((!done).then_some(refusal))
    }

    fn insert_parcel(&mut self, parcel: &NewParcel) -> rusqlite::Result<Option<CommitOutcome>> {
        let ready = self.orders.next();
        let (order, carried) = ready.map_or(("", None), |one| (one.json.as_str(), one.carried));
        let number = NumberLookup::new(parcel.tenant.environment, &parcel.tracking_number, carried);
        // Given and generated numbers are one set, though only the former are in the index: each of either is asked
        // for in both. It is decided here, where one write comes after the other.
        if number.is_taken(self.db, parcel.row)? {
            return Ok(Some(CommitOutcome::DuplicateTracking));
        }
        let tenant = self.pending.generation(self.db, parcel.tenant)?;
        if !add_parcel(self.db, (parcel, tenant), (order, number.carries(parcel.row)))? {
            return Ok(Some(CommitOutcome::StaleRow));
        }
        self.pending.counts.created(parcel, tenant);
        if let Some(subscription) = self.pending.subscription(self.db, parcel.tenant)? {
            let parcel = (parcel, parcel.row.0);
            self.enqueued |= outbox::enqueue_creation(self.db, subscription, parcel, self.now)?;
        }
        Ok(None)
    }

    fn move_to(&mut self, parcel: ParcelRowId, event: &Event) -> rusqlite::Result<bool> {
        let before = outbox::transition_subject(self.db, parcel)?;
        let counted = counts::place(self.db, parcel)?;
        if !move_to(self.db, parcel, event)? {
            return Ok(false);
        }
        if let Some(counted) = counted {
            self.pending.counts.moved(counted, event.state);
        }
        if let Some(before) = before {
            self.enqueued |= outbox::enqueue_move(self.db, &before, (parcel, event), self.now)?;
        }
        Ok(true)
    }

    fn insert_manifest(&mut self, manifest: &NewManifest) -> rusqlite::Result<bool> {
        let number = self.pending.generation(self.db, manifest.tenant)?;
        let Some(row) = manifests::insert(self.db, manifest, number)? else { return Ok(false) };
        if let Some(subscription) = self.pending.subscription(self.db, manifest.tenant)? {
            let manifest = (manifest, row);
            self.enqueued |= outbox::enqueue_manifest(self.db, subscription, manifest, self.now)?;
        }
        Ok(true)
    }
}

/// Inserts the parcel with its order into the generation with this number, and says whether its tracking number carries its
/// row; false when a search would not find it, since its index has passed the row.
fn add_parcel(
    db: &Connection,
    (parcel, tenant): (&NewParcel, i64),
    (order, carries_row): (&str, bool),
) -> rusqlite::Result<bool> {
    let mut insert = db.prepare_cached(
        "INSERT INTO parcels (id, version, tenant, environment, number, public_id, state, created_at, \
         updated_at, origin, destination, country, promised_day, label_version, last_sequence, \
         step_index, step_due, order_json, number_is_indexed, external_order_id) \
         SELECT ?1, 1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?9, ?10, ?11, 1, 2, ?12, ?13, ?14, ?15, ?16 \
         WHERE ?1 > (SELECT next FROM term_sweep) \
         ON CONFLICT DO NOTHING",
    )?;
    let inserted = insert.execute(params![
        parcel.row.0,
        tenant,
        parcels::environment(parcel.tenant.environment),
        parcel.tracking_number.as_str(),
        parcel.id.to_bytes(),
        State::LabelGenerated.number(),
        parcel.created_at.0,
        parcel.origin,
        parcel.destination,
        parcel.country.as_str(),
        parcel.promised_day,
        parcel.step.map(|step| step.index),
        parcel.step.map(|step| step.due.0),
        order,
        !carries_row,
        parcel.order.external_order_id,
    ])?;
    Ok(inserted == 1)
}

fn move_to(db: &Connection, parcel: ParcelRowId, event: &Event) -> rusqlite::Result<bool> {
    let mut update = db.prepare_cached(concat!(
        "UPDATE parcels SET version = version + 1, state = ?2, updated_at = ?3, last_sequence = ?4 \
         WHERE id = ?1 AND last_sequence < ?4 AND ",
        is_current!("tenant")
    ))?;
    let (state, at, sequence) = (event.state.number(), event.at.0, event.sequence);
    let moved = update.execute(params![parcel.0, state, at, sequence])?;
    Ok(moved == 1 && insert_event(db, parcel, event)?)
}

/// A late event leaves `updated_at` where it is.
fn add(db: &Connection, parcel: ParcelRowId, event: &Event) -> rusqlite::Result<bool> {
    let mut update = db.prepare_cached(concat!(
        "UPDATE parcels SET version = version + 1, updated_at = max(updated_at, ?2), \
         last_sequence = ?3 WHERE id = ?1 AND last_sequence < ?3 AND ",
        is_current!("tenant")
    ))?;
    let updated = update.execute(params![parcel.0, event.at.0, event.sequence])?;
    Ok(updated == 1 && insert_event(db, parcel, event)?)
}

fn insert_event(db: &Connection, parcel: ParcelRowId, event: &Event) -> rusqlite::Result<bool> {
    let mut insert = db.prepare_cached(
        "INSERT INTO events (parcel, sequence, state, at, location, description) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
    )?;
    let written = insert.execute(params![
        parcel.0,
        event.sequence,
        event.state.number(),
        event.at.0,
        event.location,
        event.description
    ])?;
    Ok(written == 1)
}

fn schedule(db: &Connection, parcel: ParcelRowId, step: Option<Step>) -> rusqlite::Result<bool> {
    let mut update = db.prepare_cached(
        "UPDATE parcels SET version = version + 1, step_index = ?2, step_due = ?3 WHERE id = ?1",
    )?;
    let (index, due) = (step.map(|step| step.index), step.map(|step| step.due.0));
    Ok(update.execute(params![parcel.0, index, due])? == 1)
}

fn reprint(db: &Connection, parcel: ParcelRowId, at: Millis) -> rusqlite::Result<bool> {
    let mut update = db.prepare_cached(
        "UPDATE parcels SET version = version + 1, label_version = label_version + 1, \
         reprinted_at = ?2 WHERE id = ?1",
    )?;
    Ok(update.execute(params![parcel.0, at.0])? == 1)
}
