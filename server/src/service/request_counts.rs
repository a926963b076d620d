//! What is counted of requests, whether or not there are [metrics](super::metrics).

/// A request that was answered.
#[derive(Debug, Clone, Copy)]
pub struct AnsweredRequest {
    /// Which listener was called: `production`, `sandbox` or `operators`.
    pub listener: &'static str,
    /// What was asked for: an operation's name, `Admin`, `Dashboard`, or `Other` for pages, probes and
    /// paths that do not exist.
    pub operation: &'static str,
    /// The error's code, or nothing.
    pub code: &'static str,
    /// The HTTP status.
    pub status: u16,
}

/// Why a request's head was answered without being read: hyper does so by itself, with a status
/// and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadHead {
    /// It is not HTTP/1 (400, or nothing for HTTP/2).
    Malformed,
    /// The address or the head is too long (414, 431).
    TooLarge,
    /// It began and was not complete in time; the connection was closed.
    TooSlow,
}

impl BadHead {
    /// In a word.
    #[cfg(feature = "server")]
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::TooLarge => "too_large",
            Self::TooSlow => "too_slow",
        }
    }
}
