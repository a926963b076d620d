//! Store errors, with advice for the operator.

use std::{
    io,
    path::{Path, PathBuf},
};

use rusqlite::{ErrorCode, ffi, types::Type};

/// The underlying engine's error. Its type stays private to the store.
pub(crate) type EngineError = Box<dyn std::error::Error + Send + Sync>;

/// A failure of the database. No message holds data of a row.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file cannot be opened or created.
    #[error("cannot open the database {file} ({source}): check that its directory exists and can be written", file = .file.display())]
    Open {
        /// The database.
        file: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The lock file beside the database cannot be opened.
    #[error(
        "cannot open the lock file {file} ({source}): check that this account can write it and its folder, and that it has the owner of the database",
        file = .file.display()
    )]
    LockFile {
        /// The lock file.
        file: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A copy cannot be written; the database is as it was.
    #[error("cannot write the copy {file} ({source}): check that its folder exists and can be written, and the disk and its free space", file = .file.display())]
    Copy {
        /// The copy.
        file: PathBuf,
        /// The reason.
        source: EngineError,
    },
    /// The new file exists already.
    #[error("{file} exists already and is left as it is: name another file", file = .file.display())]
    Exists {
        /// The file.
        file: PathBuf,
    },
    /// Another server holds the file.
    #[error("another server uses the database {file}: stop it, or name another file", file = .file.display())]
    InUse {
        /// The database.
        file: PathBuf,
    },
    /// A server uses a file of an older version.
    #[error(
        "the database {file} is of an older version, and a server uses it: stop that server first, since this program upgrades the file", file = .file.display()
    )]
    UpgradeInUse {
        /// The database.
        file: PathBuf,
    },
    /// The file was written by a newer version.
    #[error(
        "the database {file} has schema {found} and this program knows {known}: install the newer program again, or restore a backup",
        file = .file.display()
    )]
    Newer {
        /// The database.
        file: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest schema this program knows.
        known: i64,
    },
    /// The file belongs to another program, or is not a database.
    #[error(
        "{file} is not a Parcelo database and is left as it is: name another file with --database, or restore a backup in its place",
        file = .file.display()
    )]
    Foreign {
        /// The file.
        file: PathBuf,
    },
    /// The file is a backup, and the write-ahead log beside it belongs to the file that it replaced.
    #[error(
        "{file} is a backup, and the log {log} beside it belongs to another database: move the log and the -shm file beside it away, and try again; nothing was changed",
        file = .file.display(), log = .log.display()
    )]
    ForeignLog {
        /// The backup.
        file: PathBuf,
        /// The log.
        log: PathBuf,
    },
    /// The file lacks requests that were acknowledged.
    #[error(
        "the database {file} lacks requests that were acknowledged: its -wal file is missing, or the file is an older copy. Put the -wal file back, or restore a backup. To go on without these requests, delete {note}",
        file = .file.display(), note = .note.display()
    )]
    LostRecords {
        /// The database.
        file: PathBuf,
        /// The file that shows it.
        note: PathBuf,
    },
    /// The file is empty, and a command expected data in it.
    #[error(
        "the database {file} is empty: start the server on it to make a new database, or restore a backup in its place",
        file = .file.display()
    )]
    Empty {
        /// The file.
        file: PathBuf,
    },
    /// The file system has no write-ahead log.
    #[error(
        "the database {file} cannot have a write-ahead log (its journal mode stays {mode}): put it on a local file system",
        file = .file.display()
    )]
    NoLog {
        /// The database.
        file: PathBuf,
        /// The journal mode that it has.
        mode: String,
    },
    /// A row no longer holds the data that was written to it.
    #[error(
        "the database {database} holds a row that cannot be read{which}: check the disk, and restore a backup"
    )]
    Damaged {
        /// The name of the database.
        database: String,
        /// The row in parentheses, if it is known.
        which: String,
        /// The column, and the fault in it.
        source: EngineError,
    },
    /// The database engine failed, or refused a statement.
    #[error(
        "the database {database} failed ({source}): check the file, the disk and its free space"
    )]
    Engine {
        /// The name of the database.
        database: String,
        /// The reason.
        source: EngineError,
    },
    /// Another process held the database for 5 s; a write may still be done.
    #[error("the database {database} is busy: try again")]
    Busy {
        /// The name of the database.
        database: String,
    },
    /// Too many writes are queued; this write was not accepted.
    #[error("too many writes wait for the database {database}: try again")]
    Full {
        /// The name of the database.
        database: String,
    },
    /// The database server is not running, or cannot be reached at the moment.
    #[error(
        "the database {database} cannot be reached ({reason}): check that it runs and takes connections from here"
    )]
    Unreachable {
        /// The name of the database.
        database: String,
        /// The reason.
        reason: String,
    },
    /// The database server is reachable, but its settings or its contents forbid its use.
    #[error("the database {database} cannot be used: {reason}")]
    Unsuitable {
        /// The name of the database.
        database: String,
        /// The fault, and the remedy.
        reason: String,
    },
    /// A database could not be copied to another engine.
    #[error("nothing was copied to {target}: {reason}")]
    NotCopied {
        /// The target of the copy.
        target: String,
        /// The reason.
        reason: String,
    },
    /// The command works on files only.
    #[error(
        "the database {database} is not a file, and this command works on files only: use PostgreSQL's own tools (pg_dump, pg_restore, VACUUM)"
    )]
    OnlyFiles {
        /// The name of the database.
        database: String,
    },
    /// The connection was cut during a commit: the write was done or not.
    #[error(
        "the connection to the database {database} was cut during a commit, which was done or not: look up what it was to change"
    )]
    OutcomeUnknown {
        /// The name of the database.
        database: String,
    },
    /// Too many long reads of the tenant are queued; this read was not done.
    #[error("too many long reads wait for the database {database}: try again")]
    Crowded {
        /// The name of the database.
        database: String,
    },
    /// The write failed: it is not acknowledged, and unless the store was closed, no other write will be. After a
    /// failed fsync, the next start may find the write done.
    #[error(
        "the database {database} takes no more writes: see the log for the reason, then start again"
    )]
    Broken {
        /// The name of the database.
        database: String,
    },
}

impl StoreError {
    pub(super) fn open(file: &Path, source: io::Error) -> Self {
        Self::Open { file: file.to_owned(), source }
    }

    #[cfg(feature = "backup")]
    pub(super) fn copy(file: &Path, source: impl Into<EngineError>) -> Self {
        Self::Copy { file: file.to_owned(), source: source.into() }
    }

    pub(crate) fn from_sqlite(file: &Path, error: rusqlite::Error) -> Self {
        let database = file.display().to_string();
        if is_busy(&error) {
            return Self::Busy { database };
        }
        if is_damaged(&error) {
            let which = row_description(&error);
            return Self::Damaged { database, which, source: error.into() };
        }
        Self::Engine { database, source: error.into() }
    }

    /// Returns the error of a start that cannot read all idempotency keys.
    pub(super) fn unknown_keys(file: &Path, error: rusqlite::Error) -> Self {
        if !is_corrupt(&error) && !is_damaged(&error) {
            return Self::from_sqlite(file, error);
        }
        let reason = format!(
            "a page of its idempotency records is damaged ({error}), and no sound list has the keys on it, so an order \
             could be made twice: check the disk, and restore a backup"
        );
        Self::Unsuitable { database: file.display().to_string(), reason }
    }
}

/// The place of damage in a parcel, so that an operator can find it.
#[derive(Debug, thiserror::Error)]
#[error("{table}, parcel row {row}")]
struct Unreadable {
    table: &'static str,
    row: i64,
    source: rusqlite::Error,
}

/// Returns the error of a parcel that cannot be read, with the table and the parcel's row.
pub(crate) fn unreadable(
    table: &'static str,
    row: i64,
    source: rusqlite::Error,
) -> rusqlite::Error {
    let source = Box::new(Unreadable { table, row, source });
    rusqlite::Error::FromSqlConversionFailure(0, Type::Null, source)
}

/// Returns the table in which a parcel cannot be read, or `None` for another error.
pub(super) fn unreadable_table(error: &rusqlite::Error) -> Option<&'static str> {
    find_unreadable(error).map(|unreadable| unreadable.table)
}

fn find_unreadable(error: &rusqlite::Error) -> Option<&Unreadable> {
    match error {
        rusqlite::Error::FromSqlConversionFailure(_, _, source) => source.downcast_ref(),
        _ => None,
    }
}

fn row_description(error: &rusqlite::Error) -> String {
    find_unreadable(error).map(|unreadable| format!(" ({unreadable})")).unwrap_or_default()
}

/// Returns `true` if a query of one row failed because the row or its page is damaged. Generic errors count too,
/// because `SQLite` reports one when it parses invalid JSON.
pub(crate) fn is_row_error(error: &rusqlite::Error) -> bool {
    let is_plain = |error: &ffi::Error| error.extended_code == ffi::SQLITE_ERROR;
    is_damaged(error) || is_corrupt(error) || error.sqlite_error().is_some_and(is_plain)
}

/// Returns `true` if a row no longer holds the data that was written to it; the next row may be sound.
pub(crate) fn is_damaged(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..)
    )
}

/// Returns `true` if another connection holds the write lock.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Returns `true` if a constraint of a table refused a row.
pub(super) fn is_constraint(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}

/// Returns `true` if data could not be written, which is no fault of the data that was read.
#[cfg(feature = "backup")]
pub(super) fn is_write_error(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    matches!(
        code,
        Some(
            ffi::SQLITE_FULL
                | ffi::SQLITE_IOERR_WRITE
                | ffi::SQLITE_IOERR_FSYNC
                | ffi::SQLITE_IOERR_TRUNCATE
        )
    )
}

/// Returns `true` if a page of the file is damaged.
pub(super) fn is_corrupt(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt)
}

/// Returns `true` if the file can no longer be trusted to keep written data. A failed fsync is not retried, because it
/// may succeed the next time although the data is not on the disk.
pub(super) fn is_fatal(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::SystemIoFailure
                | ErrorCode::DiskFull
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
        )
    )
}

impl From<StoreError> for parcelo_domain::Refusal {
    fn from(error: StoreError) -> Self {
        match error {
            // The request reads too much at once; the server is healthy.
            StoreError::Crowded { .. } => tracing::debug!(%error, "a read was refused"),
            // The store has logged it once; logging each request would flood the log.
            StoreError::Unreachable { .. } => {
                tracing::debug!(%error, "the database cannot be reached");
            }
            StoreError::OutcomeUnknown { .. } => {
                tracing::error!(%error, "a write may have been done");
                return Self::outcome_unknown();
            }
            // Another attempt would read the same.
            StoreError::Damaged { .. } => {
                tracing::error!(%error, "a row cannot be read");
                return parcelo_types::ErrorCode::InternalError.into();
            }
            error => tracing::error!(%error, "the store failed"),
        }
        Self::unavailable()
    }
}
