//! The client's timeouts.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::seconds;

/// The client's timeouts: by default 60 s for a whole call with its retries, 15 s for one attempt, 5 s to
/// connect, 10 s between two chunks of a label file (whose download has no total).
///
/// ```
/// # use std::time::Duration;
/// use parcelo::Timeouts;
///
/// let (total, attempt) = (Duration::from_secs(10), Duration::from_secs(3));
/// let short = Timeouts::default().total(total).attempt(attempt);
/// ```
///
/// In configuration files each of the four is a number of seconds, with or without decimals, and a missing one
/// is the default:
///
/// ```
/// # use std::time::Duration;
/// # use parcelo::Timeouts;
/// let read: Timeouts = serde_json::from_str(r#"{"total": 10, "attempt": 2.5}"#)?;
/// let (total, attempt) = (Duration::from_secs(10), Duration::from_millis(2500));
/// assert_eq!(read, Timeouts::default().total(total).attempt(attempt));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Timeouts {
    #[serde(with = "seconds")]
    pub(super) total: Duration,
    #[serde(with = "seconds")]
    pub(super) attempt: Duration,
    #[serde(with = "seconds")]
    pub(super) connect: Duration,
    #[serde(with = "seconds")]
    pub(super) idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            total: Duration::from_secs(60),
            attempt: Duration::from_secs(15),
            connect: Duration::from_secs(5),
            idle: Duration::from_secs(10),
        }
    }
}

impl Timeouts {
    /// Sets the timeout of a whole call: its turn under the rate limit, its attempts, and the waits between them.
    #[must_use]
    pub fn total(self, total: Duration) -> Self {
        Self { total, ..self }
    }

    /// Sets the timeout of one attempt, until its response is complete.
    #[must_use]
    pub fn attempt(self, attempt: Duration) -> Self {
        Self { attempt, ..self }
    }

    /// Sets the timeout for connecting. A [`transport`](crate::ClientBuilder::transport) of your own has its own.
    #[must_use]
    pub fn connect(self, connect: Duration) -> Self {
        Self { connect, ..self }
    }

    /// Sets the timeout for the next chunk of a label file.
    #[must_use]
    pub fn idle(self, idle: Duration) -> Self {
        Self { idle, ..self }
    }
}
