//! Many labels as one file (docs/api.md, Download many labels).

use parcelo::{
    Awb, ErrorCode, LabelFormat, Language, ParcelStatus,
    model::RejectedParcel,
    rules::{self, ListQuery},
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{
    Caller, Service,
    parcels::{not_drawn, of_item},
};
use crate::{
    domain::{
        Refusal, Tenant,
        limit::{Admission, Quota},
    },
    label::{self, LaidOut},
};

/// How many batches are drawn at a time. Each holds up to 100 labels in memory, and a thread for tens of milliseconds
/// while it writes them: more at once would take the processors from all other requests.
const MAX_BATCHES_AT_ONCE: usize = 2;

#[derive(Debug)]
pub(super) struct BatchPermits(Semaphore);

impl Default for BatchPermits {
    fn default() -> Self {
        Self(Semaphore::new(MAX_BATCHES_AT_ONCE))
    }
}

/// Labels as one file.
#[derive(Debug)]
pub struct LabelBatch {
    /// The format.
    pub format: LabelFormat,
    /// The file.
    pub bytes: Vec<u8>,
}

impl Service {
    /// The labels of up to 100 of the caller's parcels, and what is left of the caller's limit, against which each
    /// label counts like a request.
    pub async fn label_batch(
        &self,
        caller: &Caller,
        body: &Value,
    ) -> Result<(LabelBatch, Quota), Refusal> {
        let asked = rules::check_label_batch(body)
            .map_err(|rejected| Refusal::invalid(&rejected.faults))?;
        let now = self.now();
        // The middleware has counted one.
        let more = u32::try_from(asked.tracking_numbers.len()).unwrap_or(u32::MAX) - 1;
        let quota = match self.admit_more(caller, more, now) {
            Admission::Granted(quota) => quota,
            Admission::Refused(quota) => return Err(Refusal::rate_limited(quota.wait(now))),
        };
        Ok((self.labels_of(caller.tenant(), asked.tracking_numbers, asked.format).await?, quota))
    }

    /// The labels of a tenant's parcels, whose numbers are known to be few enough, and each there once.
    async fn labels_of(
        &self,
        tenant: Tenant,
        numbers: Vec<String>,
        format: LabelFormat,
    ) -> Result<LabelBatch, Refusal> {
        let permit = self.label_batches.0.acquire().await;
        let _permit = permit.map_err(|_closed| Refusal::unavailable())?;
        let (mut labels, mut rejected) = (Vec::new(), Vec::new());
        for (place, number) in numbers.iter().enumerate() {
            match self.laid_out(tenant, number).await? {
                Ok(label) => labels.push(label),
                Err((refusal, status)) => {
                    let field = format!("trackingNumbers[{place}]");
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
        // Writing 100 labels takes so long that other requests would wait for this thread.
        let drawn = tokio::task::spawn_blocking(move || label::draw_many(&labels, format)).await;
        let bytes = drawn.map_err(|_panicked| ErrorCode::InternalError)?.map_err(not_drawn)?;
        Ok(LabelBatch { format, bytes })
    }

    /// The labels of the parcels on a page of a tenant's list, without those that have none.
    pub async fn labels_of_page(
        &self,
        tenant: Tenant,
        query: &ListQuery,
        format: LabelFormat,
    ) -> Result<LabelBatch, Refusal> {
        let (found, _) = self.list_of(tenant, query, Language::En).await?;
        let with_label = found.into_iter().filter(|parcel| has_label(&parcel.status));
        let numbers: Vec<_> = with_label.map(|parcel| parcel.tracking_number.to_string()).collect();
        if numbers.is_empty() {
            return Err(ErrorCode::LabelNotFound.into());
        }
        self.labels_of(tenant, numbers, format).await
    }

    /// The labels of all parcels under a tenant's air waybill, in the manifest's order.
    pub async fn labels_under(
        &self,
        tenant: Tenant,
        awb: &str,
        format: LabelFormat,
    ) -> Result<LabelBatch, Refusal> {
        let awb = Awb::parse(awb).map_err(|_| ErrorCode::ManifestNotFound)?;
        let manifest = self.store.for_manifest(tenant, &awb, &[]).await?.known;
        let numbers = manifest.ok_or(ErrorCode::ManifestNotFound)?.tracking_numbers;
        let numbers = numbers.iter().map(|number| number.as_str().to_owned()).collect();
        self.labels_of(tenant, numbers, format).await
    }

    /// A parcel's label, or why it has none to download, with the parcel's status; an error ends the whole request.
    async fn laid_out(&self, tenant: Tenant, number: &str) -> Result<LaidOutOrNot, Refusal> {
        let (parcel, order) = match of_item(self.own_parcel_with_order(tenant, number).await)? {
            Ok(found) => found,
            Err(refusal) => return Ok(Err((refusal, None))),
        };
        self.warn_of_a_local_link(tenant.environment);
        let status = parcel.state.into();
        match self.with_label_data(&parcel, &order, label::lay_out).await {
            Err(refusal) if refusal.code == ErrorCode::ServiceUnavailable => Err(refusal),
            laid_out => Ok(laid_out.map_err(|refusal| (refusal, Some(status)))),
        }
    }
}

/// Whether a parcel with this status has a label to download.
pub(crate) fn has_label(status: &ParcelStatus) -> bool {
    !matches!(status, ParcelStatus::Ordered | ParcelStatus::Voided)
}

type LaidOutOrNot = Result<LaidOut, (Refusal, Option<ParcelStatus>)>;
