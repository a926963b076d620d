//! The reasons why a message is rejected. No text has a secret, a signature or a part of the body.

use parcelo_types::InvalidValue;

/// The reason why a message was rejected, or cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// There is no secret to verify with.
    #[error("no webhook secret: at least one is required")]
    NoSecret,
    /// A secret is malformed.
    #[error(transparent)]
    Secret(#[from] InvalidValue),
    /// A header is missing: the message was not sent by Parcelo, or a proxy removed the header.
    #[error("missing header {0}")]
    HeaderMissing(&'static str),
    /// A header appears more than once, so it is ambiguous.
    #[error("repeated header {0}")]
    HeaderRepeated(&'static str),
    /// A header cannot be parsed.
    #[error("malformed header {0}")]
    HeaderMalformed(&'static str),
    /// Sent too long ago: an old message is replayed, or this machine's clock is fast.
    #[error("the message was sent {seconds} s ago: check this machine's clock")]
    TooOld {
        /// The age in seconds.
        seconds: u64,
    },
    /// Sent in the future: this machine's clock is slow.
    #[error("the message was sent {seconds} s in the future: check this machine's clock")]
    TooNew {
        /// The difference in seconds.
        seconds: u64,
    },
    /// No signature matches: the secret is the wrong one, or the body was changed.
    #[error("signature mismatch: check the secret, and that the body is passed byte for byte")]
    Signature,
    /// The same message was accepted before. A new attempt of the service has a new timestamp.
    #[error("replayed message: it was accepted before")]
    Replayed,
    /// The signature is valid, but the body is not an event.
    #[error("the body is not a valid event in JSON")]
    Body,
}

impl From<std::convert::Infallible> for WebhookError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}
