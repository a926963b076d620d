//! The one place where the client reads time: tokio's for waiting, so that a paused runtime moves it. How
//! old an idempotency key is, is asked of every clock there is: each of them may stand still, or be set.

use std::{
    pin::pin,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use http::HeaderValue;
use tokio::time::{Instant, error::Elapsed, timeout, timeout_at};

use crate::{model::Moment, wall_clock::WallClock};

/// Longer than any timeout means; keeps sums of instants and durations in range.
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[expect(clippy::disallowed_methods, reason = "this module is the client's clock")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// The instant `wait` from now.
pub(super) fn after(wait: Duration) -> Instant {
    beyond(now(), wait)
}

/// The instant `wait` after another one.
pub(super) fn beyond(start: Instant, wait: Duration) -> Instant {
    start + wait.min(YEAR)
}

/// Until when something is waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    by: Instant,
    was_missed: bool,
}

/// A time-out that fires later than this was not waited for: nobody polled, or nothing ran.
const NEGLECT: Duration = Duration::from_millis(100);
/// How long what arrived meanwhile may take to come through.
const CATCH_UP: Duration = Duration::from_secs(1);

impl Deadline {
    pub(super) fn at(by: Instant) -> Self {
        Self { by, was_missed: false }
    }

    /// What the future gives by then.
    ///
    /// A caller who was not there when the time ran out gets what has arrived meanwhile, for which
    /// connections may need a moment. Once: a peer that drips cannot live on it.
    pub(super) async fn wait<T>(&mut self, future: impl Future<Output = T>) -> Result<T, Elapsed> {
        let mut future = pin!(future);
        let elapsed = match timeout_at(self.by, future.as_mut()).await {
            Ok(output) => return Ok(output),
            Err(elapsed) => elapsed,
        };
        if self.was_missed || now().saturating_duration_since(self.by) <= NEGLECT {
            return Err(elapsed);
        }
        *self = Self { by: after(CATCH_UP), was_missed: true };
        timeout(CATCH_UP, future).await
    }
}

/// All clocks that a client knows: the machine's two, and the service's as its answers show it. A test
/// that moves the service's clock hands it over instead, and then nothing else counts.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    source: ClockSource,
    /// The newest date of an answer, and when it came.
    answered: Mutex<Option<Answered>>,
}

/// Which clock tells the wall time.
#[derive(Debug, Clone)]
pub(super) enum ClockSource {
    /// The machine's, or a test's in its place: it may stand still, and so is one among others.
    Wall(WallClock),
    /// The service's own.
    Service(WallClock),
}

impl Default for ClockSource {
    fn default() -> Self {
        Self::Wall(WallClock::default())
    }
}

/// What an answer showed of the service's clock, and when.
#[derive(Debug)]
struct Answered {
    shown: HeaderValue,
    date: DateTime<Utc>,
    at: Moment,
}

impl Clocks {
    pub(super) fn new(source: ClockSource) -> Self {
        Self { source, answered: Mutex::default() }
    }

    /// This moment by all of them.
    pub(super) fn moment(&self) -> Moment {
        let local = match &self.source {
            ClockSource::Wall(clock) => {
                Moment { wall: clock.now(), steady: steady(), service: None }
            }
            // One steady moment for all: the service's clock may stand still while this program runs.
            ClockSource::Service(clock) => {
                return Moment { wall: clock.now(), steady: TimeDelta::zero(), service: None };
            }
        };
        let passed = |known: &Answered| known.date + passed(&known.at, &local);
        let service = self.answered().as_ref().map(passed);
        Moment { service, ..local }
    }

    /// What a date header shows.
    pub(super) fn read(&self, shown: &HeaderValue) -> Option<DateTime<Utc>> {
        // Most answers come in the same second as the one before.
        let known =
            self.answered().as_ref().filter(|known| known.shown == shown).map(|known| known.date);
        known.or_else(|| parse(shown))
    }

    /// An answer of the service's showed this date.
    pub(super) fn hear(&self, shown: &HeaderValue, date: DateTime<Utc>) {
        // It says nothing new, and no clock needs to be read.
        if self.answered().as_ref().is_some_and(|known| known.date == date) {
            return;
        }
        let now = self.moment();
        // Answers overtake each other; time does not go back.
        if now.service.is_none_or(|known| known <= date)
            || self.answered().as_ref().is_none_or(|known| known.date < date)
        {
            *self.answered() = Some(Answered { shown: shown.clone(), date, at: now });
        }
    }

    fn answered(&self) -> MutexGuard<'_, Option<Answered>> {
        // It is plain data, as good after a panic as before.
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The date in a header.
pub(super) fn parse(shown: &HeaderValue) -> Option<DateTime<Utc>> {
    Some(httpdate::parse_http_date(shown.to_str().ok()?.trim()).ok()?.into())
}

/// The runtime's clock, counted from the first look of this process at it: keys go from client to
/// client. Paused runtimes may stand before it.
fn steady() -> TimeDelta {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    let now = now();
    let first = *FIRST.get_or_init(|| now);
    let since = |late: Instant, early| {
        TimeDelta::from_std(late.saturating_duration_since(early)).unwrap_or_default()
    };
    since(now, first) - since(first, now)
}

/// The time between two moments of this process, by the clock that says more.
fn passed(then: &Moment, now: &Moment) -> TimeDelta {
    (now.wall - then.wall).max(now.steady - then.steady)
}
