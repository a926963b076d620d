//! Time: the only module that reads the wall clock. All other code receives the time as an argument.

mod jumps;
pub mod shared;

use std::{
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use parcelo_domain::Millis;

pub use jumps::{ClockReading, JumpGuard};

/// A source of the current time.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Millis;

    /// Returns the time against which expiry is checked. It is earlier than now while the clock is untrusted after a
    /// jump.
    fn expiry_now(&self) -> Millis {
        self.now()
    }

    /// Returns `true` if old data may be deleted.
    fn may_purge(&self) -> bool {
        true
    }

    /// Checks for a jump. Returns the milliseconds by which the clock has jumped since the last check, or `None`. A
    /// clock that a test moves does not jump.
    fn check_for_jump(&self) -> Option<i64> {
        None
    }
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// The source of the wall time and the monotonic time of a [`GuardedClock`].
pub trait ClockSource: fmt::Debug + Send + Sync {
    /// Reads both times together.
    fn read(&self) -> ClockReading;
}

/// The machine's two clocks.
#[derive(Debug)]
pub struct MachineClocks(Instant);

impl ClockSource for MachineClocks {
    fn read(&self) -> ClockReading {
        let monotonic = monotonic_now().saturating_duration_since(self.0);
        ClockReading { wall: SystemClock.now(), monotonic }
    }
}

/// The machine's clock with a guard against jumps. It shows the machine's time, but for a while after a jump, nothing
/// expires early and nothing is deleted.
#[derive(Debug)]
pub struct GuardedClock<T = MachineClocks> {
    clocks: T,
    guard: Mutex<JumpGuard>,
}

impl GuardedClock {
    /// Guards the machine's clock from now on.
    pub fn starting_now() -> Self {
        Self::from_clocks(MachineClocks(monotonic_now()))
    }
}

impl<T: ClockSource> GuardedClock<T> {
    /// Guards any two clocks from now on.
    pub fn from_clocks(clocks: T) -> Self {
        let guard = Mutex::new(JumpGuard::starting_at(clocks.read()));
        Self { clocks, guard }
    }

    fn guard(&self) -> MutexGuard<'_, JumpGuard> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ClockSource> Clock for GuardedClock<T> {
    fn now(&self) -> Millis {
        self.clocks.read().wall
    }

    fn expiry_now(&self) -> Millis {
        self.guard().expiry_now(self.clocks.read())
    }

    fn may_purge(&self) -> bool {
        self.guard().may_purge(self.clocks.read())
    }

    fn check_for_jump(&self) -> Option<i64> {
        self.guard().check(self.clocks.read())
    }
}

/// A clock that shows the same time until it is set.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Creates a clock that shows `now`.
    pub const fn at(now: Millis) -> Self {
        Self(AtomicI64::new(now.0))
    }

    /// Makes the clock show `now`.
    pub fn set(&self, now: Millis) {
        self.0.store(now.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Millis {
        Millis(self.0.load(Ordering::SeqCst))
    }
}

/// A clock that starts at a time and runs in tokio's time: real time or, on a paused runtime, the time of its tasks'
/// sleeps.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    origin: Millis,
    start: tokio::time::Instant,
}

impl TokioClock {
    /// Creates a clock that shows `origin` now.
    pub fn starting_at(origin: Millis) -> Self {
        Self { origin, start: runtime_now() }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Millis {
        let run = self.start.elapsed().as_millis();
        self.origin.plus(i64::try_from(run).unwrap_or(i64::MAX))
    }
}

/// Returns monotonic real time, for the age of cached values and the duration of work. It is independent of the
/// service's clock. On a runtime whose time a test has paused, it is that time, so that results do not depend on the
/// machine's speed.
pub fn monotonic_now() -> Instant {
    runtime_now().into_std()
}

/// Returns the runtime's time, which its sleeps follow: a test can pause and advance it.
#[expect(clippy::disallowed_methods, reason = "the one place that reads tokio's time")]
pub fn runtime_now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// Returns `true` if a duration has elapsed in monotonic time since `start`.
pub fn has_elapsed(start: Instant, duration: Duration) -> bool {
    monotonic_now().saturating_duration_since(start) > duration
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_shows_what_it_is_set_to() {
        let clock = ManualClock::at(Millis(5));
        clock.set(clock.now().plus(Millis::SECOND));
        assert_eq!(clock.now(), Millis(1_005));
        assert_eq!(Millis(-1).second(), -1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_tokio_clock_moves_with_the_sleeps_of_a_paused_runtime_only() {
        let clock = TokioClock::starting_at(Millis(5));
        tokio::task::yield_now().await;
        assert_eq!(clock.now(), Millis(5));
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(clock.now(), Millis(5 + Millis::HOUR));
    }
}
