//! Lists of parcels: GET /api/v1/parcels and the dashboard. Due steps are taken before parcels are listed.

use parcelo_domain::{Refusal, Tenant, list, search::Search};
use parcelo_store::SearchPage;
use parcelo_types::{
    Language,
    internal::ListQuery,
    model::{PageMeta, ParcelSummary},
};

use super::{Caller, Service};

impl Service {
    /// Returns a page of the caller's parcels, newest first (spec: GET parcels).
    pub async fn list_parcels(
        &self,
        caller: &Caller,
        query: &ListQuery,
        language: Language,
    ) -> Result<(Vec<ParcelSummary>, PageMeta), Refusal> {
        self.list_tenant_parcels(caller.tenant(), query, language).await
    }

    /// Returns a page of a tenant's parcels, newest first.
    pub async fn list_tenant_parcels(
        &self,
        tenant: Tenant,
        query: &ListQuery,
        language: Language,
    ) -> Result<(Vec<ParcelSummary>, PageMeta), Refusal> {
        let now = self.now();
        self.take_due_steps_for(tenant, now).await?;
        let page = if let Some(search) = Search::new(query) {
            self.store.search(tenant, query.clone(), search).await?
        } else {
            let (parcels, total) = self.store.list(tenant, query.clone()).await?;
            SearchPage { parcels, total, is_complete: true }
        };
        let site = self.site(tenant.environment);
        let summary = |parcel| {
            list::parcel_summary(
                parcel,
                |parcel| site.label_url(self.secrets(), &parcel.tracking_number, parcel.id),
                language,
                now,
            )
        };
        let mut meta = PageMeta::new(query.page, query.limit, page.total);
        meta.is_partial = !page.is_complete;
        Ok((page.parcels.into_iter().map(summary).collect(), meta))
    }

    /// Brings the search index up to date, page by page.
    pub async fn maintain_search_index(&self) -> Result<(), Refusal> {
        /// Number of pages between two log lines. Only an upgrade has so many pages, and operators want to see its
        /// progress.
        const PAGES_BETWEEN_LOGS: u32 = 500;
        let mut pages: u32 = 0;
        while self.store.maintain_search_index().await? {
            pages += 1;
            if pages.is_multiple_of(PAGES_BETWEEN_LOGS) {
                tracing::info!(pages, "older parcels are being added to the search's index");
            }
        }
        Ok(())
    }
}
