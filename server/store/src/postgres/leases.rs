//! Leases whose caller may stop waiting.

use parcelo_domain::{Millis, Tenant};
use tokio::task::JoinHandle;

use super::{Store, connection::Connection};
use crate::{
    LeasedBatch, StoreError, WRITE_TIMEOUT,
    leases::{self, LeaseRequest},
    sql::Sql,
};

impl Store {
    pub(crate) async fn lease(
        &self,
        shares: Vec<(Tenant, usize)>,
        now: Millis,
    ) -> Result<LeasedBatch, StoreError> {
        let server = (self.0.server, self.lease_clock(now));
        let request = LeaseRequest { shares: self.0.floors.add_to(shares), now, server };
        let store = self.clone();
        let lease =
            async move |db: &Connection| Ok(leases::lease(Sql::Postgres(db), &request).await?);
        let mut leasing = tokio::spawn(async move { store.call_within(None, lease).await });
        let Ok(leased) = tokio::time::timeout(WRITE_TIMEOUT, &mut leasing).await else {
            tokio::spawn(self.clone().end_abandoned_lease(leasing));
            return Err(StoreError::Busy { database: self.name() });
        };
        leased.map_err(|_panicked| StoreError::Broken { database: self.name() })?
    }

    /// Frees the events of a lease whose caller has stopped waiting, because they would stay leased otherwise.
    async fn end_abandoned_lease(self, leasing: JoinHandle<Result<LeasedBatch, StoreError>>) {
        let Ok(Ok(leased)) = leasing.await else { return };
        let Some((_, lease)) = leased.events.first() else { return };
        let (server, store) = (self.0.server, crate::Store::from(self));
        if let Err(error) = store.end_lease(server, lease.number).await {
            tracing::warn!(%error, "events are sent a minute late");
        }
        store.notify_outbox();
    }
}
