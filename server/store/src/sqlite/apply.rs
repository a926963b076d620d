//! `Changes` as SQL. Checks run in this order: idempotency, versions, the operations. The first check that fails stops
//! the work, and the caller undoes the operations that were already applied. A refused creation has written nothing,
//! because the key is checked before the parcel is inserted, and its record is written last.

use parcelo_domain::{
    Changes, Event, IdempotencyRecord, Millis, NewManifest, NewParcel, ParcelRowId, State, Step,
    StoreOp, Version, create::redraw_tracking_number, idempotency::is_within_lifetime, webhooks,
};
use rusqlite::{Connection, OptionalExtension, params};

use super::{
    CommitOutcome, counts,
    key_index::KeyIndex,
    outbox::{self, TransitionSubject},
    pending::Pending,
    records,
};
use crate::{
    carriers, columns, erase,
    generations::is_current,
    manifests, new_mails, number_taken,
    outbox::{ChangeOrigin, Subject},
    sql::{Sql, poll_now},
};

/// Applies all changes, or returns the first refusal. The flag is `true` if the outbox has a new event.
pub(super) fn apply(
    db: &Connection,
    keys: &KeyIndex,
    changes: &mut Changes,
    pending: &mut Pending,
) -> rusqlite::Result<(CommitOutcome, bool)> {
    let mut expired = None;
    if let Some(record) = &changes.idempotency_record {
        // Another process may have written a record since the last write.
        keys.catch_up(db)?;
        match records::find(db, keys, &record.key)? {
            Some((_, found)) if is_within_lifetime(found.first_seen, changes.now) => {
                return Ok((CommitOutcome::IdempotencyTaken(found), false));
            }
            found => expired = found.map(|(id, _)| id),
        }
    }
    for (parcel, version) in &changes.expect {
        if version_of(db, *parcel)? != Some(*version) {
            return Ok((CommitOutcome::VersionConflict, false));
        }
    }
    let (origin, record) = (ChangeOrigin::new(changes), changes.idempotency_record.as_mut());
    let mut application = Application { db, pending, origin, record, has_enqueued: false };
    for op in &mut changes.ops {
        if let Some(refusal) = application.apply(op)? {
            return Ok((refusal, false));
        }
    }
    let has_enqueued = application.has_enqueued;
    #[cfg(test)]
    crate::tests::conformance::panic_if_requested(changes);
    if let Some(record) = &changes.idempotency_record {
        let number = pending.generation(db, record.tenant)?;
        // The new record replaces the expired one, if there is one.
        expired.map(|id| records::delete(db, id)).transpose()?;
        records::insert(db, keys, (record, number))?;
        keys.write_chunks(db)?;
    }
    Ok((CommitOutcome::Committed, has_enqueued))
}

fn version_of(db: &Connection, parcel: ParcelRowId) -> rusqlite::Result<Option<Version>> {
    let mut find = db.prepare_cached(concat!(
        "SELECT version FROM parcels WHERE id = ?1 AND ",
        is_current!("tenant")
    ))?;
    find.query_row([parcel.0], |row| row.get(0).map(Version)).optional()
}

/// Operations that are being applied.
struct Application<'a> {
    db: &'a Connection,
    pending: &'a mut Pending,
    origin: ChangeOrigin,
    /// The record that will be written with them.
    record: Option<&'a mut IdempotencyRecord>,
    /// `true` if an event was enqueued.
    has_enqueued: bool,
}

impl Application<'_> {
    /// Applies one operation, or returns the reason for refusing it.
    fn apply(&mut self, op: &mut StoreOp) -> rusqlite::Result<Option<CommitOutcome>> {
        let db = self.db;
        let (is_done, refusal) = match op {
            StoreOp::InsertParcel(parcel) => return self.insert_parcel(parcel),
            StoreOp::Move { parcel, event } => {
                (self.move_to(*parcel, event)?, CommitOutcome::VersionConflict)
            }
            StoreOp::AddEvent { parcel, event } => {
                (add_event(db, *parcel, event)?, CommitOutcome::VersionConflict)
            }
            StoreOp::RecordCarrierEvent(event) => (
                poll_now(carriers::record_accepted(Sql::Sqlite(db), event))?,
                CommitOutcome::DuplicateCarrierEvent,
            ),
            StoreOp::LogCarrierException(exception) => {
                let number = self.pending.generation(db, exception.tenant)?;
                poll_now(carriers::log_exception(Sql::Sqlite(db), (number, exception)))?;
                return Ok(None);
            }
            StoreOp::Schedule { parcel, step } => {
                (schedule(db, *parcel, Some(*step))?, CommitOutcome::VersionConflict)
            }
            StoreOp::InsertManifest(manifest) => {
                (self.insert_manifest(manifest)?, CommitOutcome::DuplicateAwb)
            }
            StoreOp::CancelSteps { parcel } => {
                (schedule(db, *parcel, None)?, CommitOutcome::VersionConflict)
            }
            StoreOp::Reprint { parcel, at } => {
                (reprint(db, *parcel, *at)?, CommitOutcome::VersionConflict)
            }
            StoreOp::InsertMail(mail) => {
                poll_now(new_mails::insert(Sql::Sqlite(db), mail))?;
                return Ok(None);
            }
        };
        Ok((!is_done).then_some(refusal))
    }

    fn insert_parcel(&mut self, parcel: &mut NewParcel) -> rusqlite::Result<Option<CommitOutcome>> {
        let tenant = self.pending.generation(self.db, parcel.tenant)?;
        while !self.add_parcel(parcel, tenant)? {
            if !redraw_tracking_number(parcel, self.record.as_deref_mut()) {
                return Ok(Some(number_taken(parcel)));
            }
        }
        let row = self.db.last_insert_rowid();
        self.pending.counts.count_created(parcel, tenant);
        if let Some(subscription) = self.pending.subscription(self.db, parcel.tenant)? {
            let subject = Subject { parcel: Some(row), manifest: None };
            let events = webhooks::creation_events(subscription.kinds, parcel);
            let owner = (tenant, subscription);
            self.has_enqueued |= outbox::enqueue(self.db, owner, (subject, events), self.origin)?;
        }
        Ok(None)
    }

    /// Inserts the parcel into the generation with this number. Returns `false` if its tracking number is taken. A
    /// parcel of an ended generation gives the number up.
    fn add_parcel(&self, parcel: &NewParcel, tenant: i64) -> rusqlite::Result<bool> {
        let number = (parcel.tenant.environment, &parcel.tracking_number);
        let free_number = || poll_now(erase::free_number(Sql::Sqlite(self.db), number));
        Ok(add_parcel(self.db, parcel, tenant)?
            || free_number()? && add_parcel(self.db, parcel, tenant)?)
    }

    fn move_to(&mut self, parcel: ParcelRowId, event: &Event) -> rusqlite::Result<bool> {
        let before = outbox::transition_subject(self.db, parcel)?;
        let counted = counts::count_key(self.db, parcel)?;
        if !move_to(self.db, parcel, event)? {
            return Ok(false);
        }
        if let Some(counted) = counted {
            self.pending.counts.count_moved(counted, event.state);
        }
        if let Some(TransitionSubject { owner, id, state }) = before {
            let subject = Subject { parcel: Some(parcel.0), manifest: None };
            let events = webhooks::move_events(owner.1.kinds, id, state, event);
            self.has_enqueued |= outbox::enqueue(self.db, owner, (subject, events), self.origin)?;
        }
        Ok(true)
    }

    fn insert_manifest(&mut self, manifest: &NewManifest) -> rusqlite::Result<bool> {
        let number = self.pending.generation(self.db, manifest.tenant)?;
        let mut label = self.db.prepare_cached(
            "SELECT id, label_version FROM parcels WHERE id = ?1 AND tenant = ?2",
        )?;
        let mut labels = Vec::with_capacity(manifest.parcels.len());
        for parcel in &manifest.parcels {
            let found = label.query_row([parcel.0, number], |row| Ok((row.get(0)?, row.get(1)?)));
            labels.extend(found.optional()?);
        }
        let insert = manifests::insert(Sql::Sqlite(self.db), (number, manifest), &labels);
        let Some(row) = poll_now(insert)? else { return Ok(false) };
        if let Some(subscription) = self.pending.subscription(self.db, manifest.tenant)? {
            let subject = Subject { parcel: None, manifest: Some(row) };
            let event = webhooks::manifest_event(subscription.kinds, manifest);
            let owner = (number, subscription);
            self.has_enqueued |= outbox::enqueue(self.db, owner, (subject, event), self.origin)?;
        }
        Ok(true)
    }
}

/// Inserts the parcel with its order, after all rows that ever existed. Returns `false` if its tracking number is
/// taken.
fn add_parcel(db: &Connection, parcel: &NewParcel, tenant: i64) -> rusqlite::Result<bool> {
    let mut insert = db.prepare_cached(
        "INSERT INTO parcels (id, version, tenant, environment, number, public_id, state, created_at, \
         updated_at, origin, destination, country, promised_day, label_version, last_sequence, \
         step_index, step_due, order_json, external_order_id) \
         VALUES ((SELECT max(highest, coalesce((SELECT max(id) FROM parcels), 0)) + 1 FROM deleted_parcels), \
         1, ?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8, ?9, ?10, 1, 2, ?11, ?12, ?13, ?14) \
         ON CONFLICT (environment, number) DO NOTHING",
    )?;
    let inserted = insert.execute(params![
        tenant,
        columns::environment_number(parcel.tenant.environment),
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
        parcel.order,
        parcel.external_order_id,
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

/// Adds an event to a parcel. A late event leaves `updated_at` unchanged.
fn add_event(db: &Connection, parcel: ParcelRowId, event: &Event) -> rusqlite::Result<bool> {
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
