//! What the dashboard reads: one account's parcels, counts and legacy calls, whoever made the keys.

use parcelo::{ErrorCode, Language, OrderRequest, TrackingNumber, TrackingRecord};

use super::Service;
use crate::{
    clock::Millis,
    core::{AccountKey, ParcelRow, Refusal, Tenant, activity::Counted, legacy::Uses},
};

/// A parcel with all that its owner may know.
#[derive(Debug, Clone)]
pub struct OwnParcel {
    /// Where it stands.
    pub row: ParcelRow,
    /// The order.
    pub order: OrderRequest,
    /// The record with its history.
    pub record: TrackingRecord,
    /// Its public page.
    pub tracking_url: String,
}

impl Service {
    /// One of a tenant's parcels.
    pub async fn parcel_of(
        &self,
        tenant: Tenant,
        number: &str,
        language: Language,
    ) -> Result<OwnParcel, Refusal> {
        let number = TrackingNumber::parse(number).map_err(|_| ErrorCode::ParcelNotFound)?;
        let row = self.parcel(tenant, &number).await?;
        let record = self.record(&row, true, language)?;
        let (_, order) = self.parcel_with_order(&number, tenant.environment)?;
        let tracking_url = self.site(tenant.environment).tracking_url(&row.tracking_number);
        Ok(OwnParcel { row, order, record, tracking_url })
    }

    /// How many of a tenant's parcels were created since then, by day and state.
    pub async fn activity_of(
        &self,
        tenant: Tenant,
        since: Millis,
    ) -> Result<Vec<Counted>, Refusal> {
        self.take_due_steps_of(tenant, self.now()).await?;
        Ok(self.store.activity(tenant, since)?)
    }

    /// Which of an account's keys used the legacy API, by day; up to this moment.
    pub async fn legacy_uses_of(&self, account: AccountKey) -> Result<Vec<Uses>, Refusal> {
        self.keep_legacy_uses().await?;
        Ok(self.store.legacy_uses_of(account)?)
    }
}
