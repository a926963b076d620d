//! The day on which each API key was last used. It is noted in memory and written once a minute if it is new, so at
//! most once a day for each key and server. A crash loses a minute of it.

use std::sync::{PoisonError, RwLock};

use super::{Caller, Refusal, Service};
use crate::{
    clock::Millis,
    domain::{AccountRowId, activity::day_of, key_uses::LastUses},
};

/// The last day on which each key was used, and those days that are not written yet.
#[derive(Debug, Default)]
pub(super) struct KeyUses(RwLock<Seen>);

#[derive(Debug, Default)]
struct Seen {
    days: LastUses,
    to_keep: LastUses,
}

impl KeyUses {
    pub(super) fn clear(&self) {
        self.change(|seen| *seen = Seen::default());
    }

    fn note(&self, key: i64, day: i64) {
        let seen = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_known = seen.days.get(&key).is_some_and(|last| day <= *last);
        drop(seen);
        if !is_known {
            self.change(|seen| {
                seen.days.insert(key, day);
                seen.to_keep.insert(key, day);
            });
        }
    }

    fn take(&self) -> LastUses {
        self.change(|seen| std::mem::take(&mut seen.to_keep))
    }

    /// Puts back days that could not be written, unless a later use was noted meanwhile.
    fn put_back(&self, days: LastUses) {
        self.change(|seen| {
            for (key, day) in days {
                seen.to_keep.entry(key).or_insert(day);
            }
        });
    }

    fn change<T>(&self, change: impl FnOnce(&mut Seen) -> T) -> T {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Service {
    /// Notes that a key was used.
    pub fn note_key_use(&self, caller: &Caller, now: Millis) {
        self.key_uses.note(caller.key.row, day_of(now));
    }

    /// Writes the uses noted since the last call.
    pub async fn keep_key_uses(&self) -> Result<(), Refusal> {
        let days = self.key_uses.take();
        if days.is_empty() {
            return Ok(());
        }
        let kept = self.store.keep_key_uses(days.clone()).await;
        if kept.is_err() {
            self.key_uses.put_back(days);
        }
        Ok(kept?)
    }

    /// Returns the last day of use of each of an account's keys, up to this moment. Keys that were never used are left
    /// out.
    #[cfg(feature = "server")]
    pub(crate) async fn key_uses_of(&self, account: AccountRowId) -> Result<LastUses, Refusal> {
        self.keep_key_uses().await?;
        Ok(self.store.key_uses(account).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_written_once_a_day_and_again_after_an_error() {
        let uses = KeyUses::default();
        (0..3).for_each(|_| uses.note(7, 20_000));
        assert_eq!(uses.take(), LastUses::from([(7, 20_000)]));
        uses.note(7, 20_000);
        // A clock that was set back makes no day earlier.
        uses.note(7, 19_999);
        assert_eq!(uses.take(), LastUses::default());
        uses.put_back(LastUses::from([(7, 20_000), (8, 20_000)]));
        uses.note(7, 20_001);
        uses.put_back(LastUses::from([(7, 20_000)]));
        assert_eq!(uses.take(), LastUses::from([(7, 20_001), (8, 20_000)]));
    }
}
