//! Decides how long a write waits for rows that another connection has locked. Another server's group unlocks its rows
//! with its COMMIT, so a long wait helps. A forgotten `BEGIN` in psql may lock rows for hours, and all other writes of
//! the server queue behind each write that waits, so waits must then be short.

use std::time::{Duration, Instant};

/// Time after which one write waits long again. Groups whose COMMITs are slow (a distant standby, a slow disk) lock
/// rows for longer than a short wait. If waits stayed short, no wait would ever be long enough, and orders of a
/// tenant that is busy on two servers would be refused indefinitely.
const SHORT_WAIT_PERIOD: Duration = Duration::from_secs(10);

/// The lock timeout of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockWait {
    /// Longer than PostgreSQL waits before it looks for deadlocks (`deadlock_timeout`, 1 s), so that it finds them.
    Long,
    /// Used while a row stays locked for longer than the long wait.
    Short,
}

impl LockWait {
    /// Returns the statements that begin a transaction with this wait.
    pub(super) const fn begin(self) -> &'static str {
        match self {
            Self::Long => "BEGIN; SET LOCAL lock_timeout = '1500ms'",
            Self::Short => "BEGIN; SET LOCAL lock_timeout = '50ms'",
        }
    }
}

/// The recent lock timeouts, which decide how long the next writes wait.
#[derive(Debug, Default)]
pub(super) struct LockWaits {
    /// The time at which a write's long wait timed out; `None` once a group was completed.
    short_since: Option<Instant>,
}

impl LockWaits {
    /// Returns the wait of a group.
    pub(super) const fn group_wait(&self) -> LockWait {
        if self.short_since.is_some() { LockWait::Short } else { LockWait::Long }
    }

    /// Returns the wait of the first write that is retried alone.
    pub(super) fn first_wait(&self, now: Instant) -> LockWait {
        let is_short = |since| now.saturating_duration_since(since) < SHORT_WAIT_PERIOD;
        if self.short_since.is_some_and(is_short) { LockWait::Short } else { LockWait::Long }
    }

    /// Records whether a group was completed after the first of its writes had waited alone.
    pub(super) const fn record_outcome(
        &mut self,
        is_completed: bool,
        first: LockWait,
        now: Instant,
    ) {
        if is_completed {
            self.short_since = None;
        } else if matches!(first, LockWait::Long) {
            self.short_since = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parcelo_system::clock::monotonic_now;

    /// Runs a group with one write. The write's row is locked again for a while whenever it is free. Returns `true` if
    /// the write was done.
    fn commit(waits: &mut LockWaits, locked_for: Duration, now: Instant) -> bool {
        let outlasts = |wait| match wait {
            LockWait::Long => locked_for < Duration::from_millis(1_500),
            LockWait::Short => locked_for < Duration::from_millis(50),
        };
        let first = waits.first_wait(now);
        let is_done = outlasts(waits.group_wait()) || outlasts(first);
        waits.record_outcome(is_done, first, now);
        is_done
    }

    #[test]
    fn short_waits_end_even_if_commits_take_longer() {
        let (mut waits, began) = (LockWaits::default(), monotonic_now());
        let second = |second| began + Duration::from_secs(second);
        let slow_commit = Duration::from_millis(200);
        assert!(commit(&mut waits, slow_commit, began));
        assert!(!commit(&mut waits, Duration::from_secs(60), began), "a forgotten BEGIN");
        let refused = (1..60).filter(|at| !commit(&mut waits, slow_commit, second(*at))).count();
        assert_eq!(refused, 9, "for less than ten seconds after it");
        assert_eq!(waits.group_wait(), LockWait::Long);
    }

    #[test]
    fn a_locked_row_gets_one_long_wait_every_ten_seconds() {
        let (mut waits, began) = (LockWaits::default(), monotonic_now());
        let long = (0..60).filter(|second| {
            let now = began + Duration::from_secs(*second);
            let first = waits.first_wait(now);
            assert!(!commit(&mut waits, Duration::MAX, now));
            first == LockWait::Long
        });
        assert_eq!(long.collect::<Vec<_>>(), [0, 10, 20, 30, 40, 50]);
    }
}
