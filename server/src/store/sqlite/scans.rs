//! Reads that may look at many rows: beside the runtime's workers, which answer everyone, and only a few at a
//! time, so that writes keep their share of the machine.

use std::{thread, time::Duration};

use tokio::{sync::oneshot, task::spawn_blocking, time::sleep};

use super::{Mode, Store, StoreError};
use crate::{clock::runtime_time, domain::Tenant, store::turns::Turns};

/// After a shorter scan its tenant does not rest. A page of a list takes less than a millisecond, which is also the
/// shortest sleep: with a rest after it, a tenant had half as many. What is so short leaves the machine to others by
/// itself, since an answer and another request lie between two.
const REST_FROM: Duration = Duration::from_millis(5);
/// However long a scan took, its tenant rests no longer.
const MAX_REST: Duration = Duration::from_millis(250);
/// Returns turns for half of the machine, so that the other half is left for who writes.
pub(super) fn turns() -> Turns {
    let most = thread::available_parallelism().map_or(2, |threads| threads.get() / 2);
    Turns::new(most.clamp(2, 4))
}

impl Store {
    /// Reads what may take long, for a tenant or for the operators (none). Memory is read at once, as a
    /// file beside its server is.
    pub(in crate::store) async fn scan<T, F>(
        &self,
        tenant: Option<Tenant>,
        read: F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Self) -> Result<T, StoreError> + Send + 'static,
    {
        let Mode::File { scans, .. } = &self.0.mode else { return read(self) };
        let database = || self.database();
        let turn =
            scans.turn(tenant).await.ok_or_else(|| StoreError::Crowded { database: database() })?;
        let store = self.clone();
        let (answer, answered) = oneshot::channel();
        // A caller that goes away ends nothing that has begun: the turn goes with the work.
        tokio::spawn(async move {
            let begun = runtime_time();
            let read = spawn_blocking(move || read(&store)).await;
            drop(turn.one_of_all);
            // A caller that has gone needs no answer.
            let _unheard = answer.send(read);
            // What one tenant reads at length takes half of a core at most: where there are few,
            // writers would miss a whole one.
            let took = begun.elapsed();
            if took >= REST_FROM {
                sleep(took.min(MAX_REST)).await;
            }
            drop(turn.own);
        });
        let read = answered.await.map_err(|_ended| StoreError::Broken { database: database() })?;
        read.unwrap_or_else(|_panicked| Err(StoreError::Broken { database: database() }))
    }
}
