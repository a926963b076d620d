//! Leases due events, and frees them again if the caller has stopped waiting.

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
        let mut lease_task = tokio::spawn(async move { store.call_within(None, lease).await });
        let Ok(leased) = tokio::time::timeout(WRITE_TIMEOUT, &mut lease_task).await else {
            tokio::spawn(self.clone().end_abandoned_lease(lease_task));
            return Err(StoreError::Busy { database: self.name() });
        };
        leased.map_err(|_panicked| StoreError::Broken { database: self.name() })?
    }

    /// Frees the events of a lease whose caller has stopped waiting, because otherwise they would stay leased for a
    /// minute.
    async fn end_abandoned_lease(self, lease_task: JoinHandle<Result<LeasedBatch, StoreError>>) {
        let Ok(Ok(leased)) = lease_task.await else { return };
        let Some((_, lease)) = leased.events.first() else { return };
        let (server, store) = (self.0.server, crate::Store::from(self));
        if let Err(error) = store.end_lease(server, lease.number).await {
            tracing::warn!(%error, "events are sent a minute late");
        }
        store.notify_outbox();
    }
}
