//! Reads that may look at many rows: beside the runtime's workers, which answer everyone, and only a few at a
//! time, so that writes keep their share of the machine. Each tenant has one at a time; its others wait
//! their turn, and no tenant waits behind another's queue.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    task::spawn_blocking,
    time::sleep,
};

use super::{Mode, Store, StoreError};
use crate::{clock::runtime_time, domain::Tenant};

/// How many of one tenant are at work.
const MAX_PER_TENANT: usize = 1;
/// How many of one tenant are at work or wait. A list page takes milliseconds: a caller behind so many is
/// better served by an error and a retry.
const MAX_QUEUED_PER_TENANT: usize = 64;
/// How long one waits for its turn.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);
/// After a shorter scan its tenant does not rest. A page of a list takes less than a millisecond, which is also the
/// shortest sleep: with a rest after it, a tenant had half as many. What is so short leaves the machine to others by
/// itself, since an answer and another request lie between two.
const REST_FROM: Duration = Duration::from_millis(5);
/// However long a scan took, its tenant rests no longer.
const MAX_REST: Duration = Duration::from_millis(250);
/// From how many queues on the empty ones are looked for.
const SWEEP_FROM: usize = 64;

/// Whose turn it is.
pub(super) struct Scans {
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
struct Turn {
    own: OwnedSemaphorePermit,
    one_of_all: OwnedSemaphorePermit,
}

impl Default for Scans {
    fn default() -> Self {
        // Half of the machine, so that the other half is left for who writes.
        let most = thread::available_parallelism().map_or(2, |threads| threads.get() / 2);
        Self { all: Arc::new(Semaphore::new(most.clamp(2, 4))), queues: Mutex::default() }
    }
}

impl Scans {
    /// Waits for a turn; none when too many wait, or it takes too long.
    async fn turn(&self, tenant: Option<Tenant>) -> Option<Turn> {
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

impl Store {
    /// Reads what may take long, for a tenant or for the operators (none). Memory is read at once, as a
    /// file beside its server is.
    pub(super) async fn scan<T, F>(&self, tenant: Option<Tenant>, read: F) -> Result<T, StoreError>
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
