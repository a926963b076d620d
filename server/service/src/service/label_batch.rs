//! Label batches: many labels as one file (docs/api.md, Download many labels).

use std::sync::Arc;

use parcelo_domain::{Refusal, Tenant};
use parcelo_label::LabelLayout;
use parcelo_types::{
    Awb, ErrorCode, LabelFormat, Language, ParcelStatus,
    internal::{self, ListQuery},
    model::RejectedParcel,
};
use serde_json::{Value, json};
use tokio::sync::{MutexGuard, OwnedSemaphorePermit, Semaphore};

use super::{
    Caller, Service,
    fair_locks::FairLocks,
    parcels::{drawing_failed, split_item_error},
};

/// Maximum number of batches drawn at once. Each holds up to 100 labels in memory, and a thread for tens of
/// milliseconds: more at once would leave no processor to other requests.
const MAX_BATCHES_AT_ONCE: usize = 2;

/// The permits to draw batches: one for each tenant, so that one with many keys leaves the other permit to the rest.
#[derive(Debug)]
pub(super) struct BatchPermits {
    tenants: FairLocks,
    all: Arc<Semaphore>,
}

impl Default for BatchPermits {
    fn default() -> Self {
        let all = Arc::new(Semaphore::new(MAX_BATCHES_AT_ONCE));
        Self { tenants: FairLocks::default(), all }
    }
}

impl BatchPermits {
    /// Waits for a tenant's turn. It comes first, so that a tenant has one place in the queue of all.
    async fn acquire(&self, tenant: Tenant) -> Result<BatchPermit<'_>, Refusal> {
        let turn = self.tenants.lock(&tenant).await;
        let permit = Arc::clone(&self.all).acquire_owned().await;
        Ok(BatchPermit { _turn: turn, permit: permit.map_err(|_closed| Refusal::unavailable())? })
    }
}

/// The permit to draw a batch. The turn is the tenant's; the other part stays with the thread that draws, also if the
/// caller has hung up.
#[derive(Debug)]
struct BatchPermit<'p> {
    _turn: Option<MutexGuard<'p, ()>>,
    permit: OwnedSemaphorePermit,
}

/// A file of several labels.
#[derive(Debug)]
pub struct LabelBatch {
    /// The format.
    pub format: LabelFormat,
    /// The file.
    pub bytes: Vec<u8>,
}

impl Service {
    /// Draws the labels of up to 100 of the caller's parcels.
    pub async fn draw_label_batch(
        &self,
        caller: &Caller,
        body: &Value,
    ) -> Result<LabelBatch, Refusal> {
        let request = internal::check_label_batch(body)
            .map_err(|rejected| Refusal::invalid(&rejected.faults))?;
        self.draw_labels(caller.tenant(), request.tracking_numbers, request.format).await
    }

    /// Draws the labels of a tenant's parcels. The caller has checked that the numbers are few enough and unique.
    async fn draw_labels(
        &self,
        tenant: Tenant,
        numbers: Vec<String>,
        format: LabelFormat,
    ) -> Result<LabelBatch, Refusal> {
        let BatchPermit { _turn, permit } = self.label_batches.acquire(tenant).await?;
        let (mut labels, mut rejected) = (Vec::new(), Vec::new());
        for (index, number) in numbers.iter().enumerate() {
            match self.lay_out_label(tenant, number).await? {
                Ok(label) => labels.push(label),
                Err((refusal, status)) => {
                    let field = format!("trackingNumbers[{index}]");
                    let mut parcel = RejectedParcel::new(field, number, refusal.to_item());
                    parcel.status = status;
                    rejected.push(parcel);
                }
            }
        }
        if !rejected.is_empty() {
            let details = json!({ "errors": rejected });
            return Err(Refusal::from(ErrorCode::LabelsRejected).with_details(details));
        }
        let count = labels.len() as u64;
        // Drawing 100 labels would block this thread, and other requests with it, for too long.
        let drawn = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            parcelo_label::draw_all(&labels, format)
        });
        let drawn = drawn.await.map_err(|_panicked| ErrorCode::InternalError)?;
        let bytes = drawn.map_err(drawing_failed)?;
        self.metrics.count_labels(tenant.environment, format, count);
        Ok(LabelBatch { format, bytes })
    }

    /// Draws the labels on a page of a tenant's list of parcels. Parcels without a label are left out.
    pub async fn draw_page_labels(
        &self,
        tenant: Tenant,
        query: &ListQuery,
        format: LabelFormat,
    ) -> Result<LabelBatch, Refusal> {
        let (found, _) = self.list_tenant_parcels(tenant, query, Language::En).await?;
        let with_label = found.into_iter().filter(|parcel| has_label(&parcel.status));
        let numbers: Vec<_> = with_label.map(|parcel| parcel.tracking_number.to_string()).collect();
        if numbers.is_empty() {
            return Err(ErrorCode::LabelNotFound.into());
        }
        self.draw_labels(tenant, numbers, format).await
    }

    /// Draws the labels of all parcels under a tenant's air waybill, in the manifest's order.
    pub async fn draw_manifest_labels(
        &self,
        tenant: Tenant,
        awb: &str,
        format: LabelFormat,
    ) -> Result<LabelBatch, Refusal> {
        let awb = Awb::parse(awb).map_err(|_| ErrorCode::ManifestNotFound)?;
        let manifest = self.store.manifest_inputs(tenant, &awb, &[]).await?.known;
        let numbers = manifest.ok_or(ErrorCode::ManifestNotFound)?.tracking_numbers;
        let numbers = numbers.iter().map(|number| number.as_str().to_owned()).collect();
        self.draw_labels(tenant, numbers, format).await
    }

    /// Lays out a parcel's label, or returns the refusal and the status of a parcel without one. An `Err` ends the
    /// whole request.
    async fn lay_out_label(&self, tenant: Tenant, number: &str) -> Result<LayoutResult, Refusal> {
        let (parcel, order) =
            match split_item_error(self.load_owned_parcel_with_order(tenant, number).await)? {
                Ok(found) => found,
                Err(refusal) => return Ok(Err((refusal, None))),
            };
        self.warn_about_local_link(tenant.environment);
        let status = parcel.state.into();
        match self.with_label_data(&parcel, &order, parcelo_label::lay_out).await {
            Err(refusal) if refusal.code == ErrorCode::ServiceUnavailable => Err(refusal),
            layout => Ok(layout.map_err(|refusal| (refusal, Some(status)))),
        }
    }
}

/// Returns `true` if a parcel with this status has a label to download.
pub fn has_label(status: &ParcelStatus) -> bool {
    !matches!(status, ParcelStatus::Ordered | ParcelStatus::Voided)
}

type LayoutResult = Result<LabelLayout, (Refusal, Option<ParcelStatus>)>;

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use parcelo_domain::AccountRowId;
    use parcelo_types::Environment;

    use super::*;

    #[tokio::test]
    async fn a_tenant_draws_one_batch_at_a_time_and_leaves_a_permit_to_others() {
        let permits = BatchPermits::default();
        let tenant = |account| Tenant {
            account: AccountRowId(account),
            environment: Environment::Production,
        };
        let first = permits.acquire(tenant(1)).await.unwrap();
        assert!(permits.acquire(tenant(1)).now_or_never().is_none());
        let other = permits.acquire(tenant(2)).now_or_never().unwrap().unwrap();
        assert!(permits.acquire(tenant(3)).now_or_never().is_none(), "two at once in all");
        drop(other);
        assert!(permits.acquire(tenant(3)).now_or_never().is_some());
        drop(first);
        assert!(permits.acquire(tenant(1)).now_or_never().is_some());
    }
}
