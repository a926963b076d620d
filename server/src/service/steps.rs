//! The sandbox's due steps: taken before a parcel is read, by the ticker, and by a clock that is
//! moved. Each has its scheduled time, so it makes no difference who takes it, or when.

use futures_util::future::try_join_all;
use parcelo::{ParcelStatus, TrackingNumber};

use super::{Refusal, Service, failed};
use crate::{
    clock::Millis,
    core::{Changes, Op, ParcelRow, Step, Tenant, scenario},
    store::Commit,
};

/// Parcels whose steps are read at once.
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
            for parcel in due {
                fired.extend(self.take_step(&parcel, now).await?);
            }
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
            // All at once, so that they share commits.
            try_join_all(due.iter().map(|parcel| self.take_step(parcel, now))).await?;
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parcelo::{Environment, Language, rules::check_list};

    use super::*;
    use crate::{
        clock::ManualClock,
        core::{Countries, sample},
        ids::Ids,
        mock::MockServer,
        service::{Caller, KeyIssuer, Keyed, NewKeyRequest},
        store::Store,
    };

    const START: Millis = Millis(1_768_057_500_000);

    /// A service whose clock moves and takes no step, with the caller of one key.
    async fn service() -> (Service, Arc<ManualClock>, Caller) {
        let (ids, clock) = (Arc::new(Ids::seeded(1)), Arc::new(ManualClock::at(START)));
        let settings = MockServer::start().await.api().service.settings().clone();
        let store = Store::memory([1; 32]).unwrap();
        let request = NewKeyRequest {
            account: "default".to_owned(),
            environment: Environment::Sandbox,
            name: "Test".to_owned(),
            countries: Countries::All,
            ip_list: Vec::new(),
            rate_limit: None,
        };
        let issuer = KeyIssuer { store: &store, secrets: &settings.secrets, ids: &ids };
        let (_, key) = issuer.issue(request, START).await.unwrap();
        let service = Service::new(store, clock.clone(), ids, settings);
        (service, clock, Caller { key: Arc::new(key) })
    }

    #[tokio::test]
    async fn what_is_due_is_done_before_a_list_or_a_manifest_is_decided() {
        let list = async |service: &Service, caller: &Caller| {
            let query = check_list([("status".into(), "CUSTOMS_CLEARANCE".into())]).unwrap();
            service.list_parcels(caller, &query, Language::En).await.unwrap().1.total
        };
        let submit = async |service: &Service, caller: &Caller| {
            let (body, request_id) = (&sample::manifest(), "req_1");
            let request = Keyed { body, header_key: None, request_id };
            service.submit_manifest(caller, request).await
        };
        for is_list_first in [true, false] {
            let (service, clock, caller) = service().await;
            service.create_order(&caller, &sample::order(), None).await.unwrap();
            assert_eq!(list(&service, &caller).await, 0);
            clock.set(START.plus(5 * Millis::MINUTE));
            if is_list_first {
                assert_eq!(list(&service, &caller).await, 1);
            }
            let refused = submit(&service, &caller).await.unwrap_err();
            assert_eq!(refused.code, parcelo::ErrorCode::ManifestParcelsRejected);
            assert_eq!(list(&service, &caller).await, 1);
        }
    }
}
