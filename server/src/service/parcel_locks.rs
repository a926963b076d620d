//! A lock for each parcel that several carriers report on: they wait for one another, first come, first
//! served. Versions alone would keep a history right, but a slow reporter could lose to faster ones for ever.

use std::hash::{DefaultHasher, Hash, Hasher};

use parcelo::TrackingNumber;
use tokio::sync::{Mutex, MutexGuard};

/// Parcels whose numbers fall on the same lock wait for each other without need; with so many locks, rarely.
const LOCK_COUNT: usize = 256;

/// The locks; a parcel's is chosen by its number.
#[derive(Debug)]
pub(super) struct ParcelLocks(Vec<Mutex<()>>);

impl Default for ParcelLocks {
    fn default() -> Self {
        Self((0..LOCK_COUNT).map(|_| Mutex::default()).collect())
    }
}

impl ParcelLocks {
    /// Waits for the parcel's lock, which the guard holds.
    pub(super) async fn lock(&self, number: &TrackingNumber) -> Option<MutexGuard<'_, ()>> {
        let mut hash = DefaultHasher::new();
        number.hash(&mut hash);
        let place = usize::try_from(hash.finish() % LOCK_COUNT as u64).unwrap_or_default();
        match self.0.get(place) {
            Some(lock) => Some(lock.lock().await),
            None => None,
        }
    }
}
