//! Turns at a parcel: whoever reports on a parcel that others report on too waits for them, first
//! come, first served. Versions alone keep a history right, but let one be overtaken for ever.

use std::hash::{DefaultHasher, Hash, Hasher};

use parcelo::TrackingNumber;
use tokio::sync::{Mutex, MutexGuard};

/// Parcels that share a queue by chance only wait a little.
const QUEUES: usize = 256;

/// The queues; a parcel's is chosen by its number.
#[derive(Debug)]
pub(super) struct Turns(Vec<Mutex<()>>);

impl Default for Turns {
    fn default() -> Self {
        Self((0..QUEUES).map(|_| Mutex::default()).collect())
    }
}

impl Turns {
    /// Waits for a turn at the parcel; it ends with the guard.
    pub(super) async fn take(&self, number: &TrackingNumber) -> Option<MutexGuard<'_, ()>> {
        let mut hash = DefaultHasher::new();
        number.hash(&mut hash);
        let queue = usize::try_from(hash.finish() % QUEUES as u64).unwrap_or_default();
        match self.0.get(queue) {
            Some(queue) => Some(queue.lock().await),
            None => None,
        }
    }
}
