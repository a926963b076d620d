//! Reads that may scan many rows. They run outside the runtime's workers, which serve everyone, and only a few run at a
//! time, so that writes keep their share of the machine.

use std::{thread, time::Duration};

use parcelo_domain::Tenant;
use parcelo_system::clock::runtime_now;
use tokio::{sync::oneshot, task::spawn_blocking, time::sleep};

use super::{Mode, Store, StoreError};
use crate::turns::Turns;

/// Minimum duration of a scan after which its tenant pauses. A page of a list takes less than a millisecond, which is
/// also the shortest sleep: pausing after each one halved a tenant's throughput. Short scans need no pause, because a
/// response and another request separate them anyway.
const MIN_SCAN_FOR_PAUSE: Duration = Duration::from_millis(5);
/// Maximum pause of a tenant, however long its scan took.
const MAX_PAUSE: Duration = Duration::from_millis(250);

/// Returns turns for half of the cores; writes get the rest.
pub(super) fn new_turns() -> Turns {
    let half = thread::available_parallelism().map_or(2, |threads| threads.get() / 2);
    Turns::new(half.clamp(2, 4))
}

impl Store {
    /// Runs a read that may take long, on behalf of a tenant or of the operators (`None`). A database in memory, or a
    /// file that a command has opened, is read at once.
    pub(crate) async fn scan<T, F>(&self, tenant: Option<Tenant>, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Self) -> Result<T, StoreError> + Send + 'static,
    {
        let Mode::File { scans, .. } = &self.0.mode else { return read(self) };
        let database = || self.name();
        let turn =
            scans.turn(tenant).await.ok_or_else(|| StoreError::Crowded { database: database() })?;
        let store = self.clone();
        let (answer, answered) = oneshot::channel();
        // A read that has begun continues if its caller leaves, so the turn ends with the read.
        tokio::spawn(async move {
            let begun = runtime_now();
            let read = spawn_blocking(move || read(&store)).await;
            drop(turn.global_permit);
            // A caller that has gone needs no answer.
            let _unheard = answer.send(read);
            // Long reads of one tenant take at most half of a core, because on a machine with few cores writers would
            // miss a whole core.
            let took = begun.elapsed();
            if took >= MIN_SCAN_FOR_PAUSE {
                sleep(took.min(MAX_PAUSE)).await;
            }
            drop(turn.tenant_permit);
        });
        let read = answered.await.map_err(|_ended| StoreError::Broken { database: database() })?;
        read.unwrap_or_else(|_panicked| Err(StoreError::Broken { database: database() }))
    }
}
