//! Whose turn it is among reads that may look at many rows. Each tenant has one at a time; its others wait their turn, and no
//! tenant waits behind another's queue.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::domain::Tenant;

/// How many of one tenant are at work.
const MAX_PER_TENANT: usize = 1;
/// How many of one tenant are at work or wait. A list page takes milliseconds: a caller behind so many is
/// better served by an error and a retry.
const MAX_QUEUED_PER_TENANT: usize = 64;
/// How long one waits for its turn.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);
/// From how many queues on the empty ones are looked for.
const SWEEP_FROM: usize = 64;

/// Whose turn it is.
pub(super) struct Turns {
    all: Arc<Semaphore>,
    queues: Mutex<Queues>,
}

#[derive(Default)]
struct Queues {
    /// By tenant; operators, who read for no tenant, share one.
    of: HashMap<Option<Tenant>, Arc<Semaphore>>,
    swept_at: usize,
}

/// Leave to read, until it is dropped.
pub(super) struct Turn {
    pub(super) own: OwnedSemaphorePermit,
    pub(super) one_of_all: OwnedSemaphorePermit,
}

impl Turns {
    /// So many reads are at work at once, of all tenants.
    pub(super) fn new(most: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(most)), queues: Mutex::default() }
    }

    /// Waits for a turn; none when too many wait, or it takes too long.
    pub(super) async fn turn(&self, tenant: Option<Tenant>) -> Option<Turn> {
        let queue = self.queue(tenant)?;
        let turn = async {
            // A tenant's queue first: only its foremost stands in everyone's.
            let own = queue.acquire_owned().await.ok()?;
            let one_of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some(Turn { own, one_of_all })
        };
        tokio::time::timeout(QUEUE_TIMEOUT, turn).await.ok().flatten()
    }

    fn queue(&self, tenant: Option<Tenant>) -> Option<Arc<Semaphore>> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if queues.of.len() > queues.swept_at.max(SWEEP_FROM) {
            queues.of.retain(|_, queue| Arc::strong_count(queue) > 1);
            queues.swept_at = queues.of.len() * 2;
        }
        let queue =
            queues.of.entry(tenant).or_insert_with(|| Arc::new(Semaphore::new(MAX_PER_TENANT)));
        // Everyone in the queue holds it, and so does the map.
        (Arc::strong_count(queue) <= MAX_QUEUED_PER_TENANT).then(|| Arc::clone(queue))
    }
}
