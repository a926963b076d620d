//! The reasons why a call ended without another attempt.

/// The reason why a call was not tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// The same request would get the same response.
    Permanent,
    /// Sending it twice could execute it twice.
    NotRepeatable,
    /// All attempts are used up.
    Attempts,
    /// The client has spent its budget for retries: most of its calls fail.
    Budget,
    /// The caller's condition ([`Retry::only_if`](crate::client::Retry::only_if)) did not want another attempt.
    Declined,
    /// The next attempt would begin after the call's time is over.
    Deadline,
    /// The service asked for a longer wait than
    /// [`Retry::max_retry_after`](crate::client::Retry::max_retry_after) allows (30 s by default); see
    /// [`Error::retry_after`](crate::client::Error::retry_after).
    RetryAfterTooLong,
    /// The client's own rate limiter had no capacity, and the call must not wait for it
    /// ([`RateLimit::fail_fast`](crate::client::RateLimit::fail_fast)).
    RateLimit,
    /// The idempotency key's 24 hours are over, or end within ten minutes: the service may have forgotten it when
    /// the request arrives, and would execute it again.
    KeyExpired,
}
