//! The sandbox's due steps: taken before a parcel is read, by the ticker, and by a clock that is
//! moved. Each has its scheduled time, so it makes no difference who takes it, or when.

use parcelo::{ParcelStatus, TrackingNumber};

use super::{Refusal, Service, failed};
use crate::{
    clock::Millis,
    core::{Changes, Op, ParcelRow, Step, Tenant, scenario},
    store::Commit,
};

/// Parcels whose steps are taken in one commit: many share what it costs, and who waits for the writer
/// does not wait long.
const BATCH: usize = 256;
/// How often a decision is made anew when others write the same parcel.
const TRIES: u32 = 8;

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
    /// Takes every step that is due, earliest first, and tells what happened.
    pub async fn take_due_steps(&self) -> Result<Vec<Fired>, Refusal> {
        let now = self.now();
        let mut fired = Vec::new();
        loop {
            let due = self.store.due(now, BATCH)?;
            if due.is_empty() {
                return Ok(fired);
            }
            fired.extend(self.take_steps(&due, now).await?);
        }
    }

    /// Takes every step of a tenant's parcels that is due at `now`.
    pub(super) async fn take_due_steps_of(
        &self,
        tenant: Tenant,
        now: Millis,
    ) -> Result<(), Refusal> {
        loop {
            let due = self.store.due_of(tenant, now, BATCH)?;
            if due.is_empty() {
                return Ok(());
            }
            self.take_steps(&due, now).await?;
        }
    }

    /// When the next step falls due.
    pub fn next_due(&self) -> Result<Option<Millis>, Refusal> {
        Ok(self.store.next_due()?)
    }

    /// The parcel after all its due steps.
    pub(super) async fn up_to_date(&self, mut parcel: ParcelRow) -> Result<ParcelRow, Refusal> {
        let now = self.now();
        let mut tries = 0;
        while due_step(&parcel, now).is_some() {
            tries += 1;
            if tries > TRIES * 2 {
                return Err(Refusal::unavailable());
            }
            self.take_step(&parcel, now).await?;
            let again = self.store.parcel(parcel.tenant.environment, &parcel.tracking_number)?;
            parcel = again.ok_or(parcelo::ErrorCode::ParcelNotFound)?;
        }
        Ok(parcel)
    }

    /// Takes the next step of each parcel, in their order: in one commit if nothing forbids it.
    /// Otherwise each has its own, so that one parcel holds up none before it.
    pub(super) async fn take_steps(
        &self,
        parcels: &[ParcelRow],
        now: Millis,
    ) -> Result<Vec<Fired>, Refusal> {
        if let Some(fired) = self.take_together(parcels, now).await {
            return Ok(fired);
        }
        let mut fired = Vec::new();
        for parcel in parcels {
            fired.extend(self.take_step(parcel, now).await?);
        }
        Ok(fired)
    }

    async fn take_together(&self, parcels: &[ParcelRow], now: Millis) -> Option<Vec<Fired>> {
        let mut changes = Changes { now, replay: None, expect: Vec::new(), ops: Vec::new() };
        let mut all = Vec::new();
        for parcel in parcels {
            let Some(step) = due_step(parcel, now) else { continue };
            let ops = scenario::take_step(parcel, step);
            all.extend(fired(parcel, &ops));
            changes.expect.push((parcel.key, parcel.version));
            changes.ops.extend(ops);
        }
        (self.store.commit(changes).await == Commit::Committed).then_some(all)
    }

    /// Takes the parcel's next step if it is due. That somebody else was faster is fine.
    async fn take_step(&self, parcel: &ParcelRow, now: Millis) -> Result<Option<Fired>, Refusal> {
        let Some(step) = due_step(parcel, now) else { return Ok(None) };
        let ops = scenario::take_step(parcel, step);
        let fired = fired(parcel, &ops);
        let expect = vec![(parcel.key, parcel.version)];
        match self.store.commit(Changes { now, replay: None, expect, ops }).await {
            Commit::Committed => Ok(fired),
            Commit::VersionConflict => Ok(None),
            outcome => Err(failed(&outcome)),
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
        | Op::CarrierSeen(_)
        | Op::Exception(_)
        | Op::InsertManifest(_)
        | Op::Schedule { .. }
        | Op::CancelSteps { .. }
        | Op::Reprint { .. } => None,
    })
}
