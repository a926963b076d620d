//! The only place where the client reads time. It waits by tokio's clock, which tests can pause. The age of an
//! idempotency key is measured by all available clocks, because each of them may stop or be set.

use std::{
    pin::pin,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use http::HeaderValue;
use parcelo_types::internal::Moment;
use tokio::time::{Instant, error::Elapsed, timeout, timeout_at};

use crate::wall_clock::WallClock;

/// A year: longer than any useful timeout, and sums of instants and durations stay in range.
const MAX_DURATION: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[expect(clippy::disallowed_methods, reason = "this module is the client's clock")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Returns the instant `wait` from now.
pub(super) fn from_now(wait: Duration) -> Instant {
    saturating_add(now(), wait)
}

/// Returns the instant `wait` after `start`, but at most a year later.
pub(super) fn saturating_add(start: Instant, wait: Duration) -> Instant {
    start + wait.min(MAX_DURATION)
}

/// The instant by which a future must be ready.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    by: Instant,
    was_extended: bool,
}

/// A timeout that is noticed later than this was not polled when it fired. Timers under load are usually late by
/// less.
const UNPOLLED_AFTER: Duration = Duration::from_millis(100);
/// Maximum time for a response that arrived while nothing polled to pass through the connection's task and its buffers.
const GRACE_PERIOD: Duration = Duration::from_secs(1);

impl Deadline {
    pub(super) fn at(by: Instant) -> Self {
        Self { by, was_extended: false }
    }

    /// Returns the future's output, if it is ready in time.
    ///
    /// A response that arrived in time wins over a timeout that fired while nothing polled. The extra time is
    /// given once, so that a peer that sends byte by byte cannot delay it forever.
    pub(super) async fn wait<T>(&mut self, future: impl Future<Output = T>) -> Result<T, Elapsed> {
        let mut future = pin!(future);
        let elapsed = match timeout_at(self.by, future.as_mut()).await {
            Ok(output) => return Ok(output),
            Err(elapsed) => elapsed,
        };
        if self.was_extended || now().saturating_duration_since(self.by) <= UNPOLLED_AFTER {
            return Err(elapsed);
        }
        *self = Self { by: from_now(GRACE_PERIOD), was_extended: true };
        timeout(GRACE_PERIOD, future).await
    }
}

/// The clocks that a client can read: the machine's two, and the service's, derived from its responses. If a test passes
/// the service's clock, only that one counts.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    source: ClockSource,
    last_date: Mutex<Option<LastDate>>,
}

/// The clock for the wall time.
#[derive(Debug, Clone)]
pub(super) enum ClockSource {
    /// The machine's clock, or a test's in its place. It may be set, so it is one clock among several.
    Wall(WallClock),
    /// The service's own clock.
    Service(WallClock),
}

impl Default for ClockSource {
    fn default() -> Self {
        Self::Wall(WallClock::default())
    }
}

/// The newest `Date` of a response, and the moment when it was received.
#[derive(Debug)]
struct LastDate {
    header: HeaderValue,
    date: DateTime<Utc>,
    received: Moment,
}

impl Clocks {
    pub(super) fn new(source: ClockSource) -> Self {
        Self { source, last_date: Mutex::default() }
    }

    /// Returns the present moment on all of them.
    pub(super) fn moment(&self) -> Moment {
        let (ClockSource::Wall(clock) | ClockSource::Service(clock)) = &self.source;
        let local = Moment { wall: clock.now(), monotonic: self.monotonic(), service: None };
        if matches!(self.source, ClockSource::Service(_)) {
            return local;
        }
        let now_at_service = |last: &LastDate| last.date + elapsed(&last.received, &local);
        let service = self.last_date().as_ref().map(now_at_service);
        Moment { service, ..local }
    }

    /// Returns the monotonic time; `None` if only the service's clock counts, which may stand still.
    pub(super) fn monotonic(&self) -> Option<TimeDelta> {
        matches!(self.source, ClockSource::Wall(_)).then(monotonic)
    }

    /// Parses a `Date` header.
    pub(super) fn parse_date(&self, header: &HeaderValue) -> Option<DateTime<Utc>> {
        // Most responses have the same date as the last one, and comparing costs less than parsing.
        let is_same = |last: &&LastDate| last.header == header;
        let last = self.last_date().as_ref().filter(is_same).map(|last| last.date);
        last.or_else(|| parse(header))
    }

    /// Updates what is known about the service's clock from a response.
    pub(super) fn observe_date(&self, header: &HeaderValue, date: DateTime<Utc>) {
        // The same date adds no information, and no clock needs to be read.
        if self.last_date().as_ref().is_some_and(|last| last.date == date) {
            return;
        }
        let now = self.moment();
        // Responses may overtake each other, so an older date is ignored.
        if now.service.is_none_or(|known| known <= date)
            || self.last_date().as_ref().is_none_or(|last| last.date < date)
        {
            *self.last_date() = Some(LastDate { header: header.clone(), date, received: now });
        }
    }

    fn last_date(&self) -> MutexGuard<'_, Option<LastDate>> {
        // It is plain data, which stays valid after a panic elsewhere.
        self.last_date.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Parses a date as HTTP writes it.
pub(super) fn parse(header: &HeaderValue) -> Option<DateTime<Utc>> {
    Some(httpdate::parse_http_date(header.to_str().ok()?.trim()).ok()?.into())
}

/// Returns the runtime's clock, counted from the first time that this process read it, because one key may be sent by
/// several clients. A paused runtime may be before that, so the result may be negative.
fn monotonic() -> TimeDelta {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    let now = now();
    let first = *FIRST.get_or_init(|| now);
    let since = |late: Instant, early| {
        TimeDelta::from_std(late.saturating_duration_since(early)).unwrap_or_default()
    };
    since(now, first) - since(first, now)
}

/// Returns the time between two moments of this process, by the clock that shows more.
fn elapsed(then: &Moment, now: &Moment) -> TimeDelta {
    let monotonic = now.monotonic.zip(then.monotonic).map(|(now, then)| now - then);
    monotonic.into_iter().fold(now.wall - then.wall, TimeDelta::max)
}
