//! A point in time.

use chrono::{DateTime, Utc};

/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Millis(pub i64);

impl Millis {
    /// One second.
    pub const SECOND: i64 = 1_000;
    /// One minute.
    pub const MINUTE: i64 = 60 * Self::SECOND;
    /// One hour.
    pub const HOUR: i64 = 60 * Self::MINUTE;
    /// One day.
    pub const DAY: i64 = 24 * Self::HOUR;

    /// Returns the time `millis` later, or earlier if negative. Saturates on overflow.
    #[must_use]
    pub const fn plus(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// Returns the Unix second that contains this time.
    pub const fn second(self) -> i64 {
        self.0.div_euclid(Self::SECOND)
    }

    /// Converts to a UTC date and time. A time outside the calendar's range becomes the beginning of 1970.
    pub fn to_utc(self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0).unwrap_or_default()
    }
}

impl From<DateTime<Utc>> for Millis {
    fn from(time: DateTime<Utc>) -> Self {
        Self(time.timestamp_millis())
    }
}
