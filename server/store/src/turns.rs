//! Turns for reads that may scan many rows. Each tenant has one such read at a time; its other reads queue, and no
//! tenant waits behind another tenant's queue.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use parcelo_domain::Tenant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of one tenant's reads that run at a time.
const MAX_PER_TENANT: usize = 1;
/// Maximum number of one tenant's reads that run or wait. A list page takes milliseconds, so a caller behind that many
/// reads is better served by an error and a retry.
const MAX_QUEUED_PER_TENANT: usize = 64;
/// Maximum time that a read waits for its turn.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of queues at which idle queues are first swept.
const SWEEP_FROM: usize = 64;

/// The turns of all tenants.
pub(super) struct Turns {
    all: Arc<Semaphore>,
    queues: Mutex<Queues>,
}

#[derive(Default)]
struct Queues {
    /// The queue of each tenant. Operators, who read for no tenant, share a queue.
    by_tenant: HashMap<Option<Tenant>, Arc<Semaphore>>,
    swept_at: usize,
}

/// The permits to read, which are returned on drop.
pub(super) struct Turn {
    pub(super) tenant_permit: OwnedSemaphorePermit,
    pub(super) global_permit: OwnedSemaphorePermit,
}

impl Turns {
    /// Allows `max` reads at a time, across all tenants.
    pub(super) fn new(max: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(max)), queues: Mutex::default() }
    }

    /// Waits for a turn. Returns `None` if too many are waiting or the wait times out.
    pub(super) async fn turn(&self, tenant: Option<Tenant>) -> Option<Turn> {
        let queue = self.queue(tenant)?;
        let turn = async {
            // The tenant's queue comes first, so that only its first read enters the global queue.
            let tenant_permit = queue.acquire_owned().await.ok()?;
            let global_permit = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some(Turn { tenant_permit, global_permit })
        };
        tokio::time::timeout(QUEUE_TIMEOUT, turn).await.ok().flatten()
    }

    fn queue(&self, tenant: Option<Tenant>) -> Option<Arc<Semaphore>> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if queues.by_tenant.len() > queues.swept_at.max(SWEEP_FROM) {
            queues.by_tenant.retain(|_, queue| Arc::strong_count(queue) > 1);
            queues.swept_at = queues.by_tenant.len() * 2;
        }
        let queue = queues
            .by_tenant
            .entry(tenant)
            .or_insert_with(|| Arc::new(Semaphore::new(MAX_PER_TENANT)));
        // Each read in the queue holds a reference, and so does the map.
        (Arc::strong_count(queue) <= MAX_QUEUED_PER_TENANT).then(|| Arc::clone(queue))
    }
}
