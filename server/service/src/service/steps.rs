//! The sandbox's due steps. They are taken by a read of the parcel, by the ticker, or when the clock is moved,
//! whichever comes first. Each step has its scheduled time, so the history does not depend on who takes it, or when.

use std::{collections::HashSet, sync::PoisonError};

use parcelo_domain::{
    Changes, Millis, ParcelRow, ParcelRowId, Step, StoreOp, Tenant, Version, scenario,
};
use parcelo_store::CommitOutcome;
use parcelo_types::{ParcelStatus, TrackingNumber};

use super::{Refusal, Service, refusal_for_commit};

/// Maximum number of parcels whose steps are taken in one commit. They share one fsync, and an order waits for one
/// such batch at most.
const MAX_PARCELS_PER_COMMIT: usize = 256;
/// Maximum number of batches in a row that lose to another server before each parcel is tried alone.
const MAX_LOST_BATCHES: u32 = 3;
/// Maximum number of steps that a read tries to take. A journey has at most four; the other tries are lost to
/// concurrent writes of the same parcel.
const MAX_STEP_TRIES: u32 = 16;

/// A parcel as it was when a step of it was tried.
pub(super) type ParcelAtVersion = (ParcelRowId, Version);

/// The result of taking due steps.
pub(super) struct StepsTaken {
    pub(super) fired: Vec<Fired>,
    /// The parcels whose steps were not taken, because another write came first or because they cannot be.
    pub(super) not_taken: Vec<ParcelAtVersion>,
}

/// A step of a simulated journey that fell due and was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fired {
    /// The time for which the step was scheduled.
    pub at: Millis,
    /// The parcel.
    pub tracking_number: TrackingNumber,
    /// The status that the parcel reached.
    pub status: ParcelStatus,
}

impl Service {
    /// Takes every step that is due, earliest first, and returns the steps that were taken.
    pub async fn take_due_steps(&self) -> Result<Vec<Fired>, Refusal> {
        let now = self.now();
        self.take_due(now, None).await
    }

    /// Takes every step of a tenant's parcels that is due at `now`.
    pub(super) async fn take_due_steps_for(
        &self,
        tenant: Tenant,
        now: Millis,
    ) -> Result<(), Refusal> {
        self.take_due(now, Some(tenant)).await.map(drop)
    }

    /// Takes the due steps of one tenant, or of all, until only those remain that cannot be taken, such as a damaged
    /// row's. They are skipped, so that they do not hold up others, and tried again the next time.
    async fn take_due(&self, now: Millis, tenant: Option<Tenant>) -> Result<Vec<Fired>, Refusal> {
        let (mut fired, mut stuck, mut lost) = (Vec::new(), HashSet::new(), 0);
        loop {
            let is_stuck = |parcel: &ParcelRow| stuck.contains(&(parcel.key, parcel.version));
            let limit = MAX_PARCELS_PER_COMMIT + stuck.len();
            let found = match tenant {
                Some(tenant) => self.store.due_for_tenant(tenant, now, limit).await?,
                None => self.store.due(now, limit).await?,
            };
            let (known_stuck, batch): (Vec<_>, Vec<_>) = found.into_iter().partition(is_stuck);
            if batch.is_empty() {
                self.log_stuck_parcels(&known_stuck);
                return Ok(fired);
            }
            // The tickers of all servers find the same parcels due. A server whose commit comes second looks again,
            // instead of trying each of the parcels that the first one has taken.
            let taken = match self.take_in_one_commit(&batch, now).await {
                (CommitOutcome::Committed, all) => StepsTaken { fired: all, not_taken: Vec::new() },
                (CommitOutcome::VersionConflict, _) if lost < MAX_LOST_BATCHES => {
                    lost += 1;
                    continue;
                }
                _ => self.take_one_by_one(&batch, now).await?,
            };
            lost = 0;
            fired.extend(taken.fired);
            // If another write came first, the parcel has a new version and is tried again.
            stuck.extend(taken.not_taken);
        }
    }

    /// Logs each stuck parcel once, although every run finds it again.
    fn log_stuck_parcels(&self, stuck: &[ParcelRow]) {
        let mut logged = self.stuck.lock().unwrap_or_else(PoisonError::into_inner);
        let stuck = stuck.iter().map(|parcel| (parcel.key, parcel.version));
        let new = stuck.filter(|parcel| logged.insert(*parcel)).count();
        if new > 0 {
            tracing::error!(
                parcels = new,
                "due steps could not be taken, perhaps because their rows are damaged; all other parcels continue"
            );
        }
    }

    /// Returns when the next step after now falls due.
    pub async fn next_step_due(&self) -> Result<Option<Millis>, Refusal> {
        Ok(self.store.next_due(self.now()).await?)
    }

    /// Returns the parcel after taking all its due steps.
    pub(super) async fn bring_up_to_date(
        &self,
        mut parcel: ParcelRow,
    ) -> Result<ParcelRow, Refusal> {
        let now = self.now();
        let mut tries = 0;
        while due_step(&parcel, now).is_some() {
            tries += 1;
            if tries > MAX_STEP_TRIES {
                return Err(Refusal::unavailable());
            }
            self.take_step(&parcel, now).await?;
            let reloaded =
                self.store.parcel(parcel.tenant.environment, &parcel.tracking_number).await?;
            parcel = reloaded.ok_or(parcelo_types::ErrorCode::ParcelNotFound)?;
        }
        Ok(parcel)
    }

    /// Takes the next step of each parcel, in the order given and in one commit: all of them or none. One parcel that
    /// was written meanwhile, or cannot be written, fails the whole commit.
    pub(super) async fn take_in_one_commit(
        &self,
        parcels: &[ParcelRow],
        now: Millis,
    ) -> (CommitOutcome, Vec<Fired>) {
        // The time causes the steps, even if a request takes them: they continue no trace.
        let mut changes = Changes {
            now,
            trace: None,
            idempotency_record: None,
            expect: Vec::new(),
            ops: Vec::new(),
        };
        let mut all = Vec::new();
        for parcel in parcels {
            let Some(step) = due_step(parcel, now) else { continue };
            let ops = scenario::take_step(parcel, step);
            all.extend(fired_step(parcel, &ops));
            changes.expect.push((parcel.key, parcel.version));
            changes.ops.extend(ops);
        }
        (self.store.commit(changes).await, all)
    }

    /// Takes the next step of each parcel in a separate commit, so that one parcel does not hold up the others. The
    /// store does not report which parcel failed a common commit, so all are tried. This is slower, and rare.
    pub(super) async fn take_one_by_one(
        &self,
        parcels: &[ParcelRow],
        now: Millis,
    ) -> Result<StepsTaken, Refusal> {
        let mut taken = StepsTaken { fired: Vec::new(), not_taken: Vec::new() };
        for parcel in parcels {
            match self.take_step(parcel, now).await? {
                Some(fired) => taken.fired.push(fired),
                None => taken.not_taken.push((parcel.key, parcel.version)),
            }
        }
        Ok(taken)
    }

    /// Takes the parcel's next step, if it is due and can be taken. Losing to another write, or failing to write this
    /// parcel, is not an error; only a database that rejects all writes is.
    async fn take_step(&self, parcel: &ParcelRow, now: Millis) -> Result<Option<Fired>, Refusal> {
        let Some(step) = due_step(parcel, now) else { return Ok(None) };
        let ops = scenario::take_step(parcel, step);
        let fired = fired_step(parcel, &ops);
        let expect = vec![(parcel.key, parcel.version)];
        let changes = Changes { now, trace: None, idempotency_record: None, expect, ops };
        match self.store.commit(changes).await {
            CommitOutcome::Committed => Ok(fired),
            CommitOutcome::VersionConflict => Ok(None),
            CommitOutcome::Broken if self.store.is_writable() => Ok(None),
            outcome => Err(refusal_for_commit(&outcome)),
        }
    }
}

fn due_step(parcel: &ParcelRow, now: Millis) -> Option<Step> {
    parcel.step.filter(|step| step.due <= now)
}

fn fired_step(parcel: &ParcelRow, ops: &[StoreOp]) -> Option<Fired> {
    ops.iter().find_map(|op| match op {
        StoreOp::Move { event, .. } => Some(Fired {
            at: event.at,
            tracking_number: parcel.tracking_number.clone(),
            status: event.state.into(),
        }),
        StoreOp::InsertParcel(_)
        | StoreOp::AddEvent { .. }
        | StoreOp::RecordCarrierEvent(_)
        | StoreOp::LogCarrierException(_)
        | StoreOp::InsertManifest(_)
        | StoreOp::Schedule { .. }
        | StoreOp::CancelSteps { .. }
        | StoreOp::Reprint { .. }
        | StoreOp::InsertMail(_) => None,
    })
}
