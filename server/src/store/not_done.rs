//! The reasons, of either engine, why a write was not done or has no answer, and the errors that callers see for them.

use super::{CommitOutcome, StoreError};

/// The reason why a write was not done, or has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotDone {
    /// No answer came in time (it may still be done), or another process held the database (nothing was done).
    Busy,
    /// Too many writes wait, and this one was not accepted.
    Full,
    /// It failed and is not acknowledged, or the writer has ended. Nothing was done, unless the commit's own fsync
    /// failed: then the next start may find it done.
    Broken,
}

impl NotDone {
    /// Returns the error for the caller of a plain call.
    pub(super) fn for_caller(self, database: String) -> StoreError {
        match self {
            Self::Busy => StoreError::Busy { database },
            Self::Full => StoreError::Full { database },
            Self::Broken => StoreError::Broken { database },
        }
    }
}

impl From<NotDone> for CommitOutcome {
    fn from(reason: NotDone) -> Self {
        match reason {
            NotDone::Busy => Self::Busy,
            NotDone::Full => Self::Full,
            NotDone::Broken => Self::Broken,
        }
    }
}
