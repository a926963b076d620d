//! The files at either end of a copy between engines: a source that is read while no server uses it, and a target that
//! gets its name when it is complete.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::NamedTempFile;

use super::{
    StoreError, backup, connection,
    file_lock::{self, FileLock},
    identity,
    migrations::{known, migrate, schema},
    newest_record,
};

/// A file that is copied: the file of a stopped server, or a backup.
pub(crate) struct Source {
    pub(crate) db: Connection,
    /// Declared last, so that it is dropped after the connection.
    _lock: FileLock,
}

impl Source {
    /// Locks the file, and begins to read it as it is at this moment.
    pub(crate) fn open(file: &Path) -> Result<Self, StoreError> {
        let lock = file_lock::lock(file)?;
        newest_record::verify_newest(file)?;
        let db = connection::open_source(file)?;
        let failed = |error| StoreError::from_sqlite(file, error);
        // A command may write to the file although no server runs, so all tables must be read from one snapshot, which
        // the first read takes.
        db.execute_batch("BEGIN").map_err(failed)?;
        let (found, known) = (schema(&db).map_err(failed)?, known());
        if found != known {
            let reason = format!(
                "it has schema {found} and this program's is {known}: start the server on it once, which upgrades it"
            );
            return Err(StoreError::Unsuitable { database: file.display().to_string(), reason });
        }
        Ok(Self { db, _lock: lock })
    }
}

/// A file that is being filled, under a temporary name.
pub(crate) struct Draft {
    pub(crate) db: Connection,
    file: PathBuf,
    /// The temporary name.
    temporary: NamedTempFile,
}

impl Draft {
    pub(crate) fn begin(file: &Path) -> Result<Self, StoreError> {
        let temporary = backup::draft(file)?;
        let failed = |error| StoreError::copy(file, error);
        let db = backup::open_draft(&temporary).map_err(failed)?;
        let begin = || {
            // It is synced as a whole, at the end.
            db.execute_batch("PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; BEGIN")?;
            migrate(&db)?;
            identity::mark_as_ours(&db)
        };
        begin().map_err(failed)?;
        Ok(Self { db, file: file.to_owned(), temporary })
    }

    /// Gives the file its name, now that it is complete and on the disk.
    pub(crate) fn finish(self) -> Result<(), StoreError> {
        let Self { db, file, temporary } = self;
        db.execute_batch("COMMIT").map_err(|error| StoreError::copy(&file, error))?;
        drop(db);
        backup::publish(temporary, &file).map(drop)
    }
}
