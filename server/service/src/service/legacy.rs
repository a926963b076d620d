//! Counts of legacy API requests by key. They are kept in memory and stored once a minute: counts that are lost in a
//! crash do little harm, and a write for each request would cost too much.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use parcelo_domain::{Millis, ids::public_id};

use super::{Caller, Refusal, Service};

/// Requests by key and day since the counts were last stored.
#[derive(Debug, Default)]
pub(super) struct UnsavedUses(Mutex<HashMap<(i64, i64), u64>>);

impl UnsavedUses {
    pub(super) fn clear(&self) {
        self.counts().clear();
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<(i64, i64), u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service {
    /// Counts a request to the legacy API.
    pub fn count_legacy_use(&self, caller: &Caller, now: Millis) {
        let day = now.0.div_euclid(Millis::DAY);
        *self.legacy_uses.counts().entry((caller.key.row, day)).or_default() += 1;
    }

    /// Stores the counts.
    pub async fn save_legacy_uses(&self) -> Result<(), Refusal> {
        let counted = std::mem::take(&mut *self.legacy_uses.counts());
        if counted.is_empty() {
            return Ok(());
        }
        let saved = self.store.add_legacy_uses(counted.clone()).await;
        if saved.is_err() {
            let mut counts = self.legacy_uses.counts();
            for (key_and_day, requests) in counted {
                *counts.entry(key_and_day).or_default() += requests;
            }
        }
        Ok(saved?)
    }

    /// Returns a new idempotency key for a write whose caller gave none, so that each call counts.
    pub fn new_idempotency_key(&self) -> String {
        public_id("legacy", self.ids.ulid(self.now()))
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::*;
    use crate::service::tests::{caller, settings};
    use parcelo_store::{Store, test_util::hold_write_lock};
    use parcelo_system::{clock::ManualClock, ids::Ids};

    #[tokio::test]
    async fn no_request_is_counted_twice_if_the_database_is_busy() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("parcelo.db");
        let store = Store::open(&file, [1; 32]).unwrap();
        let (ids, clock) = (Arc::new(Ids::seeded(1)), Arc::new(ManualClock::at(Millis(0))));
        let service = Service::new(store.clone(), clock, ids, settings());
        let caller = caller(&service).await;
        service.count_legacy_use(&caller, Millis(0));
        let other = hold_write_lock(&file);
        tokio::time::pause();
        {
            let mut save = std::pin::pin!(service.save_legacy_uses());
            let early = tokio::time::timeout(Duration::from_secs(6), &mut save).await;
            tokio::time::resume();
            other.execute_batch("ROLLBACK").unwrap();
            if early.is_err() {
                // The write is over now, with any outcome.
                let _ = save.await;
            }
        }
        // Writes are queued, so the first one is over when this one is.
        service.count_legacy_use(&caller, Millis(0));
        service.save_legacy_uses().await.unwrap();
        let requests: u64 =
            store.legacy_uses().await.unwrap().iter().map(|uses| uses.requests).sum();
        assert_eq!(requests, 2);
    }
}
