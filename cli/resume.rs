//! How to go on with a write of which nobody knows whether it was made: said when the service did
//! not answer, and after Ctrl-C.

use parcelo::IdempotencyKey;

use crate::texts::{self, Message};

/// What keeps a call from being carried out twice.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ResumeHint<'a> {
    /// It only reads.
    ReadOnly,
    /// The key stands in the order's file.
    SameOrder(&'a IdempotencyKey),
    /// The key must be given again.
    WithKey(&'a IdempotencyKey),
    /// The key, if there is one, stands in the body.
    SameRequest,
    /// The service knows the same manifest by itself.
    SameManifest,
    /// Nothing does: the user has to look.
    CheckFirst,
}

impl<'a> ResumeHint<'a> {
    /// True when the call changes something.
    pub(crate) fn writes(self) -> bool {
        !matches!(self, Self::ReadOnly)
    }

    /// The key under which the call writes.
    pub(crate) fn key(self) -> Option<&'a IdempotencyKey> {
        match self {
            Self::SameOrder(key) | Self::WithKey(key) => Some(key),
            Self::ReadOnly | Self::SameRequest | Self::SameManifest | Self::CheckFirst => None,
        }
    }

    /// What to do when the outcome is unknown.
    pub(crate) fn hint(self) -> Option<Message> {
        let with_key =
            |text: texts::Text, key: &IdempotencyKey| text.with(&[("key", key.as_str())]);
        match self {
            Self::ReadOnly => None,
            Self::SameOrder(key) => Some(with_key(texts::RESUME_ORDER, key)),
            Self::WithKey(key) => Some(with_key(texts::RESUME_WITH_KEY, key)),
            Self::SameRequest => Some(texts::RESUME_REQUEST.into()),
            Self::SameManifest => Some(texts::RESUME_MANIFEST.into()),
            Self::CheckFirst => Some(texts::RESUME_CHECK_FIRST.into()),
        }
    }
}
