//! The day on which each API key was last used. It is recorded in memory and written once a minute if it has changed,
//! so at most once a day for each key and server. A crash loses the last minute.

use std::sync::{PoisonError, RwLock};

use parcelo_domain::{AccountRowId, Millis, activity::epoch_day, key_uses::LastUseDays};

use super::{Caller, Refusal, Service};

/// The last day on which each key was used, and those days that are not written yet.
#[derive(Debug, Default)]
pub(super) struct KeyUses(RwLock<KeyUseDays>);

#[derive(Debug, Default)]
struct KeyUseDays {
    days: LastUseDays,
    unsaved: LastUseDays,
}

impl KeyUses {
    pub(super) fn clear(&self) {
        self.update(|uses| *uses = KeyUseDays::default());
    }

    fn record(&self, key: i64, day: i64) {
        let uses = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_known = uses.days.get(&key).is_some_and(|last| day <= *last);
        drop(uses);
        if !is_known {
            self.update(|uses| {
                uses.days.insert(key, day);
                uses.unsaved.insert(key, day);
            });
        }
    }

    fn take_unsaved(&self) -> LastUseDays {
        self.update(|uses| std::mem::take(&mut uses.unsaved))
    }

    /// Puts back days that could not be written, unless a later use was recorded meanwhile.
    fn restore_unsaved(&self, days: LastUseDays) {
        self.update(|uses| {
            for (key, day) in days {
                uses.unsaved.entry(key).or_insert(day);
            }
        });
    }

    fn update<T>(&self, change: impl FnOnce(&mut KeyUseDays) -> T) -> T {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Service {
    /// Records that a key was used.
    pub fn record_key_use(&self, caller: &Caller, now: Millis) {
        self.key_uses.record(caller.key.row, epoch_day(now));
    }

    /// Writes the uses that were recorded since the last call.
    pub async fn save_key_uses(&self) -> Result<(), Refusal> {
        let days = self.key_uses.take_unsaved();
        if days.is_empty() {
            return Ok(());
        }
        let saved = self.store.save_key_uses(days.clone()).await;
        if saved.is_err() {
            self.key_uses.restore_unsaved(days);
        }
        Ok(saved?)
    }

    /// Returns the day on which each key of an account, or of all accounts, was last used, up to now. Keys that were
    /// never used are left out.
    pub async fn key_uses(&self, account: Option<AccountRowId>) -> Result<LastUseDays, Refusal> {
        self.save_key_uses().await?;
        Ok(self.store.key_uses(account).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_written_once_a_day_and_again_after_an_error() {
        let uses = KeyUses::default();
        (0..3).for_each(|_| uses.record(7, 20_000));
        assert_eq!(uses.take_unsaved(), LastUseDays::from([(7, 20_000)]));
        uses.record(7, 20_000);
        // Setting the clock back does not move a recorded day back.
        uses.record(7, 19_999);
        assert_eq!(uses.take_unsaved(), LastUseDays::default());
        uses.restore_unsaved(LastUseDays::from([(7, 20_000), (8, 20_000)]));
        uses.record(7, 20_001);
        uses.restore_unsaved(LastUseDays::from([(7, 20_000)]));
        assert_eq!(uses.take_unsaved(), LastUseDays::from([(7, 20_001), (8, 20_000)]));
    }
}
