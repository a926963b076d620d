//! Detects jumps of the machine's wall clock by comparing it with monotonic time, and decides which time to use for
//! expiry and when old data may be deleted. This code is pure: the caller passes both times.
//!
//! It cannot detect a jump while the process was not running, or a drift of less than a minute between two checks.

use std::time::Duration;

use super::Millis;

/// Maximum drift of the wall clock from monotonic time between two checks, in milliseconds. A larger drift is a jump.
const MAX_DRIFT_MILLIS: i64 = Millis::MINUTE;
/// Time for which the wall clock is untrusted after a jump and after the start, so that it can be corrected meanwhile.
const UNTRUSTED_PERIOD: Duration = Duration::from_secs(600);

/// The times of the machine's two clocks, read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// The time of day, which can be set.
    pub wall: Millis,
    /// The time since an arbitrary start, which cannot be set.
    pub monotonic: Duration,
}

impl ClockReading {
    /// Returns the time that the wall clock shows at a later monotonic time unless it is set in between.
    fn extrapolated_wall(self, monotonic: Duration) -> Millis {
        let passed = monotonic.saturating_sub(self.monotonic).as_millis();
        self.wall.plus(i64::try_from(passed).unwrap_or(i64::MAX))
    }

    /// Returns the drift at a later reading: the milliseconds by which its wall clock is ahead of this reading,
    /// advanced by the monotonic time in between.
    fn drift_until(self, later: Self) -> i64 {
        later.wall.0.saturating_sub(self.extrapolated_wall(later.monotonic).0)
    }
}

/// A guard that decides how far the wall clock can be trusted.
#[derive(Debug)]
pub struct JumpGuard {
    /// The latest reading.
    last: ClockReading,
    /// While the clock is untrusted, the reading from before a jump that gives the earliest time.
    before_jump: Option<ClockReading>,
    /// The monotonic time until which the clock is untrusted.
    untrusted_until: Duration,
}

impl JumpGuard {
    /// Creates a guard at the start of the process. The clock is untrusted, as after a jump, because it may have been
    /// wrong before the start.
    pub fn starting_at(first: ClockReading) -> Self {
        Self { last: first, before_jump: None, untrusted_until: first.monotonic + UNTRUSTED_PERIOD }
    }

    /// Checks the clock. Returns the jump since the last check in milliseconds, or `None` if there was none.
    pub fn check(&mut self, reading: ClockReading) -> Option<i64> {
        if reading.monotonic < self.last.monotonic {
            return None;
        }
        let drift = self.last.drift_until(reading);
        let has_jumped = drift.saturating_abs() > MAX_DRIFT_MILLIS;
        if has_jumped {
            self.before_jump = Some(self.earliest_reading(reading.monotonic));
            self.untrusted_until = reading.monotonic + UNTRUSTED_PERIOD;
        }
        self.last = reading;
        has_jumped.then_some(drift)
    }

    /// Returns the time against which expiry is checked. While the clock is untrusted, it is the earlier of the time
    /// shown and the time without the jump, because an early expiry loses data and a late one does not.
    pub fn expiry_now(&self, reading: ClockReading) -> Millis {
        let has_jumped = self.last.drift_until(reading).saturating_abs() > MAX_DRIFT_MILLIS;
        if has_jumped || self.is_untrusted(reading.monotonic) {
            reading
                .wall
                .min(self.earliest_reading(reading.monotonic).extrapolated_wall(reading.monotonic))
        } else {
            reading.wall
        }
    }

    /// Returns `true` if old data may be deleted: never while the clock is untrusted, because deletion is final.
    pub fn may_purge(&self, reading: ClockReading) -> bool {
        !self.is_untrusted(reading.monotonic)
            && self.last.drift_until(reading).saturating_abs() <= MAX_DRIFT_MILLIS
    }

    fn is_untrusted(&self, monotonic: Duration) -> bool {
        monotonic < self.untrusted_until
    }

    /// Returns the reading that gives the earliest of the possible times.
    fn earliest_reading(&self, monotonic: Duration) -> ClockReading {
        let before = self.before_jump.filter(|_| self.is_untrusted(monotonic)).unwrap_or(self.last);
        if before.extrapolated_wall(monotonic) < self.last.extrapolated_wall(monotonic) {
            before
        } else {
            self.last
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;
    const START: i64 = 1_000_000;

    /// Returns a reading `seconds` after the start, with the wall clock off by `off` seconds.
    fn reading_at(seconds: u64, off: i64) -> ClockReading {
        let wall = START + i64::try_from(seconds).unwrap() + off;
        ClockReading { wall: Millis(wall * 1_000), monotonic: Duration::from_secs(seconds) }
    }

    /// Creates a guard that was started long ago and has checked every second since.
    fn settled_guard() -> JumpGuard {
        let mut guard = JumpGuard::starting_at(reading_at(0, 0));
        assert!((1..=600).all(|second| guard.check(reading_at(second, 0)).is_none()));
        guard
    }

    /// Returns the error of the expiry time in seconds if the wall clock is off by `off` seconds.
    fn expiry_error_seconds(guard: &JumpGuard, seconds: u64, off: i64) -> i64 {
        guard.expiry_now(reading_at(seconds, off)).0 / 1_000 - reading_at(seconds, 0).wall.0 / 1_000
    }

    #[test]
    fn a_steady_clock_is_trusted() {
        let guard = settled_guard();
        assert!(guard.may_purge(reading_at(600, 0)) && guard.may_purge(reading_at(601, 60)));
        assert_eq!([0, 60, -60].map(|off| expiry_error_seconds(&guard, 601, off)), [0, 60, -60]);
    }

    #[test]
    fn nothing_is_purged_in_the_first_ten_minutes() {
        let guard = JumpGuard::starting_at(reading_at(0, 0));
        assert!(!guard.may_purge(reading_at(0, 0)) && !guard.may_purge(reading_at(599, 0)));
        assert!(guard.may_purge(reading_at(600, 0)) && !guard.may_purge(reading_at(600, 61)));
    }

    #[test]
    fn after_a_jump_the_earlier_time_counts_for_ten_minutes() {
        // (the jump, the error of the time for expiry after it, and after ten minutes)
        for (jump, doubted, later) in [(DAY, 0, DAY), (-DAY, -DAY, -DAY), (61, 0, 61)] {
            let mut guard = settled_guard();
            assert_eq!(
                expiry_error_seconds(&guard, 601, jump),
                doubted,
                "{jump}: before the next check"
            );
            assert!(!guard.may_purge(reading_at(601, jump)));
            assert_eq!(guard.check(reading_at(601, jump)), Some(jump * 1_000));
            for second in 602..1_201 {
                assert_eq!(guard.check(reading_at(second, jump)), None);
                assert_eq!(
                    expiry_error_seconds(&guard, second, jump),
                    doubted,
                    "{jump} at {second}"
                );
                assert!(!guard.may_purge(reading_at(second, jump)));
            }
            assert_eq!(guard.check(reading_at(1_201, jump)), None);
            assert_eq!(expiry_error_seconds(&guard, 1_201, jump), later);
            assert!(guard.may_purge(reading_at(1_201, jump)));
        }
    }

    #[test]
    fn the_earliest_time_of_several_jumps_counts() {
        let mut guard = settled_guard();
        assert_eq!(guard.check(reading_at(700, DAY)), Some(DAY * 1_000));
        assert_eq!(guard.check(reading_at(800, 2 * DAY)), Some(DAY * 1_000));
        assert_eq!(expiry_error_seconds(&guard, 1_350, 2 * DAY), 0);
        assert_eq!(
            guard.check(reading_at(1_390, 0)),
            Some(-2 * DAY * 1_000),
            "set back to the correct time"
        );
        assert_eq!(expiry_error_seconds(&guard, 1_400, 0), 0);
        assert!(!guard.may_purge(reading_at(1_989, 0)) && guard.may_purge(reading_at(1_990, 0)));
    }

    #[test]
    fn a_late_reading_changes_nothing() {
        let mut guard = settled_guard();
        assert_eq!(guard.check(reading_at(10, DAY)), None);
        assert_eq!(expiry_error_seconds(&guard, 601, 0), 0);
    }
}
