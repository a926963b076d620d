//! The files at either end of a copy between engines: a source that is read while no server uses it, and a target that
//! gets its name when it is complete.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, Rows, Statement, params_from_iter};
use tempfile::NamedTempFile;

use super::{
    StoreError, backup, connection,
    file_lock::{self, FileLock},
    identity,
    migrations::{known, migrate, schema},
};
use crate::store::transfer::{Table, Value};

/// A file that is copied: the file of a stopped server, or a backup.
pub(in crate::store) struct Source {
    db: Connection,
    file: PathBuf,
    /// Declared last, so that it is dropped after the connection.
    _lock: FileLock,
}

impl Source {
    /// Locks the file, and begins to read it as it is at this moment.
    pub(in crate::store) fn open(file: &Path) -> Result<Self, StoreError> {
        let lock = file_lock::lock(file)?;
        let db = connection::source(file)?;
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
        Ok(Self { db, file: file.to_owned(), _lock: lock })
    }

    pub(in crate::store) fn select(&self, table: &Table) -> Result<Select<'_>, StoreError> {
        Select::new(&self.db, &self.file, table)
    }
}

/// A file that is being filled, under a temporary name.
pub(in crate::store) struct Draft {
    db: Connection,
    file: PathBuf,
    /// The temporary name.
    temporary: NamedTempFile,
}

impl Draft {
    pub(in crate::store) fn begin(file: &Path) -> Result<Self, StoreError> {
        let temporary = backup::draft(file)?;
        let failed = |error| StoreError::copy(file, error);
        let db = backup::open_draft(&temporary).map_err(failed)?;
        let begin = || {
            // It is synced as a whole, at the end.
            db.execute_batch("PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; BEGIN")?;
            migrate(&db)?;
            identity::mark(&db)
        };
        begin().map_err(failed)?;
        Ok(Self { db, file: file.to_owned(), temporary })
    }

    pub(in crate::store) fn writer(&self, table: &Table) -> Result<Writer<'_>, StoreError> {
        let insert = self.db.prepare(&table.sqlite_insert());
        let insert = insert.map_err(|error| StoreError::copy(&self.file, error))?;
        Ok(Writer { draft: self, insert })
    }

    pub(in crate::store) fn select(&self, table: &Table) -> Result<Select<'_>, StoreError> {
        Select::new(&self.db, &self.file, table)
    }

    /// Gives the file its name, now that it is complete and on the disk.
    pub(in crate::store) fn finish(self) -> Result<(), StoreError> {
        // As in migration 0010, so that no id of a manifest is reused.
        let finish = "UPDATE last_manifest SET id = max(coalesce((SELECT max(id) FROM manifests), 0), \
             coalesce((SELECT max(manifest) FROM manifest_parcels), 0), \
             coalesce((SELECT max(manifest) FROM outbox), 0)); COMMIT";
        let failed = |error| StoreError::copy(&self.file, error);
        self.db.execute_batch(finish).map_err(failed)?;
        let Self { db, file, temporary, .. } = self;
        drop(db);
        backup::publish(temporary, &file).map(drop)
    }
}

/// A writer of rows into a table of a draft.
pub(in crate::store) struct Writer<'a> {
    draft: &'a Draft,
    insert: Statement<'a>,
}

impl Writer<'_> {
    pub(in crate::store) fn write(&mut self, row: &[Value]) -> Result<(), StoreError> {
        let written = self.insert.execute(params_from_iter(row)).map(drop);
        written.map_err(|error| StoreError::copy(&self.draft.file, error))
    }
}

/// A statement that reads a table.
pub(in crate::store) struct Select<'a> {
    statement: Statement<'a>,
    file: &'a Path,
}

impl<'a> Select<'a> {
    fn new(db: &'a Connection, file: &'a Path, table: &Table) -> Result<Self, StoreError> {
        let statement = db.prepare(&table.sqlite_select());
        let statement = statement.map_err(|error| StoreError::from_sqlite(file, error))?;
        Ok(Self { statement, file })
    }

    pub(in crate::store) fn rows(&mut self) -> Result<Selected<'_>, StoreError> {
        let (file, columns) = (self.file, self.statement.column_count());
        let rows = self.statement.query([]);
        let rows = rows.map_err(|error| StoreError::from_sqlite(file, error))?;
        Ok(Selected { rows, columns, file })
    }
}

/// The rows of a table.
pub(in crate::store) struct Selected<'a> {
    rows: Rows<'a>,
    columns: usize,
    file: &'a Path,
}

impl Selected<'_> {
    pub(in crate::store) fn next(&mut self) -> Result<Option<Vec<Value>>, StoreError> {
        self.read().map_err(|error| StoreError::from_sqlite(self.file, error))
    }

    fn read(&mut self) -> rusqlite::Result<Option<Vec<Value>>> {
        let Some(row) = self.rows.next()? else { return Ok(None) };
        let value = |column| {
            let damaged = |error| {
                rusqlite::Error::FromSqlConversionFailure(
                    column,
                    rusqlite::types::Type::Null,
                    Box::new(error),
                )
            };
            Value::from_sqlite(row.get_ref(column)?).map_err(damaged)
        };
        (0..self.columns).map(value).collect::<rusqlite::Result<_>>().map(Some)
    }
}
