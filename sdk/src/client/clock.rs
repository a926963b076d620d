//! The one place where the client reads time: tokio's, so that a paused runtime moves it.

use std::time::Duration;

use tokio::time::Instant;

/// Longer than any timeout means; keeps sums of instants and durations in range.
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[expect(clippy::disallowed_methods, reason = "this module is the client's clock")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// The instant `wait` from now.
pub(super) fn after(wait: Duration) -> Instant {
    now() + wait.min(YEAR)
}

/// The time from now until `deadline`; zero when it has passed.
pub(super) fn until(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(now())
}
