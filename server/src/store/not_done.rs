//! The reasons why a write of either engine was not done or has no answer, and the errors that callers get for them.

use super::{CommitOutcome, StoreError};

/// The reason why a write was not done, or has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotDone {
    /// No answer came in time (the write may still be done), or another process held the database (nothing was done).
    Busy,
    /// Too many writes were waiting, so this write was not accepted.
    Full,
    /// The write failed and is not acknowledged, or the writer has ended. Nothing was done, unless the fsync of the
    /// commit itself failed: then the next start may find the write done.
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
