//! GET /api/v1/parcels: what is due is done before anything is listed.

use parcelo::{
    Language,
    model::{PageMeta, ParcelSummary},
    rules::ListQuery,
};

use super::{Caller, Service};
use crate::domain::{Refusal, Tenant, list};

impl Service {
    /// A page of the caller's parcels, newest first (spec: GET parcels).
    pub async fn list_parcels(
        &self,
        caller: &Caller,
        query: &ListQuery,
        language: Language,
    ) -> Result<(Vec<ParcelSummary>, PageMeta), Refusal> {
        self.list_of(caller.tenant(), query, language).await
    }

    /// The same of a tenant.
    pub async fn list_of(
        &self,
        tenant: Tenant,
        query: &ListQuery,
        language: Language,
    ) -> Result<(Vec<ParcelSummary>, PageMeta), Refusal> {
        self.take_due_steps_of(tenant, self.now()).await?;
        let (listed, total) = self.store.list(tenant, query.clone()).await?;
        let site = self.site(tenant.environment);
        let summary = |parcel| {
            list::summary(
                parcel,
                |parcel| site.label_url(self.secrets(), &parcel.tracking_number, parcel.id),
                language,
            )
        };
        let meta = PageMeta::new(query.page, query.limit, total);
        Ok((listed.into_iter().map(summary).collect(), meta))
    }
}
