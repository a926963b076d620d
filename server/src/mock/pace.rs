//! How a mock server's time passes: it stands still, or runs, and it is moved at will.

use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard, watch};

use super::clock::{Clock, Kind};
use crate::clock::{Millis, SystemClock, TokioClock};

/// How often a clock that runs by itself looks for what has fallen due.
const TICK: Duration = Duration::from_millis(500);

/// The clock of a mock server.
#[derive(Debug)]
pub(super) struct MovableClock {
    pace: watch::Sender<Pace>,
    /// Held while what is due is done, so that each thing is told to one: the ticker, or the test.
    turn: Mutex<()>,
}

/// What a clock shows: its base, shifted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    base: Base,
    shift: i64,
}

#[derive(Debug, Clone, Copy)]
enum Base {
    /// Time stands still.
    Still,
    /// It runs from a moment on.
    Running(TokioClock),
    /// The machine's.
    Machine,
}

impl Pace {
    fn of(clock: &Clock) -> Self {
        match clock.0 {
            Kind::Frozen(at) => Self::still(at),
            Kind::Ticking(from) => Self::running(from),
            Kind::System => Self::machine(),
        }
    }

    const fn still(at: Millis) -> Self {
        Self { base: Base::Still, shift: at.0 }
    }

    fn running(from: Millis) -> Self {
        Self { base: Base::Running(TokioClock::starting_at(from)), shift: 0 }
    }

    const fn machine() -> Self {
        Self { base: Base::Machine, shift: 0 }
    }

    const fn runs(&self) -> bool {
        !matches!(self.base, Base::Still)
    }

    fn base(&self) -> Millis {
        match self.base {
            Base::Still => Millis(0),
            Base::Running(clock) => crate::clock::Clock::now(&clock),
            Base::Machine => crate::clock::Clock::now(&SystemClock),
        }
    }

    fn now(&self) -> Millis {
        self.base().plus(self.shift)
    }

    fn show(&mut self, at: Millis) {
        self.shift = at.0.saturating_sub(self.base().0);
    }
}

impl MovableClock {
    pub(super) fn from(clock: &Clock) -> Self {
        Self { pace: watch::Sender::new(Pace::of(clock)), turn: Mutex::default() }
    }

    pub(super) fn runs(&self) -> bool {
        self.pace.borrow().runs()
    }

    /// Waits for whoever else does what is due.
    pub(super) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Resolves when a clock that runs has run for a while, or when its pace has changed.
    pub(super) async fn beat(&self) {
        let mut pace = self.pace.subscribe();
        let runs = pace.borrow_and_update().runs();
        // It cannot fail: `self` holds the sender.
        let changed = pace.changed();
        if runs {
            let _ = tokio::time::timeout(TICK, changed).await;
        } else {
            let _ = changed.await;
        }
    }

    /// Makes it show a moment, which may be past.
    pub(super) fn show(&self, at: Millis) {
        // Nobody is told: whoever moves the clock does what falls due himself.
        self.pace.send_if_modified(|pace| {
            pace.show(at);
            false
        });
    }

    /// Moves it ahead to a moment; if it shows a later one, it stays.
    pub(super) fn reach(&self, at: Millis) {
        self.pace.send_if_modified(|pace| {
            if pace.now() < at {
                pace.show(at);
            }
            false
        });
    }

    /// Stands still from now on.
    pub(super) fn freeze(&self) {
        self.pace.send_modify(|pace| *pace = Pace::still(pace.now()));
    }

    /// Runs from what it shows, unless it runs.
    pub(super) fn tick(&self) {
        self.pace.send_if_modified(|pace| {
            let stood = !pace.runs();
            if stood {
                *pace = Pace::running(pace.now());
            }
            stood
        });
    }

    /// Shows what the machine's clock shows.
    pub(super) fn follow_system(&self) {
        self.pace.send_replace(Pace::machine());
    }
}

impl crate::clock::Clock for MovableClock {
    fn now(&self) -> Millis {
        self.pace.borrow().now()
    }
}
