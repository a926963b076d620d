//! The sandbox's due steps. They are applied by the first of: a read of the parcel, the ticker, a clock that is
//! moved. Each carries its scheduled time, so the history is the same whichever applies it, and whenever.

use std::{collections::HashSet, sync::PoisonError};

use parcelo::{ParcelStatus, TrackingNumber};

use super::{Refusal, Service, refusal_for_commit};
use crate::{
    clock::Millis,
    domain::{Changes, Op, ParcelRow, ParcelRowId, Step, Tenant, Version, scenario},
    store::CommitOutcome,
};

/// Parcels whose steps are taken in one commit. They share one fsync, and an order waits behind
/// one such batch at most.
const MAX_PARCELS_PER_COMMIT: usize = 256;
/// How often a look that lost to another server's is repeated before each parcel is tried alone.
const MAX_LOST: u32 = 3;
/// How often a read looks for its parcel's next due step. A journey has four at most: the others are tries that lost
/// to another write of the same parcel.
const MAX_STEP_TRIES: u32 = 16;

/// A parcel as it was when a step of it was tried.
pub(super) type ParcelAtVersion = (ParcelRowId, Version);

/// What became of steps that were due.
pub(super) struct StepsTaken {
    pub(super) fired: Vec<Fired>,
    /// The parcels whose steps were not taken: another was faster, or they cannot be.
    pub(super) not_taken: Vec<ParcelAtVersion>,
}

/// Something that fell due and was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fired {
    /// When it was scheduled.
    pub at: Millis,
    /// The parcel.
    pub tracking_number: TrackingNumber,
    /// The status it reached.
    pub status: ParcelStatus,
}

impl Service {
    /// Takes every step that is due, earliest first, and returns what happened.
    pub async fn take_due_steps(&self) -> Result<Vec<Fired>, Refusal> {
        let now = self.now();
        self.take_due(now, None).await
    }

    /// Takes every step of a tenant's parcels that is due at `now`.
    pub(super) async fn take_due_steps_of(
        &self,
        tenant: Tenant,
        now: Millis,
    ) -> Result<(), Refusal> {
        self.take_due(now, Some(tenant)).await.map(drop)
    }

    /// Takes what is due, of one tenant or of all, until nothing is left but steps that cannot be taken,
    /// such as those of a damaged row. They are passed over, so that they hold up none behind them, and
    /// tried again the next time.
    async fn take_due(&self, now: Millis, tenant: Option<Tenant>) -> Result<Vec<Fired>, Refusal> {
        let (mut fired, mut stuck, mut lost) = (Vec::new(), HashSet::new(), 0);
        loop {
            let is_stuck = |parcel: &ParcelRow| stuck.contains(&(parcel.key, parcel.version));
            let most = MAX_PARCELS_PER_COMMIT + stuck.len();
            let found = match tenant {
                Some(tenant) => self.store.due_of(tenant, now, most).await?,
                None => self.store.due(now, most).await?,
            };
            let (again, batch): (Vec<_>, Vec<_>) = found.into_iter().partition(is_stuck);
            if batch.is_empty() {
                self.log_stuck(&again);
                return Ok(fired);
            }
            // Other servers have a ticker too, and all find the same parcels due. Whose commit comes second looks
            // again, rather than try each of the parcels that the first has taken.
            let taken = match self.take_together(&batch, now).await {
                (CommitOutcome::Committed, all) => StepsTaken { fired: all, not_taken: Vec::new() },
                (CommitOutcome::VersionConflict, _) if lost < MAX_LOST => {
                    lost += 1;
                    continue;
                }
                _ => self.take_one_by_one(&batch, now).await?,
            };
            lost = 0;
            fired.extend(taken.fired);
            // Where another was faster the version has moved on, and the parcel is tried again.
            stuck.extend(taken.not_taken);
        }
    }

    /// Says once, not at every look for due steps, that a parcel is stuck.
    fn log_stuck(&self, stuck: &[ParcelRow]) {
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

    /// When the next step after now falls due.
    pub async fn next_due(&self) -> Result<Option<Millis>, Refusal> {
        Ok(self.store.next_due(self.now()).await?)
    }

    /// The parcel after all its due steps.
    pub(super) async fn up_to_date(&self, mut parcel: ParcelRow) -> Result<ParcelRow, Refusal> {
        let now = self.now();
        let mut tries = 0;
        while due_step(&parcel, now).is_some() {
            tries += 1;
            if tries > MAX_STEP_TRIES {
                return Err(Refusal::unavailable());
            }
            self.take_step(&parcel, now).await?;
            let again =
                self.store.parcel(parcel.tenant.environment, &parcel.tracking_number).await?;
            parcel = again.ok_or(parcelo::ErrorCode::ParcelNotFound)?;
        }
        Ok(parcel)
    }

    /// Takes the next step of each parcel, in their order and in one commit: all of them or none. One parcel that
    /// was written meanwhile, or cannot be written, fails the commit of all.
    pub(super) async fn take_together(
        &self,
        parcels: &[ParcelRow],
        now: Millis,
    ) -> (CommitOutcome, Vec<Fired>) {
        let mut changes =
            Changes { now, idempotency_record: None, expect: Vec::new(), ops: Vec::new() };
        let mut all = Vec::new();
        for parcel in parcels {
            let Some(step) = due_step(parcel, now) else { continue };
            let ops = scenario::take_step(parcel, step);
            all.extend(fired(parcel, &ops));
            changes.expect.push((parcel.key, parcel.version));
            changes.ops.extend(ops);
        }
        (self.store.commit(changes).await, all)
    }

    /// The same in a commit for each, so that one parcel holds up no other. Which one it was the store does not say,
    /// so each is tried: slower, and rare.
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

    /// Takes the parcel's next step if it is due and can be taken. That another write was faster is
    /// fine, and so is that this one write failed: only a database that takes none ends it all.
    async fn take_step(&self, parcel: &ParcelRow, now: Millis) -> Result<Option<Fired>, Refusal> {
        let Some(step) = due_step(parcel, now) else { return Ok(None) };
        let ops = scenario::take_step(parcel, step);
        let fired = fired(parcel, &ops);
        let expect = vec![(parcel.key, parcel.version)];
        match self.store.commit(Changes { now, idempotency_record: None, expect, ops }).await {
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

fn fired(parcel: &ParcelRow, ops: &[Op]) -> Option<Fired> {
    ops.iter().find_map(|op| match op {
        Op::Move { event, .. } => Some(Fired {
            at: event.at,
            tracking_number: parcel.tracking_number.clone(),
            status: event.state.into(),
        }),
        Op::InsertParcel(_)
        | Op::AddEvent { .. }
        | Op::RecordCarrierEvent(_)
        | Op::LogCarrierException(_)
        | Op::InsertManifest(_)
        | Op::Schedule { .. }
        | Op::CancelSteps { .. }
        | Op::Reprint { .. }
        | Op::InsertMail(_) => None,
    })
}
