//! What can go wrong between this process and PostgreSQL, and what it means for the caller.

use std::error::Error as _;

use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::store::{StoreError, sqlite::error::EngineError};

/// What a call of the database answers.
pub(in crate::store) type DbResult<T> = Result<T, Failure>;

/// Why a call of the database failed.
#[derive(Debug)]
pub enum Failure {
    /// The driver, or PostgreSQL itself.
    Driver(tokio_postgres::Error),
    /// A row does not hold what was once written to it.
    Row {
        /// The table, when the row is a parcel's, and the parcel's row.
        parcel: Option<(&'static str, i64)>,
        source: EngineError,
    },
    /// It is there, and cannot be used; the reason is a part of a sentence.
    Unsuitable(String),
    /// Two transactions stood in each other's way.
    Conflict,
    /// No host could be connected to; the reasons are a part of a sentence.
    NotOpened(String),
    /// Not connected at the moment.
    Unreachable,
    /// Too many calls wait for a connection.
    Crowded,
    /// Nothing is known of the call: the task that made it has ended.
    Unanswered,
    /// The answer to its COMMIT was cut off.
    InDoubt,
}

/// Errors of a statement that the next connection may not have: a primary was demoted in place, and a statement
/// that was prepared is gone, or means something else since a newer server's migration.
const OF_SESSION: [SqlState; 3] = [
    SqlState::READ_ONLY_SQL_TRANSACTION,
    SqlState::INVALID_SQL_STATEMENT_NAME,
    SqlState::FEATURE_NOT_SUPPORTED,
];

impl Failure {
    /// A value that does not mean anything.
    pub(in crate::store) fn row(source: impl Into<EngineError>) -> Self {
        Self::Row { parcel: None, source: source.into() }
    }

    /// The same failure of a row, with the parcel whose it is.
    pub(in crate::store) fn of_parcel(self, table: &'static str, row: i64) -> Self {
        match self {
            Self::Row { source, .. } => Self::Row { parcel: Some((table, row)), source },
            other @ (Self::Driver(_)
            | Self::Unsuitable(_)
            | Self::Conflict
            | Self::NotOpened(_)
            | Self::Unreachable
            | Self::Crowded
            | Self::Unanswered
            | Self::InDoubt) => other,
        }
    }

    /// Whether one row cannot be read, and the next one may.
    pub(in crate::store) const fn is_row(&self) -> bool {
        matches!(self, Self::Row { .. })
    }

    /// The table in which a parcel cannot be read, if that is what it says.
    pub(super) const fn unreadable_table(&self) -> Option<&'static str> {
        match self {
            Self::Row { parcel: Some((table, _)), .. } => Some(*table),
            _ => None,
        }
    }

    fn db_error(&self) -> Option<&DbError> {
        match self {
            Self::Driver(error) => error.as_db_error(),
            Self::Row { .. }
            | Self::Unsuitable(_)
            | Self::Conflict
            | Self::NotOpened(_)
            | Self::Unreachable
            | Self::Crowded
            | Self::Unanswered
            | Self::InDoubt => None,
        }
    }

    /// What PostgreSQL calls it, if it is PostgreSQL that says it.
    pub(super) fn code(&self) -> Option<&SqlState> {
        self.db_error().map(DbError::code)
    }

    /// Whether two transactions stood in each other's way: the same again may go through.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict)
            || self.code().is_some_and(|code| {
                [
                    SqlState::T_R_SERIALIZATION_FAILURE,
                    SqlState::T_R_DEADLOCK_DETECTED,
                    SqlState::LOCK_NOT_AVAILABLE,
                ]
                .contains(code)
            })
    }

    /// Whether it was a conflict that is over: not one for a row that someone may still hold locked.
    pub(super) fn is_deadlock(&self) -> bool {
        let is_locked = |error: &DbError| *error.code() == SqlState::LOCK_NOT_AVAILABLE;
        self.is_conflict() && !self.db_error().is_some_and(is_locked)
    }

    /// Whether the same again may go through: something was locked, or took too long.
    fn is_passing(&self) -> bool {
        self.is_conflict() || self.code() == Some(&SqlState::QUERY_CANCELED)
    }

    /// The same for one of several callers that share a call, as far as it says what to do.
    pub(super) fn of_shared_call(&self) -> Self {
        if self.is_of_connection() {
            Self::Unreachable
        } else if self.is_passing() {
            Self::Conflict
        } else {
            Self::Unanswered
        }
    }

    /// Whether the connection is of no use any more. Most errors in a statement leave it sound.
    pub(super) fn is_of_connection(&self) -> bool {
        match self {
            Self::Driver(error) => match error.as_db_error() {
                Some(error) => {
                    matches!(error.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
                        // As proxies say it of what is behind them.
                        || error.code().code().starts_with("08")
                        || OF_SESSION.contains(error.code())
                }
                None => !is_unsent(error),
            },
            Self::NotOpened(_) | Self::Unreachable | Self::Unanswered | Self::InDoubt => true,
            Self::Row { .. } | Self::Unsuitable(_) | Self::Conflict | Self::Crowded => false,
        }
    }

    /// The error for the caller.
    pub(super) fn for_caller(self, database: &str) -> StoreError {
        let database = database.to_owned();
        let lost = self.is_of_connection();
        if self.is_passing() {
            return StoreError::Busy { database };
        }
        match self {
            Self::Row { parcel, source } => {
                let which = parcel.map(|(table, row)| format!(" ({table}, parcel row {row})"));
                StoreError::Damaged { database, which: which.unwrap_or_default(), source }
            }
            Self::Driver(error) if lost => {
                StoreError::Unreachable { database, reason: without_rows(&error) }
            }
            Self::Driver(error) => {
                StoreError::Engine { database, source: without_rows(&error).into() }
            }
            Self::Unsuitable(reason) => StoreError::Unsuitable { database, reason },
            Self::NotOpened(reason) => StoreError::Unreachable { database, reason },
            Self::Unreachable => {
                StoreError::Unreachable { database, reason: "no connection".to_owned() }
            }
            Self::Conflict => StoreError::Busy { database },
            Self::Crowded => StoreError::Crowded { database },
            Self::Unanswered => StoreError::Broken { database },
            Self::InDoubt => StoreError::InDoubt { database },
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
            Self::Driver(error) => f.write_str(&without_rows(error)),
            Self::Row { source, .. } => source.fmt(f),
            Self::Unsuitable(reason) | Self::NotOpened(reason) => f.write_str(reason),
            Self::Conflict => f.write_str("another server wrote the same"),
            Self::Unreachable => f.write_str("no connection"),
            Self::Crowded => f.write_str("too many calls wait"),
            Self::Unanswered => f.write_str("no answer"),
            Self::InDoubt => f.write_str("the answer to a COMMIT was cut off"),
        }
    }
}

/// Whether the driver refused what it was given, a value of another type than its parameter's for example, and sent
/// nothing: the connection is as sound as before, and the next one would be given the same.
fn is_unsent(error: &tokio_postgres::Error) -> bool {
    let of_network = |source: &std::io::Error| source.kind() != std::io::ErrorKind::InvalidInput;
    error.source().is_some_and(|source| !source.downcast_ref().is_some_and(of_network))
}

/// The error in words without data of rows: PostgreSQL's details quote the values of a key.
pub(super) fn without_rows(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => format!("{}: {}", db.code().code(), db.message()),
        // What the driver says alone is as little as "error connecting to server".
        None => match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}
