//! Hints for resuming a write with an unknown outcome, after a missing response or Ctrl-C.

use parcelo::{IdempotencyKey, OrderRequest};

use crate::texts::{self, Message};

/// The reason that a repeated call is not executed twice.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ResumeHint<'a> {
    /// It only reads.
    ReadOnly,
    /// The idempotency key in the order's file.
    SameOrder(&'a OrderRequest),
    /// The idempotency key, which must be passed again.
    WithKey(&'a IdempotencyKey),
    /// The idempotency key in the request's body, if there is one.
    SameRequest,
    /// The service recognizes the same manifest even without a key.
    SameManifest,
    /// Nothing prevents it: the user has to check first.
    CheckFirst,
}

impl<'a> ResumeHint<'a> {
    /// Returns `true` if the call may change something.
    pub(crate) fn writes(self) -> bool {
        !matches!(self, Self::ReadOnly)
    }

    /// Returns the order that is created.
    pub(crate) fn order(self) -> Option<&'a OrderRequest> {
        match self {
            Self::SameOrder(order) => Some(order),
            Self::ReadOnly
            | Self::WithKey(_)
            | Self::SameRequest
            | Self::SameManifest
            | Self::CheckFirst => None,
        }
    }

    /// Returns the idempotency key that the command knows.
    pub(crate) fn key(self) -> Option<&'a IdempotencyKey> {
        match self {
            Self::SameOrder(order) => Some(&order.idempotency_key),
            Self::WithKey(key) => Some(key),
            Self::ReadOnly | Self::SameRequest | Self::SameManifest | Self::CheckFirst => None,
        }
    }

    /// Returns the remedy if the outcome is unknown.
    pub(crate) fn hint(self) -> Option<Message> {
        let with_key =
            |text: texts::Text, key: &IdempotencyKey| text.with(&[("key", key.as_str())]);
        match self {
            Self::ReadOnly => None,
            Self::SameOrder(order) => Some(with_key(texts::RESUME_ORDER, &order.idempotency_key)),
            Self::WithKey(key) => Some(with_key(texts::RESUME_WITH_KEY, key)),
            Self::SameRequest => Some(texts::RESUME_REQUEST.into()),
            Self::SameManifest => Some(texts::RESUME_MANIFEST.into()),
            Self::CheckFirst => Some(texts::RESUME_CHECK_FIRST.into()),
        }
    }
}
