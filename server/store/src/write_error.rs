//! The errors of writes that were not executed or have no known outcome, for both engines.

use super::{CommitOutcome, StoreError};

/// The reason why a write was not done, or has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteError {
    /// No answer came in time (the write may still be done), or another process held the database (nothing was done).
    Busy,
    /// Too many writes were waiting, so this write was not accepted.
    Full,
    /// The write failed and is not acknowledged, or the writer has ended. Nothing was done, unless the fsync of the
    /// commit itself failed: then the next start may find the write done.
    Broken,
}

impl WriteError {
    /// Returns the error for the caller of a plain call.
    pub(super) fn into_store_error(self, database: String) -> StoreError {
        match self {
            Self::Busy => StoreError::Busy { database },
            Self::Full => StoreError::Full { database },
            Self::Broken => StoreError::Broken { database },
        }
    }
}

impl From<WriteError> for CommitOutcome {
    fn from(reason: WriteError) -> Self {
        match reason {
            WriteError::Busy => Self::Busy,
            WriteError::Full => Self::Full,
            WriteError::Broken => Self::Broken,
        }
    }
}
