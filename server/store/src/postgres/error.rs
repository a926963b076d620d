//! Failures between this process and PostgreSQL, and their meaning for the caller.

use std::error::Error as _;

use tokio_postgres::error::{Severity, SqlState};

use crate::{CommitOutcome, StoreError, sqlite::error::EngineError};

/// The result of a database call.
pub(crate) type DbResult<T> = Result<T, Failure>;

/// The reason why a database call failed.
#[derive(Debug)]
pub enum Failure {
    /// An error of the driver, or of PostgreSQL itself.
    Driver(tokio_postgres::Error),
    /// A row cannot be read, because it does not hold what was written to it.
    Row {
        /// The table and the parcel's row, if the row belongs to a parcel.
        parcel: Option<(&'static str, i64)>,
        source: EngineError,
    },
    /// The database is reachable but cannot be used; the reason is a part of a sentence.
    Unsuitable(String),
    /// Two transactions conflicted.
    Conflict,
    /// No connection could be opened to any host; the reasons are a part of a sentence.
    NotOpened(String),
    /// There is no connection at the moment.
    Unreachable,
    /// Too many calls wait for a connection.
    Crowded,
    /// The call failed unexpectedly, or the task that ran it has ended.
    Broken,
    /// The connection was cut before the answer to COMMIT arrived.
    OutcomeUnknown,
}

/// Errors of a statement that may not recur on a new connection: a primary was demoted in place, a prepared statement
/// no longer exists, or a newer server's migration has changed the result of one.
const SESSION_ERRORS: [SqlState; 3] = [
    SqlState::READ_ONLY_SQL_TRANSACTION,
    SqlState::INVALID_SQL_STATEMENT_NAME,
    SqlState::FEATURE_NOT_SUPPORTED,
];

/// Errors of a statement that may not recur when it is repeated.
const CONFLICTS: [SqlState; 3] = [
    SqlState::T_R_SERIALIZATION_FAILURE,
    SqlState::T_R_DEADLOCK_DETECTED,
    SqlState::LOCK_NOT_AVAILABLE,
];

impl Failure {
    /// Returns the failure of a row with an invalid value.
    pub(crate) fn row(source: impl Into<EngineError>) -> Self {
        Self::Row { parcel: None, source: source.into() }
    }

    /// Adds the parcel to the failure of one of its rows.
    pub(crate) fn with_parcel(self, table: &'static str, row: i64) -> Self {
        let Self::Row { source, .. } = self else { return self };
        Self::Row { parcel: Some((table, row)), source }
    }

    /// Returns `true` if only one row cannot be read, while other rows may be readable.
    pub(crate) const fn is_row(&self) -> bool {
        matches!(self, Self::Row { .. })
    }

    /// Returns the name of the table in which a parcel's row cannot be read, if that is the failure.
    pub(super) const fn unreadable_table(&self) -> Option<&'static str> {
        let Self::Row { parcel: Some((table, _)), .. } = self else { return None };
        Some(*table)
    }

    /// Returns PostgreSQL's code, if the error comes from PostgreSQL.
    pub(super) fn code(&self) -> Option<&SqlState> {
        let Self::Driver(error) = self else { return None };
        error.code()
    }

    /// Returns `true` if two transactions conflicted, so that a retry may succeed.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict) || self.code().is_some_and(|code| CONFLICTS.contains(code))
    }

    /// Returns `true` for a conflict whose retry can succeed at once: a deadlock or a serialization failure.
    /// After a lock timeout the row may still be locked.
    pub(super) fn can_retry_at_once(&self) -> bool {
        self.is_conflict() && self.code() != Some(&SqlState::LOCK_NOT_AVAILABLE)
    }

    /// Returns `true` if a retry may succeed, because a row was locked or a statement timed out.
    fn is_transient(&self) -> bool {
        self.is_conflict() || self.code() == Some(&SqlState::QUERY_CANCELED)
    }

    /// Returns a simplified copy of the failure, for the callers that share a call. The driver's error cannot be
    /// cloned, so the copy says only what callers can act on.
    pub(super) fn to_shared_failure(&self) -> Self {
        if matches!(self, Self::OutcomeUnknown) {
            Self::OutcomeUnknown
        } else if self.is_connection_error() {
            Self::Unreachable
        } else if self.is_transient() {
            Self::Conflict
        } else {
            Self::Broken
        }
    }

    /// Returns `true` if the connection is unusable. After most errors of statements it is still usable.
    pub(super) fn is_connection_error(&self) -> bool {
        match self {
            Self::Driver(error) => match error.as_db_error() {
                Some(error) => {
                    matches!(error.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
                        // Proxies use these codes to report a server behind them.
                        || error.code().code().starts_with("08")
                        || SESSION_ERRORS.contains(error.code())
                }
                None => !is_unsent(error),
            },
            Self::NotOpened(_) | Self::Unreachable | Self::Broken | Self::OutcomeUnknown => true,
            Self::Row { .. } | Self::Unsuitable(_) | Self::Conflict | Self::Crowded => false,
        }
    }

    /// Returns the error for the caller.
    pub(crate) fn into_store_error(self, database: &str) -> StoreError {
        let database = database.to_owned();
        if self.is_transient() {
            return StoreError::Busy { database };
        }
        let (is_lost, reason) = (self.is_connection_error(), self.to_string());
        match self {
            Self::Row { parcel, source } => {
                let which = parcel.map(|(table, row)| format!(" ({table}, parcel row {row})"));
                StoreError::Damaged { database, which: which.unwrap_or_default(), source }
            }
            Self::Driver(_) if !is_lost => StoreError::Engine { database, source: reason.into() },
            Self::Driver(_) | Self::NotOpened(_) | Self::Unreachable => {
                StoreError::Unreachable { database, reason }
            }
            Self::Unsuitable(_) => StoreError::Unsuitable { database, reason },
            Self::Conflict => StoreError::Busy { database },
            Self::Crowded => StoreError::Crowded { database },
            Self::Broken => StoreError::Broken { database },
            Self::OutcomeUnknown => StoreError::OutcomeUnknown { database },
        }
    }
}

/// Converts the failure into the outcome of changes that were not decided.
impl From<Failure> for CommitOutcome {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::OutcomeUnknown => Self::Unknown,
            Failure::Broken => Self::Broken,
            failure if failure.is_connection_error() => Self::Unreachable,
            _ => Self::Busy,
        }
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Driver(error)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Driver(error) => f.write_str(&redacted_message(error)),
            Self::Row { source, .. } => source.fmt(f),
            Self::Unsuitable(reason) | Self::NotOpened(reason) => f.write_str(reason),
            Self::Conflict => f.write_str("another transaction conflicted with it"),
            Self::Unreachable => f.write_str("no connection"),
            Self::Crowded => f.write_str("too many calls are waiting"),
            Self::Broken => f.write_str("the call failed unexpectedly"),
            Self::OutcomeUnknown => f.write_str("the answer to a COMMIT was cut off"),
        }
    }
}

/// Returns `true` if the driver refused a value, for example because of its type, and sent nothing. The connection is
/// still usable, and the next connection would refuse the same value.
fn is_unsent(error: &tokio_postgres::Error) -> bool {
    let is_network_error =
        |source: &std::io::Error| source.kind() != std::io::ErrorKind::InvalidInput;
    error.source().is_some_and(|source| !source.downcast_ref().is_some_and(is_network_error))
}

/// Returns the text of the error without data of rows, because PostgreSQL's details quote the values of a key.
pub(super) fn redacted_message(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => format!("{}: {}", db.code().code(), db.message()),
        // The driver's own message is just "error connecting to server".
        None => match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}
