//! The one place where the client reads time: tokio's, so that a paused runtime moves it. Dates are
//! counted from the wall clock's when the client was made.

use std::{pin::pin, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::{Instant, error::Elapsed, timeout, timeout_at};

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

/// A date and the instant that it was, to tell others by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Anchor {
    date: DateTime<Utc>,
    instant: Instant,
}

impl Anchor {
    #[expect(clippy::disallowed_methods, reason = "this module is the client's clock")]
    pub(super) fn now() -> Self {
        Self { date: Utc::now(), instant: now() }
    }

    /// The date of an instant since.
    pub(super) fn date(&self, at: Instant) -> DateTime<Utc> {
        let passed = TimeDelta::from_std(at.saturating_duration_since(self.instant));
        passed.ok().and_then(|passed| self.date.checked_add_signed(passed)).unwrap_or(self.date)
    }
}
