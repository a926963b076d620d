//! The clock that a mock server starts with, and the times that it can show.

use std::time::Duration;

use chrono::{DateTime, Datelike, TimeDelta, Utc};
use parcelo_domain::Millis;

/// Maximum year that a clock can show.
const MAX_YEAR: i32 = 9_999;

/// The clock that a server starts with. Rate limits apply only to a clock that runs, except those of single keys,
/// which always do.
#[derive(Debug, Clone)]
pub struct Clock(pub(super) ClockKind);

#[derive(Debug, Clone)]
pub(super) enum ClockKind {
    Frozen(Millis),
    Ticking(Millis),
    System,
}

impl Clock {
    /// Returns a clock frozen at a time (RFC 3339) until it is moved.
    ///
    /// # Panics
    ///
    /// If the text is not an RFC 3339 time in the years 0 to 9999.
    pub fn frozen(time: &str) -> Self {
        Self(ClockKind::Frozen(parse_time(time)))
    }

    /// Returns a clock that starts at a time (RFC 3339) and runs in tokio's time: on a paused runtime it moves with the
    /// test's sleeps.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use std::time::Duration;
    ///
    /// use parcelo_server::mock::{Clock, MockServer};
    ///
    /// tokio::time::pause(); // as #[tokio::test(start_paused = true)] does
    /// let clock = Clock::ticking("2026-01-05T08:00:00Z");
    /// let server = MockServer::builder().clock(clock).start().await;
    /// let before = server.clock().now();
    /// tokio::time::sleep(Duration::from_secs(3600)).await; // takes no time
    /// assert_eq!((server.clock().now() - before).num_minutes(), 60);
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If the text is not an RFC 3339 time in the years 0 to 9999.
    pub fn ticking(time: &str) -> Self {
        Self(ClockKind::Ticking(parse_time(time)))
    }

    /// Returns the machine's clock; it can be moved too.
    pub const fn system() -> Self {
        Self(ClockKind::System)
    }

    /// The forms that [`Clock::parse`] accepts, in English.
    #[doc(hidden)]
    pub const FORMS: &str =
        "system, frozen=TIME or ticking=TIME, with a time such as 2026-01-05T08:00:00Z";

    /// The same in Spanish.
    pub(super) const FORMS_ES: &str =
        "system, frozen=HORA o ticking=HORA, con una hora como 2026-01-05T08:00:00Z";

    /// Parses a clock as the command line and the controls name it.
    #[doc(hidden)]
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, time) = text.split_once('=').unwrap_or((text, ""));
        match (kind, try_parse_time(time)) {
            ("system", _) if text == "system" => Some(Self::system()),
            ("frozen", Some(time)) => Some(Self(ClockKind::Frozen(time.into()))),
            ("ticking", Some(time)) => Some(Self(ClockKind::Ticking(time.into()))),
            _ => None,
        }
    }
}

/// Parses a time (RFC 3339) that a clock can show: in the years 0 to 9999, since RFC 3339 has four digits for the
/// year.
pub(super) fn try_parse_time(text: &str) -> Option<DateTime<Utc>> {
    let time = DateTime::parse_from_rfc3339(text).ok()?.to_utc();
    (0..=MAX_YEAR).contains(&time.year()).then_some(time)
}

/// Moves a time ahead, if a clock can show the result.
pub(super) fn add_duration(time: DateTime<Utc>, by: Duration) -> Option<DateTime<Utc>> {
    let later = time.checked_add_signed(TimeDelta::from_std(by).ok()?)?;
    (later.year() <= MAX_YEAR).then_some(later)
}

/// Parses a constant time of a test.
///
/// # Panics
///
/// If it is not an RFC 3339 time in the years 0 to 9999.
pub(super) fn parse_time(time: &str) -> Millis {
    #[expect(clippy::panic, reason = "a test's own constant is wrong; documented")]
    let Some(parsed) = try_parse_time(time) else {
        panic!(
            "{time:?} is not an RFC 3339 time in the years 0 to 9999, such as 2026-01-05T08:00:00Z"
        );
    };
    parsed.into()
}
