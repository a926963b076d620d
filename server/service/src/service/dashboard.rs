//! The dashboard's operations: reading one account's parcels, counts and legacy calls, and voiding or reprinting a
//! parcel. A form has no idempotency key; sending it a second time has no further effect.

use parcelo_domain::{
    AccountRowId, Changes, Millis, ParcelRow, Refusal, StoreOp, StoredOrder, Tenant,
    activity::ParcelCount,
    carrier::LoggedCarrierException,
    labels,
    legacy::DailyUsage,
    void,
    webhooks::{self, LoggedDelivery},
};
use parcelo_store::CommitOutcome;
use parcelo_types::{ErrorCode, Language, OrderRequest, TrackingNumber, model::TrackingRecord};
use ulid::Ulid;

use super::{Service, idempotency::MAX_DECISIONS, refusal_for_commit};

/// A parcel as its owner may see it.
#[derive(Debug, Clone)]
pub struct OwnedParcel {
    /// The parcel's row.
    pub row: ParcelRow,
    /// The order.
    pub order: OrderRequest,
    /// The record with its history.
    pub record: TrackingRecord,
    /// The address of its public page.
    pub tracking_url: String,
    /// Its manifest's air waybill.
    pub awb: Option<String>,
}

impl Service {
    /// Returns one of a tenant's parcels.
    pub async fn owned_parcel(
        &self,
        tenant: Tenant,
        number: &str,
        language: Language,
    ) -> Result<OwnedParcel, Refusal> {
        let number = TrackingNumber::parse(number).map_err(|_| ErrorCode::ParcelNotFound)?;
        let row = self.load_parcel(tenant, &number).await?;
        let record = self.tracking_record(&row, true, language).await?;
        let (_, StoredOrder { order, .. }) =
            self.load_parcel_with_order(&number, tenant.environment).await?;
        let tracking_url = self.site(tenant.environment).tracking_url(&row.tracking_number);
        let awb = self.store.awb_on_label(row.key, row.label_version.saturating_add(1)).await?;
        Ok(OwnedParcel { row, order, record, tracking_url, awb })
    }

    /// Voids one of a tenant's orders. A voided order stays as it is.
    pub async fn void_parcel(&self, tenant: Tenant, number: &str) -> Result<(), Refusal> {
        self.change_parcel(tenant, number, void::void_parcel_ops).await
    }

    /// Gives the label of one of a tenant's parcels a new version.
    pub async fn reprint_parcel(&self, tenant: Tenant, number: &str) -> Result<(), Refusal> {
        let reprint = |parcel: &ParcelRow, now| {
            labels::reprint(parcel, now)?;
            Ok(vec![StoreOp::Reprint { parcel: parcel.key, at: now }])
        };
        self.change_parcel(tenant, number, reprint).await
    }

    async fn change_parcel(
        &self,
        tenant: Tenant,
        number: &str,
        decide: impl Fn(&ParcelRow, Millis) -> Result<Vec<StoreOp>, Refusal>,
    ) -> Result<(), Refusal> {
        let number = TrackingNumber::parse(number).map_err(|_| ErrorCode::ParcelNotFound)?;
        for _ in 0..MAX_DECISIONS {
            let (now, parcel) = (self.now(), self.load_parcel(tenant, &number).await?);
            let ops = decide(&parcel, now)?;
            if ops.is_empty() {
                return Ok(());
            }
            let expect = vec![(parcel.key, parcel.version)];
            let changes = Changes { now, trace: None, idempotency_record: None, expect, ops };
            match self.store.commit(changes).await {
                CommitOutcome::Committed => return Ok(()),
                CommitOutcome::VersionConflict => {}
                outcome => return Err(refusal_for_commit(&outcome)),
            }
        }
        Err(Refusal::unavailable())
    }

    /// Counts a tenant's parcels by day of creation, state and country, from the day `first` on (in days since 1970).
    pub async fn parcel_counts(
        &self,
        tenant: Tenant,
        first: i64,
    ) -> Result<Vec<ParcelCount>, Refusal> {
        self.take_due_steps_for(tenant, self.now()).await?;
        Ok(self.store.activity(tenant, first).await?)
    }

    /// Returns the latest refused carrier events on a tenant's parcels, newest first.
    pub async fn carrier_exceptions(
        &self,
        tenant: Tenant,
        limit: u32,
    ) -> Result<Vec<LoggedCarrierException>, Refusal> {
        Ok(self.store.carrier_exceptions(tenant, limit).await?)
    }

    /// Returns a tenant's webhook events with their attempts, newest first, after skipping the first `skipped`.
    pub async fn webhook_deliveries(
        &self,
        tenant: Tenant,
        skipped: usize,
        limit: usize,
    ) -> Result<Vec<LoggedDelivery>, Refusal> {
        Ok(self.store.older_deliveries(tenant, skipped, limit).await?)
    }

    /// Returns the body that an event sends to the tenant's webhook. Fails with 404 if there is no such event or its
    /// parcel was deleted.
    pub async fn webhook_body(&self, tenant: Tenant, event: Ulid) -> Result<Vec<u8>, Refusal> {
        let payload = self.store.logged_payload(tenant, event).await?;
        Ok(webhooks::event_body(payload.ok_or(ErrorCode::NotFound)?))
    }

    /// Returns `true` if one of the tenant's webhook events has failed or is held.
    pub async fn has_undelivered_events(&self, tenant: Tenant) -> Result<bool, Refusal> {
        Ok(self.store.has_missed(tenant).await?)
    }

    /// Returns how often each of an account's keys has used the legacy API on each day, up to now.
    pub async fn legacy_usage(&self, account: AccountRowId) -> Result<Vec<DailyUsage>, Refusal> {
        self.save_legacy_uses().await?;
        Ok(self.store.account_legacy_uses(account).await?)
    }
}
