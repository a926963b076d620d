//! The cached count of undelivered events.

use std::time::{Duration, Instant};

use parcelo_system::clock::{has_elapsed, monotonic_now};

use super::Store;
use crate::{Backlog, StoreError};

/// A count is cached for this many times its duration, so that counting takes at most a twentieth of the time.
const CACHE_TIME_FACTOR: u32 = 20;
/// Minimum duration of a count whose result is cached. Faster counts are repeated.
const MIN_CACHED_DURATION: Duration = Duration::from_millis(100);

/// The numbers of undelivered events at the last count.
pub(super) struct CachedBacklogs {
    at: Instant,
    took: Duration,
    all: Vec<Backlog>,
}

impl Store {
    /// Returns the number of undelivered events of each tenant. A slow count is cached for twenty times its duration:
    /// with a million held events it takes part of a second, and every server's metrics are read every few seconds.
    pub(crate) async fn cached_backlogs(
        &self,
        count: impl Future<Output = Result<Vec<Backlog>, StoreError>>,
    ) -> Result<Vec<Backlog>, StoreError> {
        let is_fresh = |backlogs: &CachedBacklogs| {
            !has_elapsed(backlogs.at, backlogs.took * CACHE_TIME_FACTOR)
                && backlogs.took > MIN_CACHED_DURATION
        };
        let mut cache = self.0.backlogs.lock().await;
        if let Some(backlogs) = cache.as_ref().filter(|backlogs| is_fresh(backlogs)) {
            return Ok(backlogs.all.clone());
        }
        let began = monotonic_now();
        let all = count.await?;
        *cache = Some(CachedBacklogs { at: began, took: began.elapsed(), all: all.clone() });
        Ok(all)
    }
}
