//! What the dashboard reads: one account's parcels, counts and legacy calls, of all its keys; and what an account's
//! owner does to a parcel there. A form has no idempotency key: sent twice, it finds its work done.

use parcelo::{ErrorCode, Language, OrderRequest, TrackingNumber, model::TrackingRecord};
use ulid::Ulid;

use super::{Service, idempotency::MAX_TRIES, refusal_for_commit};
use crate::{
    clock::Millis,
    domain::{
        AccountRowId, Changes, Op, ParcelRow, Refusal, StoredOrder, Tenant,
        activity::ParcelCount,
        carrier::LoggedException,
        labels,
        legacy::Uses,
        void,
        webhooks::{self, LoggedDelivery},
    },
    store::CommitOutcome,
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
    /// The air waybill of its manifest.
    pub awb: Option<String>,
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
        let (_, StoredOrder { order, .. }) =
            self.parcel_with_order(&number, tenant.environment).await?;
        let tracking_url = self.site(tenant.environment).tracking_url(&row.tracking_number);
        let awb = self.store.awb_on(row.key, row.label_version.saturating_add(1)).await?;
        Ok(OwnParcel { row, order, record, tracking_url, awb })
    }

    /// Voids one of a tenant's orders; one that is void stays so.
    pub async fn void_of(&self, tenant: Tenant, number: &str) -> Result<(), Refusal> {
        self.change_of(tenant, number, void::void_one).await
    }

    /// Gives the label of one of a tenant's parcels a new version.
    pub async fn reprint_of(&self, tenant: Tenant, number: &str) -> Result<(), Refusal> {
        let reprint = |parcel: &ParcelRow, now| {
            labels::reprint(parcel, now)?;
            Ok(vec![Op::Reprint { parcel: parcel.key, at: now }])
        };
        self.change_of(tenant, number, reprint).await
    }

    async fn change_of(
        &self,
        tenant: Tenant,
        number: &str,
        decide: impl Fn(&ParcelRow, Millis) -> Result<Vec<Op>, Refusal>,
    ) -> Result<(), Refusal> {
        let number = TrackingNumber::parse(number).map_err(|_| ErrorCode::ParcelNotFound)?;
        for _ in 0..MAX_TRIES {
            let (now, parcel) = (self.now(), self.parcel(tenant, &number).await?);
            let ops = decide(&parcel, now)?;
            if ops.is_empty() {
                return Ok(());
            }
            let expect = vec![(parcel.key, parcel.version)];
            match self.store.commit(Changes { now, idempotency_record: None, expect, ops }).await {
                CommitOutcome::Committed => return Ok(()),
                CommitOutcome::VersionConflict => {}
                outcome => return Err(refusal_for_commit(&outcome)),
            }
        }
        Err(Refusal::unavailable())
    }

    /// How many of a tenant's parcels were created on that day (since 1970 began) or later, by day, state and
    /// country.
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

    /// The body by which an event is sent to the tenant's webhook. 404 when there is no such event, or what it is about
    /// is deleted.
    pub async fn webhook_body(&self, tenant: Tenant, event: Ulid) -> Result<Vec<u8>, Refusal> {
        let payload = self.store.logged_payload(tenant, event).await?;
        Ok(webhooks::body(payload.ok_or(ErrorCode::NotFound)?))
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
