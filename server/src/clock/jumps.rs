//! Detects jumps of the machine's wall clock by comparing it with monotonic time, and decides by which time something may
//! expire, and when old data may be deleted. Pure: it is given both times.
//!
//! It cannot detect a jump while the process was not running, or drift of less than a minute between two looks.

use std::time::Duration;

use super::Millis;

/// How far the wall clock may drift from monotonic time between two looks; more is a jump.
const MAX_DRIFT_MILLIS: i64 = Millis::MINUTE;
/// How long the wall clock is in doubt after a jump and after the start: time to correct it.
const DOUBT_PERIOD: Duration = Duration::from_secs(600);

/// The times of the machine's two clocks, read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The time of day, which can be set.
    pub wall: Millis,
    /// The time since an arbitrary start, which cannot be set.
    pub monotonic: Duration,
}

impl Reading {
    /// What the wall clock would show at a later monotonic time, had it not been set since.
    fn wall_at(self, monotonic: Duration) -> Millis {
        let passed = monotonic.saturating_sub(self.monotonic).as_millis();
        self.wall.plus(i64::try_from(passed).unwrap_or(i64::MAX))
    }

    /// How far the wall clock of a later reading is from that, in milliseconds.
    fn drift_to(self, later: Self) -> i64 {
        later.wall.0.saturating_sub(self.wall_at(later.monotonic).0)
    }
}

/// Decides how far the wall clock can be trusted.
#[derive(Debug)]
pub(crate) struct JumpGuard {
    /// The latest look.
    last: Reading,
    /// The reading before the jump that gives the earliest time, while the clock is in doubt.
    before: Option<Reading>,
    /// The end of the doubt, in monotonic time.
    doubted_until: Duration,
}

impl JumpGuard {
    /// A guard at the start of the process. A clock that was wrong before cannot be distinguished from a correct one, so it is in
    /// doubt as after a jump.
    pub(crate) fn starting_at(first: Reading) -> Self {
        Self { last: first, before: None, doubted_until: first.monotonic + DOUBT_PERIOD }
    }

    /// Checks the clock; returns by how many milliseconds it has jumped since the last look, if it has.
    pub(crate) fn look(&mut self, reading: Reading) -> Option<i64> {
        if reading.monotonic < self.last.monotonic {
            return None;
        }
        let drift = self.last.drift_to(reading);
        let has_jumped = drift.saturating_abs() > MAX_DRIFT_MILLIS;
        if has_jumped {
            self.before = Some(self.earliest(reading.monotonic));
            self.doubted_until = reading.monotonic + DOUBT_PERIOD;
        }
        self.last = reading;
        has_jumped.then_some(drift)
    }

    /// The time by which something may expire: while the clock is in doubt, the earlier of what it shows and what it would
    /// show without the jump, because a late expiry loses nothing and an early one would.
    pub(crate) fn expiry(&self, reading: Reading) -> Millis {
        let has_jumped = self.last.drift_to(reading).saturating_abs() > MAX_DRIFT_MILLIS;
        if has_jumped || self.is_doubted(reading.monotonic) {
            reading.wall.min(self.earliest(reading.monotonic).wall_at(reading.monotonic))
        } else {
            reading.wall
        }
    }

    /// Whether old data may be deleted: not while the clock is in doubt, since it cannot be brought back.
    pub(crate) fn may_purge(&self, reading: Reading) -> bool {
        !self.is_doubted(reading.monotonic)
            && self.last.drift_to(reading).saturating_abs() <= MAX_DRIFT_MILLIS
    }

    fn is_doubted(&self, monotonic: Duration) -> bool {
        monotonic < self.doubted_until
    }

    /// The reading that gives the earliest of the possible times.
    fn earliest(&self, monotonic: Duration) -> Reading {
        let before = self.before.filter(|_| self.is_doubted(monotonic)).unwrap_or(self.last);
        if before.wall_at(monotonic) < self.last.wall_at(monotonic) { before } else { self.last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;
    const START: i64 = 1_000_000;

    /// The clocks `seconds` after the start, with the wall clock so many seconds off.
    fn at(seconds: u64, off: i64) -> Reading {
        let wall = START + i64::try_from(seconds).unwrap() + off;
        Reading { wall: Millis(wall * 1_000), monotonic: Duration::from_secs(seconds) }
    }

    /// A guard that was started long ago and has looked every second since.
    fn settled() -> JumpGuard {
        let mut guard = JumpGuard::starting_at(at(0, 0));
        assert!((1..=600).all(|second| guard.look(at(second, 0)).is_none()));
        guard
    }

    /// How many seconds the believed time is off, were the clock so many.
    fn believed(guard: &JumpGuard, seconds: u64, off: i64) -> i64 {
        guard.expiry(at(seconds, off)).0 / 1_000 - at(seconds, 0).wall.0 / 1_000
    }

    #[test]
    fn a_clock_that_runs_is_believed() {
        let guard = settled();
        assert!(guard.may_purge(at(600, 0)) && guard.may_purge(at(601, 60)));
        assert_eq!([0, 60, -60].map(|off| believed(&guard, 601, off)), [0, 60, -60]);
    }

    #[test]
    fn nothing_is_purged_in_the_first_ten_minutes() {
        let guard = JumpGuard::starting_at(at(0, 0));
        assert!(!guard.may_purge(at(0, 0)) && !guard.may_purge(at(599, 0)));
        assert!(guard.may_purge(at(600, 0)) && !guard.may_purge(at(600, 61)));
    }

    #[test]
    fn for_ten_minutes_after_a_jump_the_earlier_time_counts_and_nothing_is_purged() {
        // (the jump, what is believed after it, and after ten minutes)
        for (jump, doubted, later) in [(DAY, 0, DAY), (-DAY, -DAY, -DAY), (61, 0, 61)] {
            let mut guard = settled();
            assert_eq!(believed(&guard, 601, jump), doubted, "{jump}: before anyone has looked");
            assert!(!guard.may_purge(at(601, jump)));
            assert_eq!(guard.look(at(601, jump)), Some(jump * 1_000));
            for second in 602..1_201 {
                assert_eq!(guard.look(at(second, jump)), None);
                assert_eq!(believed(&guard, second, jump), doubted, "{jump} at {second}");
                assert!(!guard.may_purge(at(second, jump)));
            }
            assert_eq!(guard.look(at(1_201, jump)), None);
            assert_eq!(believed(&guard, 1_201, jump), later);
            assert!(guard.may_purge(at(1_201, jump)));
        }
    }

    #[test]
    fn of_several_jumps_the_earliest_time_counts_until_all_are_over() {
        let mut guard = settled();
        assert_eq!(guard.look(at(700, DAY)), Some(DAY * 1_000));
        assert_eq!(guard.look(at(800, 2 * DAY)), Some(DAY * 1_000));
        assert_eq!(believed(&guard, 1_350, 2 * DAY), 0);
        assert_eq!(guard.look(at(1_390, 0)), Some(-2 * DAY * 1_000), "set right");
        assert_eq!(believed(&guard, 1_400, 0), 0);
        assert!(!guard.may_purge(at(1_989, 0)) && guard.may_purge(at(1_990, 0)));
    }

    #[test]
    fn a_reading_that_comes_late_changes_nothing() {
        let mut guard = settled();
        assert_eq!(guard.look(at(10, DAY)), None);
        assert_eq!(believed(&guard, 601, 0), 0);
    }
}
