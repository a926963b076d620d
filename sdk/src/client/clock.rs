//! The one place where the client reads time: tokio's, so that a paused runtime moves it. Dates are
//! counted from the wall clock's when the client was made.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

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
