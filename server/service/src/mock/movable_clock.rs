//! The clock of a mock server while it runs: frozen, ticking or the machine's, and movable in each case.

use std::time::Duration;

use parcelo_domain::Millis;
use parcelo_system::clock::{Clock, SystemClock, TokioClock};
use parcelo_types::internal::time;
use tokio::sync::{Mutex, MutexGuard, watch};

use super::clock::{Clock as ClockSetting, ClockKind, try_parse_time};

/// Interval of a running clock's checks for due work, in tokio's time.
const TICK_INTERVAL: Duration = Duration::from_millis(500);

/// The clock of a mock server.
#[derive(Debug)]
pub(super) struct MovableClock {
    state: watch::Sender<ClockState>,
    /// The lock of the one task that executes due work: the ticker, or a test's call that moves the clock. Two at a
    /// time would each take some of the due steps, and a test could not tell which of them it caused.
    due_work: Mutex<DueWork>,
}

/// The knowledge of the ticker that nothing is due, with which it need not look.
#[derive(Debug, Default)]
pub(super) struct DueWork {
    idle: Option<Idle>,
}

/// A server on which nothing falls due before `until`, unless something is written.
#[derive(Debug)]
struct Idle {
    until: Millis,
    writes: u64,
}

impl DueWork {
    /// Returns `true` if something may be due, after so many writes since the server's start.
    pub(super) fn may_exist(&self, now: Millis, writes: u64) -> bool {
        self.idle.as_ref().is_none_or(|idle| idle.until <= now || idle.writes != writes)
    }

    /// Notes that after so many writes nothing falls due before `until`.
    pub(super) fn set_idle(&mut self, until: Millis, writes: u64) {
        self.idle = Some(Idle { until, writes });
    }

    /// Forgets what is known, because the data were replaced.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

/// The state of a clock, which shows its source's time, shifted.
#[derive(Debug, Clone, Copy)]
struct ClockState {
    source: TimeSource,
    shift_millis: i64,
}

#[derive(Debug, Clone, Copy)]
enum TimeSource {
    Frozen,
    /// Tokio's time, which a test can pause.
    Ticking(TokioClock),
    System,
}

/// A saved state of a clock and the time it showed.
#[derive(Debug, Clone, Copy)]
pub(super) struct SavedClock {
    state: ClockState,
    at: Millis,
}

impl SavedClock {
    /// Returns the clock as [`ClockSetting::parse`] reads it, and the time that it showed.
    pub(super) fn to_texts(self) -> (String, String) {
        let at = time::to_text(self.at.to_utc());
        let clock = match self.state.source {
            TimeSource::Frozen => format!("frozen={at}"),
            TimeSource::Ticking(_) => format!("ticking={at}"),
            TimeSource::System => "system".to_owned(),
        };
        (clock, at)
    }

    /// Returns the clock from the texts of [`SavedClock::to_texts`], or `None` for others.
    pub(super) fn parse(clock: &str, at: &str) -> Option<Self> {
        let state = ClockState::new(&ClockSetting::parse(clock)?);
        Some(Self { state, at: try_parse_time(at)?.into() })
    }
}

impl ClockState {
    fn new(clock: &ClockSetting) -> Self {
        match clock.0 {
            ClockKind::Frozen(at) => Self::frozen(at),
            ClockKind::Ticking(from) => Self::ticking(from),
            ClockKind::System => Self::system(),
        }
    }

    const fn frozen(at: Millis) -> Self {
        Self { source: TimeSource::Frozen, shift_millis: at.0 }
    }

    fn ticking(from: Millis) -> Self {
        Self { source: TimeSource::Ticking(TokioClock::starting_at(from)), shift_millis: 0 }
    }

    const fn system() -> Self {
        Self { source: TimeSource::System, shift_millis: 0 }
    }

    const fn is_running(&self) -> bool {
        !matches!(self.source, TimeSource::Frozen)
    }

    fn source_time(&self) -> Millis {
        match self.source {
            TimeSource::Frozen => Millis(0),
            TimeSource::Ticking(clock) => clock.now(),
            TimeSource::System => SystemClock.now(),
        }
    }

    fn now(&self) -> Millis {
        self.source_time().plus(self.shift_millis)
    }

    fn set(&mut self, at: Millis) {
        self.shift_millis = at.0.saturating_sub(self.source_time().0);
    }
}

impl MovableClock {
    pub(super) fn new(clock: &ClockSetting) -> Self {
        Self { state: watch::Sender::new(ClockState::new(clock)), due_work: Mutex::default() }
    }

    pub(super) fn is_running(&self) -> bool {
        self.state.borrow().is_running()
    }

    /// Waits until no other task executes due work, and excludes other tasks until the guard is dropped. The lock is
    /// fair: tasks get it in the order in which they asked.
    pub(super) async fn lock_due_work(&self) -> MutexGuard<'_, DueWork> {
        self.due_work.lock().await
    }

    /// Waits until a running clock may have passed due work, or the clock was frozen, resumed or restored.
    pub(super) async fn wait_for_tick(&self) {
        let mut state = self.state.subscribe();
        let is_running = state.borrow_and_update().is_running();
        // This cannot fail, because `self` holds the sender.
        let changed = state.changed();
        if is_running {
            let _ = tokio::time::timeout(TICK_INTERVAL, changed).await;
        } else {
            let _ = changed.await;
        }
    }

    /// Sets the clock to a time, which may be in the past.
    pub(super) fn set(&self, at: Millis) {
        // Waiters in `wait_for_tick` are not woken: the task that moves the clock holds the lock and executes due work
        // itself.
        self.state.send_if_modified(|state| {
            state.set(at);
            false
        });
    }

    /// Moves the clock ahead to a time, unless it shows a later one already.
    pub(super) fn advance_to(&self, at: Millis) {
        // As in `set`, waiters are not woken.
        self.state.send_if_modified(|state| {
            if state.now() < at {
                state.set(at);
            }
            false
        });
    }

    /// Returns the clock's state and the time it shows, for [`MovableClock::restore`].
    pub(super) fn save(&self) -> SavedClock {
        let state = *self.state.borrow();
        SavedClock { state, at: state.now() }
    }

    /// Shows a saved time again, and continues from it as it did then.
    pub(super) fn restore(&self, saved: SavedClock) {
        let SavedClock { mut state, at } = saved;
        state.set(at);
        self.state.send_replace(state);
    }

    /// Stops the clock at the time it shows.
    pub(super) fn freeze(&self) {
        self.state.send_modify(|state| *state = ClockState::frozen(state.now()));
    }

    /// Lets a frozen clock tick from the time it shows.
    pub(super) fn resume(&self) {
        self.state.send_if_modified(|state| {
            let was_frozen = !state.is_running();
            if was_frozen {
                *state = ClockState::ticking(state.now());
            }
            was_frozen
        });
    }

    /// Makes the clock follow the machine's.
    pub(super) fn follow_system(&self) {
        self.state.send_replace(ClockState::system());
    }
}

impl Clock for MovableClock {
    fn now(&self) -> Millis {
        self.state.borrow().now()
    }
}
