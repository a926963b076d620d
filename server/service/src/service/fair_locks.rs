//! Fair locks: for parcels that several carriers report on at the same time, and for the accounts whose batches of
//! labels are drawn. Versions alone keep a history correct, but a slow carrier could lose to faster ones forever.

use std::hash::{DefaultHasher, Hash, Hasher};

use tokio::sync::{Mutex, MutexGuard};

/// Number of locks. Keys that share a lock wait for each other needlessly, which is rare with this many.
const LOCK_COUNT: usize = 256;

/// A fixed set of locks. The hash of a key selects its lock; those who wait for one get it in the order of their coming.
#[derive(Debug)]
pub(super) struct FairLocks(Vec<Mutex<()>>);

impl Default for FairLocks {
    fn default() -> Self {
        Self((0..LOCK_COUNT).map(|_| Mutex::default()).collect())
    }
}

impl FairLocks {
    /// Locks a key until the guard is dropped.
    pub(super) async fn lock(&self, key: &impl Hash) -> Option<MutexGuard<'_, ()>> {
        let mut hash = DefaultHasher::new();
        key.hash(&mut hash);
        let index = usize::try_from(hash.finish() % LOCK_COUNT as u64).unwrap_or_default();
        match self.0.get(index) {
            Some(lock) => Some(lock.lock().await),
            None => None,
        }
    }
}
