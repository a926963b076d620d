//! The clock of a database that several servers share. Every server follows it, advanced by its machine's monotonic
//! time, so that all agree on when something is due or expires, even if a machine's clock is wrong. The skew of the
//! machine's clock is checked here too, because other programs and certificate checks rely on that clock. This code is
//! pure: the caller passes all times.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{ClockReading, ClockSource, MachineClocks, Millis, monotonic_now};

/// Minimum skew of the machine's clock that is logged, in milliseconds.
const MIN_LOGGED_SKEW_MILLIS: i64 = Millis::SECOND;
/// Maximum skew with which the server may be used, in milliseconds.
const MAX_SKEW_MILLIS: i64 = 10 * Millis::SECOND;

/// The severity of the skew between the machine's clock and the database's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SkewLevel {
    Negligible,
    Logged,
    Excessive,
}

/// The last measurement of the database's clock.
#[derive(Debug, Default)]
struct SkewMeasurement {
    /// The database's time when the machine's monotonic time was zero; `None` before the first measurement.
    offset: Option<i64>,
    /// The milliseconds by which the machine's clock is ahead of the database's.
    ahead: i64,
    level: Option<SkewLevel>,
}

/// The database's clock as this machine knows it.
pub struct SharedClock {
    machine: Box<dyn ClockSource>,
    measurement: Mutex<SkewMeasurement>,
}

/// The milliseconds by which the machine's clock is ahead of the database's, or behind if negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skew(pub i64);

impl Default for SharedClock {
    fn default() -> Self {
        Self::with_machine_clocks(MachineClocks(monotonic_now()))
    }
}

impl SharedClock {
    /// Creates the clock of a database, measured against these machine clocks.
    pub fn with_machine_clocks(machine: impl ClockSource + 'static) -> Self {
        Self { machine: Box::new(machine), measurement: Mutex::default() }
    }

    /// Reads the machine's clocks for a measurement.
    pub fn read_machine(&self) -> ClockReading {
        self.machine.read()
    }

    /// Records that the database's clock showed `shown` at some time between two readings of the machine's. Returns the
    /// skew if its level has changed.
    pub fn record_measurement(
        &self,
        sent: ClockReading,
        shown: Millis,
        received: ClockReading,
    ) -> Option<Skew> {
        let mut measurement = self.measurement();
        let [earliest, latest] =
            [received, sent].map(|reading| shown.0.saturating_sub(millis(reading.monotonic)));
        // Keep the offset as long as the measurement allows it, so that slow responses do not make the clock jump. The
        // first offset is the earliest possible, so that anything due by this clock is also due by the database's.
        let offset = measurement.offset.unwrap_or(earliest).clamp(earliest, latest.max(earliest));
        let ahead = received.wall.0 - offset.saturating_add(millis(received.monotonic));
        let level = skew_level(ahead, measurement.level.unwrap_or(SkewLevel::Negligible));
        let has_changed = measurement.level.unwrap_or(SkewLevel::Negligible) != level;
        *measurement = SkewMeasurement { offset: Some(offset), ahead, level: Some(level) };
        has_changed.then_some(Skew(ahead))
    }

    /// Returns the skew if it is so large that the server must not be used, because one of the clocks is wrong.
    pub fn excessive_skew(&self) -> Option<Skew> {
        let measurement = self.measurement();
        (measurement.level == Some(SkewLevel::Excessive)).then_some(Skew(measurement.ahead))
    }

    fn measurement(&self) -> MutexGuard<'_, SkewMeasurement> {
        self.measurement.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClockSource for std::sync::Arc<SharedClock> {
    fn read(&self) -> ClockReading {
        let ClockReading { wall, monotonic } = self.machine.read();
        let offset = self.measurement().offset;
        let wall = offset.map_or(wall, |offset| Millis(offset).plus(millis(monotonic)));
        ClockReading { wall, monotonic }
    }
}

/// Classifies a skew of `ahead` milliseconds. It returns to a lower level only at half the limit, so that a clock at
/// the limit is logged once.
fn skew_level(ahead: i64, previous: SkewLevel) -> SkewLevel {
    let exceeds = |limit: i64, level: SkewLevel| {
        ahead.saturating_abs() > if previous >= level { limit / 2 } else { limit }
    };
    if exceeds(MAX_SKEW_MILLIS, SkewLevel::Excessive) {
        SkewLevel::Excessive
    } else if exceeds(MIN_LOGGED_SKEW_MILLIS, SkewLevel::Logged) {
        SkewLevel::Logged
    } else {
        SkewLevel::Negligible
    }
}

fn millis(monotonic: Duration) -> i64 {
    i64::try_from(monotonic.as_millis()).unwrap_or(i64::MAX)
}

impl fmt::Debug for SharedClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedClock")
            .field("measurement", &*self.measurement())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Skew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, tenths) = (self.0.unsigned_abs() / 1_000, self.0.unsigned_abs() / 100 % 10);
        let direction = if self.0 < 0 { "behind" } else { "ahead of" };
        write!(f, "this machine's clock is {seconds}.{tenths} s {direction} the database's")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// The machine's clocks, set by the test.
    #[derive(Debug, Clone)]
    struct Machine(Arc<Mutex<ClockReading>>);

    impl ClockSource for Machine {
        fn read(&self) -> ClockReading {
            *self.0.lock().unwrap()
        }
    }

    const START: i64 = 1_000_000;

    fn reading(monotonic: i64, ahead: i64) -> ClockReading {
        let monotonic_time = Duration::from_millis(monotonic.unsigned_abs());
        ClockReading { wall: Millis(START + monotonic + ahead), monotonic: monotonic_time }
    }

    fn clock(ahead: i64) -> (Arc<SharedClock>, Machine) {
        let machine = Machine(Arc::new(Mutex::new(reading(0, ahead))));
        (Arc::new(SharedClock::with_machine_clocks(machine.clone())), machine)
    }

    #[test]
    fn time_follows_the_database_not_the_machine() {
        for ahead in [0, Millis::DAY, -Millis::DAY] {
            let (clock, machine) = clock(ahead);
            clock.record_measurement(reading(0, ahead), Millis(START), reading(0, ahead));
            *machine.0.lock().unwrap() = reading(700, ahead);
            assert_eq!(clock.read().wall, Millis(START + 700));
            *machine.0.lock().unwrap() = reading(800, ahead + Millis::HOUR);
            assert_eq!(clock.read().wall, Millis(START + 800), "the machine's clock was set since");
        }
    }

    #[test]
    fn a_slow_response_moves_the_clock_only_as_far_as_needed() {
        let (clock, _) = clock(0);
        // (sent, shown, received, offset of the database's clock that is known afterwards)
        let table = [
            (10, 12, 16, -4),
            (100, 150, 190, -4),
            (200, 203, 205, -2),
            (300, 300, 360, -2),
            (400, 390, 405, -10),
        ];
        for (sent, shown, received, expected) in table {
            clock.record_measurement(reading(sent, 0), Millis(START + shown), reading(received, 0));
            assert_eq!(clock.measurement().offset, Some(START + expected), "{shown}");
        }
    }

    #[test]
    fn a_skew_is_reported_when_it_changes() {
        let (clock, _) = clock(0);
        // (milliseconds that the machine is ahead, whether that is reported, whether the server may be used)
        let table = [
            (900, false, true),
            (1_001, true, true),
            (999, false, true),
            (600, false, true),
            (400, true, true),
            (-2_000, true, true),
            (-10_000, false, true),
            (-10_001, true, false),
            (-9_000, false, false),
            (-5_000, true, true),
            (Millis::DAY, true, false),
            (0, true, true),
        ];
        for (ahead, is_reported, is_usable) in table {
            let moment = reading(5, ahead);
            let news = clock.record_measurement(moment, Millis(START + 5), moment);
            assert_eq!(news, is_reported.then_some(Skew(ahead)), "{ahead}");
            assert_eq!(clock.excessive_skew().is_none(), is_usable, "{ahead}");
        }
    }

    #[test]
    fn a_skew_is_displayed_in_seconds() {
        assert_eq!(
            Skew(12_340).to_string(),
            "this machine's clock is 12.3 s ahead of the database's"
        );
        assert_eq!(Skew(-1_000).to_string(), "this machine's clock is 1.0 s behind the database's");
    }
}
