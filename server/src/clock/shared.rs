//! The clock of a database that several servers share. Each of them goes by it, carried forward by its own machine's
//! monotonic time, so that all agree on when something is due, ends or expires, however wrong a machine's own
//! clock is. How wrong it is, is judged here too: other programs on the machine go by it, and certificates
//! are checked by it. Pure: it is given all times.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{MachineClocks, Millis, Reading, TwoClocks, stopwatch};

/// How far a machine's clock may be from the database's before that is logged, and before the server is not ready.
const NOTABLE: i64 = Millis::SECOND;
const TOO_FAR: i64 = 10 * Millis::SECOND;

/// How far the machine's clock is from the database's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Distance {
    Near,
    Notable,
    TooFar,
}

/// What is known of the database's clock.
#[derive(Debug, Default)]
struct Known {
    /// What it showed when the machine's monotonic time was zero; none before the first measurement.
    offset: Option<i64>,
    /// By how much the machine's clock is ahead of it.
    ahead: i64,
    distance: Option<Distance>,
}

/// The database's clock as this machine knows it.
pub(crate) struct SharedClock {
    machine: Box<dyn TwoClocks>,
    known: Mutex<Known>,
}

/// By how many milliseconds the machine's clock is ahead of the database's, or behind if negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Skew(pub(crate) i64);

impl Default for SharedClock {
    fn default() -> Self {
        Self::beside(MachineClocks(stopwatch()))
    }
}

impl SharedClock {
    /// The clock of a database beside these two of the machine.
    pub(crate) fn beside(machine: impl TwoClocks + 'static) -> Self {
        Self { machine: Box::new(machine), known: Mutex::default() }
    }

    /// The machine's clocks, for a measurement.
    pub(crate) fn machine(&self) -> Reading {
        self.machine.read()
    }

    /// Takes in that the database's clock showed `shown` at some moment between two readings of the machine's; answers
    /// the skew if it has become another order of magnitude.
    pub(crate) fn measured(&self, sent: Reading, shown: Millis, received: Reading) -> Option<Skew> {
        let mut known = self.known();
        let [earliest, latest] =
            [received, sent].map(|reading| shown.0.saturating_sub(millis(reading.monotonic)));
        // As long as it may be right it stays, so that the clock runs evenly however long an answer took. The
        // first is the earliest, so that what was written by this clock is due by the database's.
        let offset = known.offset.unwrap_or(earliest).clamp(earliest, latest.max(earliest));
        let ahead = received.wall.0 - offset.saturating_add(millis(received.monotonic));
        let distance = distance(ahead, known.distance.unwrap_or(Distance::Near));
        let has_changed = known.distance.unwrap_or(Distance::Near) != distance;
        *known = Known { offset: Some(offset), ahead, distance: Some(distance) };
        has_changed.then_some(Skew(ahead))
    }

    /// The skew, while it is so large that the server must not be used: one of the two clocks is wrong.
    pub(crate) fn too_far(&self) -> Option<Skew> {
        let known = self.known();
        (known.distance == Some(Distance::TooFar)).then_some(Skew(known.ahead))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TwoClocks for std::sync::Arc<SharedClock> {
    fn read(&self) -> Reading {
        let Reading { wall, monotonic } = self.machine.read();
        let offset = self.known().offset;
        let wall = offset.map_or(wall, |offset| Millis(offset).plus(millis(monotonic)));
        Reading { wall, monotonic }
    }
}

/// Half of a limit leads back below it: a clock that is just as far off as the limit is logged once.
fn distance(ahead: i64, before: Distance) -> Distance {
    let is_beyond = |limit: i64, distance: Distance| {
        ahead.saturating_abs() > if before >= distance { limit / 2 } else { limit }
    };
    if is_beyond(TOO_FAR, Distance::TooFar) {
        Distance::TooFar
    } else if is_beyond(NOTABLE, Distance::Notable) {
        Distance::Notable
    } else {
        Distance::Near
    }
}

fn millis(monotonic: Duration) -> i64 {
    i64::try_from(monotonic.as_millis()).unwrap_or(i64::MAX)
}

impl fmt::Debug for SharedClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedClock").field("known", &*self.known()).finish_non_exhaustive()
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

    /// The machine's clocks, the wall clock so many milliseconds after the monotonic one.
    #[derive(Debug, Clone)]
    struct Machine(Arc<Mutex<Reading>>);

    impl TwoClocks for Machine {
        fn read(&self) -> Reading {
            *self.0.lock().unwrap()
        }
    }

    const START: i64 = 1_000_000;

    fn reading(monotonic: i64, ahead: i64) -> Reading {
        let monotonic_time = Duration::from_millis(monotonic.unsigned_abs());
        Reading { wall: Millis(START + monotonic + ahead), monotonic: monotonic_time }
    }

    fn clock(ahead: i64) -> (Arc<SharedClock>, Machine) {
        let machine = Machine(Arc::new(Mutex::new(reading(0, ahead))));
        (Arc::new(SharedClock::beside(machine.clone())), machine)
    }

    #[test]
    fn the_database_counts_whatever_the_machine_s_clock_shows() {
        for ahead in [0, Millis::DAY, -Millis::DAY] {
            let (clock, machine) = clock(ahead);
            clock.measured(reading(0, ahead), Millis(START), reading(0, ahead));
            *machine.0.lock().unwrap() = reading(700, ahead);
            assert_eq!(clock.read().wall, Millis(START + 700));
            *machine.0.lock().unwrap() = reading(800, ahead + Millis::HOUR);
            assert_eq!(clock.read().wall, Millis(START + 800), "it was set, and no one has looked");
        }
    }

    #[test]
    fn a_slow_answer_moves_the_clock_no_further_than_it_can_be_wrong() {
        let (clock, _) = clock(0);
        // (sent, shown, received, what is known after it of the database's time zero)
        let table = [
            (10, 12, 16, -4),
            (100, 150, 190, -4),
            (200, 203, 205, -2),
            (300, 300, 360, -2),
            (400, 390, 405, -10),
        ];
        for (sent, shown, received, expected) in table {
            clock.measured(reading(sent, 0), Millis(START + shown), reading(received, 0));
            assert_eq!(clock.known().offset, Some(START + expected), "{shown}");
        }
    }

    #[test]
    fn a_skew_is_told_when_it_changes_and_not_at_each_look() {
        let (clock, _) = clock(0);
        // (by how much the machine is ahead, whether that is news, whether the server may be used)
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
        for (ahead, is_news, is_usable) in table {
            let moment = reading(5, ahead);
            let news = clock.measured(moment, Millis(START + 5), moment);
            assert_eq!(news, is_news.then_some(Skew(ahead)), "{ahead}");
            assert_eq!(clock.too_far().is_none(), is_usable, "{ahead}");
        }
    }

    #[test]
    fn a_skew_in_words() {
        assert_eq!(
            Skew(12_340).to_string(),
            "this machine's clock is 12.3 s ahead of the database's"
        );
        assert_eq!(Skew(-1_000).to_string(), "this machine's clock is 1.0 s behind the database's");
    }
}
