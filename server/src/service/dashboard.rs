//! What the dashboard reads: one account's parcels, counts and legacy calls, of all its keys.

use parcelo::{ErrorCode, Language, OrderRequest, TrackingNumber, model::TrackingRecord};

use super::Service;
use crate::domain::{
    AccountRowId, ParcelRow, Refusal, Tenant, activity::ParcelCount, carrier::LoggedException,
    legacy::Uses, webhooks::LoggedDelivery,
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
        let record = self.record(&row, true, language).await?;
        let (_, order) = self.parcel_with_order(&number, tenant.environment).await?;
        let tracking_url = self.site(tenant.environment).tracking_url(&row.tracking_number);
        Ok(OwnParcel { row, order, record, tracking_url })
    }

    /// How many of a tenant's parcels were created on that day (since 1970 began) or later, by day and state.
    pub async fn activity_of(
        &self,
        tenant: Tenant,
        first: i64,
    ) -> Result<Vec<ParcelCount>, Refusal> {
        self.take_due_steps_of(tenant, self.now()).await?;
        Ok(self.store.activity(tenant, first).await?)
    }

    /// The latest carrier events on a tenant's parcels that were refused, newest first.
    pub async fn carrier_exceptions_of(
        &self,
        tenant: Tenant,
        most: u32,
    ) -> Result<Vec<LoggedException>, Refusal> {
        Ok(self.store.carrier_exceptions(tenant, most).await?)
    }

    /// A tenant's webhook events after the `skipped` latest, with their attempts, newest first.
    pub async fn deliveries_of(
        &self,
        tenant: Tenant,
        skipped: usize,
        most: usize,
    ) -> Result<Vec<LoggedDelivery>, Refusal> {
        Ok(self.store.older_deliveries(tenant, skipped, most).await?)
    }

    /// True when a webhook event of the tenant's failed or is held.
    pub async fn has_missed(&self, tenant: Tenant) -> Result<bool, Refusal> {
        Ok(self.store.has_missed(tenant).await?)
    }

    /// Which of an account's keys used the legacy API, by day; up to this moment.
    pub async fn legacy_uses_of(&self, account: AccountRowId) -> Result<Vec<Uses>, Refusal> {
        self.keep_legacy_uses().await?;
        Ok(self.store.legacy_uses_of(account).await?)
    }
}
