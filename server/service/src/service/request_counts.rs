//! The data about requests that the [metrics](super::metrics) count.

/// A request that was answered.
#[derive(Debug, Clone, Copy)]
pub struct AnsweredRequest {
    /// The listener that was called: `production`, `sandbox` or `operators`.
    pub listener: &'static str,
    /// The operation's name, `Admin`, `Dashboard`, or `Other` for pages, probes and unknown paths.
    pub operation: &'static str,
    /// The error code, or an empty text.
    pub code: &'static str,
    /// The HTTP status.
    pub status: u16,
}

/// The reason why hyper rejected the head of a request, before the service saw it. The response is a bare status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadHead {
    /// The head is not HTTP/1 (400, or no response for HTTP/2).
    Malformed,
    /// The address or the head is too long (414, 431).
    TooLarge,
    /// The head began and was not complete in time; the connection was closed.
    TooSlow,
}

impl BadHead {
    /// Returns the reason as a label of the metrics.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::TooLarge => "too_large",
            Self::TooSlow => "too_slow",
        }
    }
}
