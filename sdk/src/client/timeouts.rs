//! How long the client waits for what.

use std::time::Duration;

/// How long the client waits: 60 s for a whole call with its retries, 15 s for one attempt, 5 s to
/// connect, 10 s between two pieces of a label file (whose download has no total).
///
/// ```
/// # use std::time::Duration;
/// use parcelo::Timeouts;
///
/// let (total, attempt) = (Duration::from_secs(10), Duration::from_secs(3));
/// let impatient = Timeouts::default().total(total).attempt(attempt);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    pub(super) total: Duration,
    pub(super) attempt: Duration,
    pub(super) connect: Duration,
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
    /// For a whole call: its attempts and the waits between them.
    #[must_use]
    pub fn total(self, total: Duration) -> Self {
        Self { total, ..self }
    }

    /// For one attempt, up to the end of its answer.
    #[must_use]
    pub fn attempt(self, attempt: Duration) -> Self {
        Self { attempt, ..self }
    }

    /// For making a connection.
    #[must_use]
    pub fn connect(self, connect: Duration) -> Self {
        Self { connect, ..self }
    }

    /// For the next piece of a label file.
    #[must_use]
    pub fn idle(self, idle: Duration) -> Self {
        Self { idle, ..self }
    }
}
