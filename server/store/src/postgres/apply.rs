//! Applies changes inside the transaction of their group, in order. Their idempotency record is already written, and
//! their parcels are locked. The versions are checked first, then each operation. New states of locked parcels are
//! computed in memory; [`Application::flush`] writes them with one statement for each table, whatever the number of
//! parcels.

use std::collections::{BTreeSet, HashMap, HashSet};

use parcelo_domain::{
    Changes, Event, IdempotencyRecord, Millis, NewManifest, NewParcel, ParcelRowId, Step, StoreOp,
    Tenant, create::redraw_tracking_number, mail::NewMail, webhooks,
};
use tokio_postgres::types::ToSql;

use super::{
    connection::{Connection, column, get, number},
    counts::CountChanges,
    creates,
    error::DbResult,
    generations::Generations,
    locks::{self, LockedParcel},
    outbox::Subscriptions,
    records,
};
use crate::{
    CommitOutcome, carriers, erase, manifests, new_mails, number_taken,
    outbox::{self, ChangeOrigin, NewEvent, Subject},
    sql::Sql,
};

/// The outcome of applying changes.
pub(super) enum ApplyOutcome {
    /// All changes are written.
    Applied { has_enqueued: bool },
    /// The changes are refused. Anything that they have written must be undone.
    Refused { outcome: CommitOutcome, has_written: bool },
}

/// A transaction's view of the rows that its changes concern.
pub(super) struct Application<'a> {
    pub(super) db: &'a Connection,
    pub(super) generations: Generations,
    /// The parcels as the transaction leaves them.
    locked: HashMap<ParcelRowId, LockedParcel>,
    pub(super) subscriptions: Subscriptions,
    pub(super) counts: CountChanges,
    /// The parcels in `locked` that are not written yet.
    changed: BTreeSet<ParcelRowId>,
    /// Events of histories that are not written yet, each with the position of its write.
    histories: Vec<(usize, ParcelRowId, Event)>,
    /// Events of webhooks that are not written yet.
    events: Vec<NewEvent>,
    /// E-mails that are not written yet.
    mails: Vec<NewMail>,
}

/// The progress of one mutation.
struct Progress<'m> {
    /// The position of its write.
    at: usize,
    origin: ChangeOrigin,
    /// The idempotency record of the changes, which is already written.
    record: Option<&'m mut IdempotencyRecord>,
    has_enqueued: bool,
    has_written: bool,
}

impl<'a> Application<'a> {
    /// Creates the view. The caller has loaded the subscriptions of the locked parcels' tenants.
    pub(super) fn new(
        (db, generations): (&'a Connection, Generations),
        locked: HashMap<ParcelRowId, LockedParcel>,
        subscriptions: Subscriptions,
    ) -> Self {
        Self {
            db,
            generations,
            locked,
            subscriptions,
            counts: CountChanges::default(),
            changed: BTreeSet::new(),
            histories: Vec::new(),
            events: Vec::new(),
            mails: Vec::new(),
        }
    }

    /// Applies the changes of the write at a position.
    pub(super) async fn apply(
        &mut self,
        at: usize,
        changes: &mut Changes,
    ) -> DbResult<ApplyOutcome> {
        let mut progress = Progress {
            at,
            origin: ChangeOrigin::new(changes),
            record: changes.idempotency_record.as_mut(),
            has_enqueued: false,
            has_written: false,
        };
        for (parcel, version) in &changes.expect {
            if self.locked.get(parcel).map(|locked| locked.version) != Some(*version) {
                let outcome = CommitOutcome::VersionConflict;
                return Ok(ApplyOutcome::Refused { outcome, has_written: false });
            }
        }
        for op in &mut changes.ops {
            let (is_done, outcome) = self.apply_one(op, &mut progress).await?;
            if !is_done {
                return Ok(ApplyOutcome::Refused { outcome, has_written: progress.has_written });
            }
            progress.has_written = true;
        }
        Ok(ApplyOutcome::Applied { has_enqueued: progress.has_enqueued })
    }

    /// Writes the states that were computed in memory. If an event's sequence number is taken in its parcel's history,
    /// returns the position of that event's write, and the transaction must not be committed.
    pub(super) async fn flush(&mut self) -> DbResult<Option<usize>> {
        let (changed, histories) =
            (std::mem::take(&mut self.changed), std::mem::take(&mut self.histories));
        let changed: Vec<_> =
            changed.iter().filter_map(|parcel| Some((*parcel, self.locked.get(parcel)?))).collect();
        let (events, mails) = (std::mem::take(&mut self.events), std::mem::take(&mut self.mails));
        // The statements are sent without waiting for each other's answers.
        let mails = mails.iter().map(|mail| new_mails::insert(Sql::Postgres(self.db), mail));
        let ((), refused, (), _) = futures_util::future::try_join4(
            locks::write_parcels(self.db, &changed),
            insert_events(self.db, &histories),
            async { Ok(outbox::insert(Sql::Postgres(self.db), &events).await?) },
            async { Ok(futures_util::future::try_join_all(mails).await?) },
        )
        .await?;
        Ok(refused)
    }

    /// Applies one operation. Returns `true` if it was applied, or `false` with the reason for refusing it.
    async fn apply_one(
        &mut self,
        op: &mut StoreOp,
        progress: &mut Progress<'_>,
    ) -> DbResult<(bool, CommitOutcome)> {
        Ok(match op {
            StoreOp::InsertParcel(parcel) => {
                let taken = self.insert_parcel(parcel, progress).await?;
                (taken.is_none(), taken.unwrap_or(CommitOutcome::Committed))
            }
            StoreOp::Move { parcel, event } => {
                (self.move_to(*parcel, event, progress), CommitOutcome::VersionConflict)
            }
            StoreOp::AddEvent { parcel, event } => {
                (self.add_event(*parcel, event, progress), CommitOutcome::VersionConflict)
            }
            StoreOp::RecordCarrierEvent(event) => (
                carriers::record_accepted(Sql::Postgres(self.db), event).await?,
                CommitOutcome::DuplicateCarrierEvent,
            ),
            StoreOp::LogCarrierException(exception) => {
                let tenant = self.generations.storage_tenant_id(exception.tenant);
                carriers::log_exception(Sql::Postgres(self.db), (tenant, exception)).await?;
                (true, CommitOutcome::Committed)
            }
            StoreOp::InsertManifest(manifest) => {
                (self.insert_manifest(manifest, progress).await?, CommitOutcome::DuplicateAwb)
            }
            StoreOp::Schedule { parcel, step } => {
                (self.schedule(*parcel, Some(*step)), CommitOutcome::VersionConflict)
            }
            StoreOp::CancelSteps { parcel } => {
                (self.schedule(*parcel, None), CommitOutcome::VersionConflict)
            }
            StoreOp::Reprint { parcel, at } => {
                (self.reprint(*parcel, *at), CommitOutcome::VersionConflict)
            }
            StoreOp::InsertMail(mail) => {
                self.mails.push(*mail);
                (true, CommitOutcome::Committed)
            }
        })
    }

    /// Inserts a parcel. Returns the reason for refusing it, if any.
    async fn insert_parcel(
        &mut self,
        parcel: &mut NewParcel,
        progress: &mut Progress<'_>,
    ) -> DbResult<Option<CommitOutcome>> {
        let mut is_redrawn = false;
        let id = loop {
            if let Some(id) = self.insert_with_free_number(parcel).await? {
                break id;
            }
            if !redraw_tracking_number(parcel, progress.record.as_deref_mut()) {
                return Ok(Some(number_taken(parcel)));
            }
            is_redrawn = true;
        };
        if is_redrawn && let Some(record) = &progress.record {
            records::rewrite(self.db, &self.generations, record).await?;
        }
        self.subscriptions.load(self.db, "SHARE", vec![parcel.tenant]).await?;
        progress.has_enqueued |= self.record_created((id, parcel), progress.origin);
        Ok(None)
    }

    /// Inserts the parcel and returns its id, or `None` if its number is taken. A parcel of an ended generation loses
    /// its number to the new parcel.
    async fn insert_with_free_number(&self, parcel: &NewParcel) -> DbResult<Option<i64>> {
        if let Some(id) = creates::insert_one(self.db, &self.generations, parcel).await? {
            return Ok(Some(id));
        }
        let number = (parcel.tenant.environment, &parcel.tracking_number);
        erase::free_number(Sql::Postgres(self.db), number).await?;
        // Tried either way, because the parcel with the number may have been erased in between.
        creates::insert_one(self.db, &self.generations, parcel).await
    }

    /// Adds the events of an inserted parcel, whose count is written. Returns `true` if a webhook event is among them.
    /// The tenant's subscription must be loaded.
    pub(super) fn record_created(
        &mut self,
        (id, parcel): (i64, &NewParcel),
        origin: ChangeOrigin,
    ) -> bool {
        let subject = Subject { parcel: Some(id), manifest: None };
        let events = |kinds| webhooks::creation_events(kinds, parcel);
        self.enqueue((parcel.tenant, subject), events, origin)
    }

    /// Enqueues the events that the tenant's endpoint subscribes to. Returns `true` if there are any.
    fn enqueue<I>(
        &mut self,
        (tenant, subject): (Tenant, Subject),
        events: impl FnOnce(webhooks::WebhookEventKinds) -> I,
        origin: ChangeOrigin,
    ) -> bool
    where
        I: IntoIterator<Item = webhooks::OutboxEvent>,
    {
        let Some(subscription) = self.subscriptions.get(tenant) else { return false };
        let mut has_enqueued = false;
        for event in events(subscription.kinds) {
            let tenant = self.generations.storage_tenant_id(tenant);
            self.events.push(NewEvent { tenant, subscription, subject, event, origin });
            has_enqueued = true;
        }
        has_enqueued
    }

    /// Returns the parcel with its version increased, if the parcel is locked.
    fn next_version(&mut self, parcel: ParcelRowId) -> Option<&mut LockedParcel> {
        let locked = self.locked.get_mut(&parcel)?;
        locked.version.0 += 1;
        self.changed.insert(parcel);
        Some(locked)
    }

    /// Returns `true` if an event's sequence number is free in the history of a locked parcel. A taken number must be
    /// refused here: if only the INSERT at the end found it, the caller might get the reason for refusing a later
    /// operation.
    fn is_sequence_free(&self, parcel: ParcelRowId, event: &Event) -> bool {
        let locked = self.locked.get(&parcel);
        locked.is_some_and(|locked| i64::from(event.sequence) > locked.last_sequence)
    }

    fn move_to(&mut self, parcel: ParcelRowId, event: &Event, progress: &mut Progress<'_>) -> bool {
        if !self.is_sequence_free(parcel, event) {
            return false;
        }
        let Some(before) = self.locked.get(&parcel) else { return false };
        self.counts.add(before.count_key(), -1);
        let tenant = Tenant::from_number(before.tenant);
        let (id, previous) = (before.id, before.state);
        let Some(locked) = self.next_version(parcel) else { return false };
        locked.state = event.state;
        locked.updated_at = event.at;
        locked.last_sequence = event.sequence.into();
        let subject = Subject { parcel: Some(parcel.0), manifest: None };
        if let Some(after) = self.locked.get(&parcel) {
            self.counts.add(after.count_key(), 1);
        }
        self.histories.push((progress.at, parcel, event.clone()));
        let events = |kinds| webhooks::move_events(kinds, id, previous, event);
        progress.has_enqueued |= self.enqueue((tenant, subject), events, progress.origin);
        true
    }

    /// Adds an event to a parcel. An event that is older than `updated_at` leaves it unchanged.
    fn add_event(&mut self, parcel: ParcelRowId, event: &Event, progress: &Progress<'_>) -> bool {
        if !self.is_sequence_free(parcel, event) {
            return false;
        }
        let Some(locked) = self.next_version(parcel) else { return false };
        locked.updated_at = locked.updated_at.max(event.at);
        locked.last_sequence = event.sequence.into();
        self.histories.push((progress.at, parcel, event.clone()));
        true
    }

    fn schedule(&mut self, parcel: ParcelRowId, step: Option<Step>) -> bool {
        self.next_version(parcel).map(|locked| locked.step = step).is_some()
    }

    fn reprint(&mut self, parcel: ParcelRowId, at: Millis) -> bool {
        let Some(locked) = self.next_version(parcel) else { return false };
        locked.label_version += 1;
        locked.reprinted_at = Some(at);
        true
    }

    async fn insert_manifest(
        &mut self,
        manifest: &NewManifest,
        progress: &mut Progress<'_>,
    ) -> DbResult<bool> {
        let parcels = manifest.parcels.iter();
        let labels = parcels.filter_map(|parcel| {
            // Not read from the table, because a reprint by this group may not be written yet.
            Some((parcel.0, self.locked.get(parcel)?.label_version))
        });
        let labels: Vec<_> = labels.collect();
        let tenant = self.generations.storage_tenant_id(manifest.tenant);
        let inserted =
            manifests::insert(Sql::Postgres(self.db), (tenant, manifest), &labels).await?;
        let Some(row) = inserted else { return Ok(false) };
        self.subscriptions.load(self.db, "SHARE", vec![manifest.tenant]).await?;
        let subject = Subject { parcel: None, manifest: Some(row) };
        let events = |kinds| webhooks::manifest_event(kinds, manifest);
        progress.has_enqueued |= self.enqueue((manifest.tenant, subject), events, progress.origin);
        Ok(true)
    }
}

/// Inserts events into histories. Returns the position of the first write whose event has a taken sequence number.
async fn insert_events(
    db: &Connection,
    histories: &[(usize, ParcelRowId, Event)],
) -> DbResult<Option<usize>> {
    if histories.is_empty() {
        return Ok(None);
    }
    let parcels = column!(histories, (_, parcel, _) => parcel.0);
    let sequences = column!(histories, (_, _, event) => i64::from(event.sequence));
    let states = column!(histories, (_, _, event) => i16::from(event.state.number()));
    let times = column!(histories, (_, _, event) => event.at.0);
    let locations = column!(histories, (_, _, event) => event.location.as_str());
    let descriptions = column!(histories, (_, _, event) => event.description.as_deref());
    let sql = "INSERT INTO events (parcel, sequence, state, at, location, description) \
         SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::bigint[], \
         $5::text[], $6::text[]) ON CONFLICT DO NOTHING RETURNING parcel, sequence";
    let params: [&(dyn ToSql + Sync); 6] =
        [&parcels, &sequences, &states, &times, &locations, &descriptions];
    let inserted = db.query_map(sql, &params, |row| Ok((get(row, 0)?, number(row, 1)?))).await?;
    let mut inserted: HashSet<(i64, u32)> = inserted.into_iter().collect();
    // If two events have the same sequence number, the first gets it.
    let refused = histories.iter().find(|(_, parcel, event)| {
        let key = (parcel.0, event.sequence);
        !inserted.remove(&key)
    });
    Ok(refused.map(|(at, ..)| *at))
}
