//! Who uses the legacy API: counted here, and kept in the store once a minute, for a count that is
//! lost in a crash hurts nobody and a write for each read would.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{Caller, Refusal, Service};
use crate::{clock::Millis, ids::named};

/// Requests by key and day since they were last kept.
#[derive(Debug, Default)]
pub(super) struct Uses(Mutex<HashMap<(i64, i64), u64>>);

impl Uses {
    pub(super) fn clear(&self) {
        self.counts().clear();
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<(i64, i64), u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service {
    /// Counts a request.
    pub fn count_legacy_use(&self, caller: &Caller, now: Millis) {
        let day = now.0.div_euclid(Millis::DAY);
        *self.legacy_uses.counts().entry((caller.key.row, day)).or_default() += 1;
    }

    /// Writes down what was counted.
    pub async fn keep_legacy_uses(&self) -> Result<(), Refusal> {
        let counted = std::mem::take(&mut *self.legacy_uses.counts());
        if counted.is_empty() {
            return Ok(());
        }
        let kept = self.store.add_legacy_uses(counted.clone()).await;
        if kept.is_err() {
            let mut counts = self.legacy_uses.counts();
            for (of, requests) in counted {
                *counts.entry(of).or_default() += requests;
            }
        }
        Ok(kept?)
    }

    /// A key for a write whose caller gave none: each call counts.
    pub fn fresh_key(&self) -> String {
        named("legacy", self.ids.ulid(self.now()))
    }
}
