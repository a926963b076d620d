//! Changes as SQL, one after the other, inside the transaction of their group. Their idempotency record is kept
//! already; what is left are versions, and then the operations.

use std::collections::HashMap;

use tokio_postgres::types::ToSql;

use super::{
    carriers,
    connection::{Connection, get},
    counts::Counts,
    erase,
    error::DbResult,
    locks::Locked,
    manifests,
    outbox::{self, Subject, Subscriptions},
    parcels,
};
use crate::{
    clock::Millis,
    domain::{
        Changes, Event, NewManifest, NewParcel, Op, ParcelRowId, State, Step, Version,
        webhooks::{self, OutboxEvent},
    },
    store::CommitOutcome,
};

/// What became of changes.
pub(super) enum Applied {
    /// All of them are written.
    Whole { has_enqueued: bool },
    /// They are refused. What they have written, if anything, is to be undone.
    Refused { outcome: CommitOutcome, has_written: bool },
}

/// A transaction's view of what its changes are about.
pub(super) struct Application<'a> {
    db: &'a Connection,
    locked: HashMap<ParcelRowId, Locked>,
    pub(super) subscriptions: Subscriptions,
    pub(super) counts: Counts,
}

/// How far one mutation has come.
struct Progress<'m> {
    now: Millis,
    orders: std::slice::Iter<'m, String>,
    has_enqueued: bool,
    has_written: bool,
}

impl<'a> Application<'a> {
    pub(super) fn new(db: &'a Connection, locked: HashMap<ParcelRowId, Locked>) -> Self {
        Self { db, locked, subscriptions: Subscriptions::default(), counts: Counts::default() }
    }

    pub(super) async fn apply(
        &mut self,
        changes: &Changes,
        orders: &[String],
    ) -> DbResult<Applied> {
        let mut work = Progress {
            now: changes.now,
            orders: orders.iter(),
            has_enqueued: false,
            has_written: false,
        };
        for (parcel, version) in &changes.expect {
            if self.version_of(*parcel) != Some(*version) {
                let outcome = CommitOutcome::VersionConflict;
                return Ok(Applied::Refused { outcome, has_written: false });
            }
        }
        for op in &changes.ops {
            let (is_done, outcome) = self.apply_one(op, &mut work).await?;
            if !is_done {
                return Ok(Applied::Refused { outcome, has_written: work.has_written });
            }
            work.has_written = true;
        }
        Ok(Applied::Whole { has_enqueued: work.has_enqueued })
    }

    fn version_of(&self, parcel: ParcelRowId) -> Option<Version> {
        self.locked.get(&parcel).map(|locked| locked.version)
    }

    /// Applies one operation; answers whether it was possible, and what forbids it if not.
    async fn apply_one(
        &mut self,
        op: &Op,
        work: &mut Progress<'_>,
    ) -> DbResult<(bool, CommitOutcome)> {
        Ok(match op {
            Op::InsertParcel(parcel) => {
                (self.insert_parcel(parcel, work).await?, CommitOutcome::DuplicateTracking)
            }
            Op::Move { parcel, event } => {
                (self.move_to(*parcel, event, work).await?, CommitOutcome::VersionConflict)
            }
            Op::AddEvent { parcel, event } => {
                (self.add(*parcel, event, work).await?, CommitOutcome::VersionConflict)
            }
            Op::RecordCarrierEvent(event) => {
                (carriers::see(self.db, event).await?, CommitOutcome::DuplicateCarrierEvent)
            }
            Op::LogCarrierException(exception) => {
                carriers::log(self.db, exception).await?;
                (true, CommitOutcome::Committed)
            }
            Op::InsertManifest(manifest) => {
                (self.insert_manifest(manifest, work).await?, CommitOutcome::DuplicateAwb)
            }
            Op::Schedule { parcel, step } => {
                (self.schedule(*parcel, Some(*step)).await?, CommitOutcome::VersionConflict)
            }
            Op::CancelSteps { parcel } => {
                (self.schedule(*parcel, None).await?, CommitOutcome::VersionConflict)
            }
            Op::Reprint { parcel, at } => {
                (self.reprint(*parcel, *at).await?, CommitOutcome::VersionConflict)
            }
        })
    }

    async fn insert_parcel(
        &mut self,
        parcel: &NewParcel,
        work: &mut Progress<'_>,
    ) -> DbResult<bool> {
        let order = work.orders.next().map_or("", String::as_str);
        let id = parcel.row.0;
        let mut epoch = insert_parcel(self.db, id, parcel, order).await?;
        if epoch.is_none() {
            let number = (parcel.tenant.environment, &parcel.tracking_number);
            if !erase::free_number(self.db, number).await? {
                return Ok(false);
            }
            epoch = insert_parcel(self.db, id, parcel, order).await?;
        }
        let Some(epoch) = epoch else { return Ok(false) };
        self.counts.add(&Locked::new_parcel(parcel, epoch), 1);
        self.subscriptions.load(self.db, vec![parcel.tenant]).await?;
        let Some(subscription) = self.subscriptions.of_tenant(parcel.tenant) else {
            return Ok(true);
        };
        let subject = Subject { parcel: Some(id), manifest: None };
        for event in webhooks::of_creation(subscription.kinds, parcel) {
            let whose = (parcel.tenant, subscription);
            outbox::enqueue(self.db, whose, (subject, &event), work.now).await?;
            work.has_enqueued = true;
        }
        Ok(true)
    }

    async fn move_to(
        &mut self,
        parcel: ParcelRowId,
        event: &Event,
        work: &mut Progress<'_>,
    ) -> DbResult<bool> {
        let Some(before) = self.locked.get(&parcel).cloned() else { return Ok(false) };
        let sql = "UPDATE parcels SET version = version + 1, state = $2, updated_at = $3, \
             last_sequence = $4 WHERE id = $1";
        let (state, sequence) = (i16::from(event.state.number()), i64::from(event.sequence));
        let update: [&(dyn ToSql + Sync); 4] = [&parcel.0, &state, &event.at.0, &sequence];
        let (_moved, is_new) = futures_util::future::try_join(
            self.db.execute(sql, &update),
            insert_event(self.db, parcel, event),
        )
        .await?;
        work.has_written = true;
        if !is_new {
            return Ok(false);
        }
        self.counts.add(&before, -1);
        self.written(parcel, Some(event.state));
        if let Some(after) = self.locked.get(&parcel) {
            self.counts.add(after, 1);
        }
        self.subscriptions.load(self.db, vec![before.tenant]).await?;
        let Some(subscription) = self.subscriptions.of_tenant(before.tenant) else {
            return Ok(true);
        };
        let subject = Subject { parcel: Some(parcel.0), manifest: None };
        let events: Vec<OutboxEvent> =
            webhooks::of_move(subscription.kinds, before.id, before.state, event);
        for event in &events {
            let whose = (before.tenant, subscription);
            outbox::enqueue(self.db, whose, (subject, event), work.now).await?;
            work.has_enqueued = true;
        }
        Ok(true)
    }

    /// A late event leaves `updated_at` where it is.
    async fn add(
        &mut self,
        parcel: ParcelRowId,
        event: &Event,
        work: &mut Progress<'_>,
    ) -> DbResult<bool> {
        if !self.locked.contains_key(&parcel) {
            return Ok(false);
        }
        let sql = "UPDATE parcels SET version = version + 1, \
             updated_at = greatest(updated_at, $2), last_sequence = $3 WHERE id = $1";
        let sequence = i64::from(event.sequence);
        let update: [&(dyn ToSql + Sync); 3] = [&parcel.0, &event.at.0, &sequence];
        let (_updated, is_new) = futures_util::future::try_join(
            self.db.execute(sql, &update),
            insert_event(self.db, parcel, event),
        )
        .await?;
        work.has_written = true;
        self.written(parcel, None);
        Ok(is_new)
    }

    async fn schedule(&mut self, parcel: ParcelRowId, step: Option<Step>) -> DbResult<bool> {
        if !self.locked.contains_key(&parcel) {
            return Ok(false);
        }
        let sql = "UPDATE parcels SET version = version + 1, step_index = $2, step_due = $3 \
             WHERE id = $1";
        let index = step.map(|step| i16::from(step.index));
        self.db.execute(sql, &[&parcel.0, &index, &step.map(|step| step.due.0)]).await?;
        self.written(parcel, None);
        Ok(true)
    }

    async fn reprint(&mut self, parcel: ParcelRowId, at: Millis) -> DbResult<bool> {
        if !self.locked.contains_key(&parcel) {
            return Ok(false);
        }
        let sql = "UPDATE parcels SET version = version + 1, label_version = label_version + 1, \
             reprinted_at = $2 WHERE id = $1";
        self.db.execute(sql, &[&parcel.0, &at.0]).await?;
        self.written(parcel, None);
        Ok(true)
    }

    /// Later changes of the group meet the parcel as it is now.
    fn written(&mut self, parcel: ParcelRowId, state: Option<State>) {
        if let Some(locked) = self.locked.get_mut(&parcel) {
            locked.version.0 += 1;
            locked.state = state.unwrap_or(locked.state);
        }
    }

    async fn insert_manifest(
        &mut self,
        manifest: &NewManifest,
        work: &mut Progress<'_>,
    ) -> DbResult<bool> {
        let Some(row) = manifests::insert(self.db, manifest).await? else { return Ok(false) };
        self.subscriptions.load(self.db, vec![manifest.tenant]).await?;
        let Some(subscription) = self.subscriptions.of_tenant(manifest.tenant) else {
            return Ok(true);
        };
        let subject = Subject { parcel: None, manifest: Some(row) };
        if let Some(event) = webhooks::of_manifest(subscription.kinds, manifest) {
            let whose = (manifest.tenant, subscription);
            outbox::enqueue(self.db, whose, (subject, &event), work.now).await?;
            work.has_enqueued = true;
        }
        Ok(true)
    }
}

/// Inserts the parcel and answers its epoch; none when its number is taken.
async fn insert_parcel(
    db: &Connection,
    id: i64,
    parcel: &NewParcel,
    order: &str,
) -> DbResult<Option<i64>> {
    let sql = "INSERT INTO parcels (id, version, tenant, epoch, environment, number, public_id, \
         state, created_at, updated_at, origin, destination, country, promised_day, label_version, \
         last_sequence, step_index, step_due, external_order_id, order_json) \
         VALUES ($1, 1, $2, coalesce((SELECT r.epoch FROM resets AS r WHERE r.tenant = $2), 0), \
         $3, $4, $5, $6, $7, $7, $8, $9, $10, $11, 1, 2, $12, $13, $14, $15) \
         ON CONFLICT DO NOTHING RETURNING epoch";
    let id_bytes = parcel.id.to_bytes();
    let given: [&(dyn ToSql + Sync); 15] = [
        &id,
        &parcel.tenant.number(),
        &parcels::environment(parcel.tenant.environment),
        &parcel.tracking_number.as_str(),
        &id_bytes.as_slice(),
        &i16::from(State::LabelGenerated.number()),
        &parcel.created_at.0,
        &parcel.origin,
        &parcel.destination,
        &parcel.country.as_str(),
        &parcel.promised_day,
        &parcel.step.map(|step| i16::from(step.index)),
        &parcel.step.map(|step| step.due.0),
        &parcel.order.external_order_id,
        &order,
    ];
    db.first(sql, &given).await?.map(|row| get(&row, 0)).transpose()
}

async fn insert_event(db: &Connection, parcel: ParcelRowId, event: &Event) -> DbResult<bool> {
    let sql = "INSERT INTO events (parcel, sequence, state, at, location, description) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
    let given: [&(dyn ToSql + Sync); 6] = [
        &parcel.0,
        &i64::from(event.sequence),
        &i16::from(event.state.number()),
        &event.at.0,
        &event.location,
        &event.description,
    ];
    Ok(db.execute(sql, &given).await? == 1)
}
