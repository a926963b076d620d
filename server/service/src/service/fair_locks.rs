//! Fair locks for parcels that several carriers report on at the same time. Versions alone keep a history correct, but
//! a slow carrier could lose to faster ones forever.

use std::hash::{DefaultHasher, Hash, Hasher};

use parcelo_types::TrackingNumber;
use tokio::sync::{Mutex, MutexGuard};

/// Number of locks. Parcels that share a lock wait for each other needlessly, which is rare with this many.
const LOCK_COUNT: usize = 256;

/// A fixed set of locks. The hash of a parcel's number selects its lock.
#[derive(Debug)]
pub(super) struct ParcelLocks(Vec<Mutex<()>>);

impl Default for ParcelLocks {
    fn default() -> Self {
        Self((0..LOCK_COUNT).map(|_| Mutex::default()).collect())
    }
}

impl ParcelLocks {
    /// Locks a parcel until the guard is dropped.
    pub(super) async fn lock(&self, number: &TrackingNumber) -> Option<MutexGuard<'_, ()>> {
        let mut hash = DefaultHasher::new();
        number.hash(&mut hash);
        let index = usize::try_from(hash.finish() % LOCK_COUNT as u64).unwrap_or_default();
        match self.0.get(index) {
            Some(lock) => Some(lock.lock().await),
            None => None,
        }
    }
}
