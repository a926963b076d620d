//! Why a message is not believed. No text holds a secret, a signature or what the body says.

use crate::model::InvalidValue;

/// Why a message is not believed, or cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// There is nothing to verify with.
    #[error("give at least one webhook secret")]
    NoSecret,
    /// A secret that is none.
    #[error(transparent)]
    Secret(#[from] InvalidValue),
    /// A header is missing: the message was not sent by Parcelo, or a proxy dropped it.
    #[error("the header {0} is missing")]
    HeaderMissing(&'static str),
    /// A header is there twice, so nobody knows which one counts.
    #[error("the header {0} is there more than once")]
    HeaderRepeated(&'static str),
    /// A header says nothing that can be understood.
    #[error("the header {0} is malformed")]
    HeaderMalformed(&'static str),
    /// Sent too long ago: somebody repeats an old message, or this machine's clock is fast.
    #[error("the message was sent {seconds} s ago: check this machine's clock")]
    TooOld {
        /// How long ago.
        seconds: u64,
    },
    /// Sent in the future: this machine's clock is slow.
    #[error("the message was sent {seconds} s in the future: check this machine's clock")]
    TooNew {
        /// How far away.
        seconds: u64,
    },
    /// No signature fits: another secret, or a body that is not as it was sent.
    #[error("no signature fits: check the secret, and that the body is passed on byte for byte")]
    Signature,
    /// This very message came before. A new attempt of the service has a new timestamp.
    #[error("the message is a copy of one that was accepted before")]
    Replayed,
    /// It is signed, and yet no event.
    #[error("the body is not the JSON of an event")]
    Body,
}

impl From<std::convert::Infallible> for WebhookError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}
