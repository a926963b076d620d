//! Copies: in memory, and back, for tests that begin at the same state again and again; and to a file,
//! for operators.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::PoisonError,
};

use rusqlite::{
    Connection,
    backup::{Backup, StepResult},
    ffi,
};
use tempfile::NamedTempFile;

use super::{Mode, Store, StoreError, connection, error::is_of_writing, leases};

/// All pages at once.
const ALL: i32 = -1;

impl Store {
    /// A store in memory that holds what this one holds now.
    pub fn copy(&self) -> Result<Self, StoreError> {
        let copied = self.read(|db| {
            let mut copy = connection::memory()?;
            copy_pages(db, &mut copy)?;
            Ok(copy)
        });
        Self::inline(copied?, &self.0.file, self.0.secret)
    }

    /// Writes a copy of the database as it is at one moment to a new file, and answers its size.
    /// Others may write meanwhile. Under its name the copy is whole and on the disk, or not there:
    /// half a copy would pass for a database without its newest orders, or for a new one.
    pub fn backup(&self, file: &Path) -> Result<u64, StoreError> {
        if file.symlink_metadata().is_ok() {
            return Err(StoreError::Exists { file: file.to_owned() });
        }
        let failed = |error: io::Error| StoreError::copy(file, error);
        let draft = draft_beside(file).map_err(failed)?;
        let mut copy = open_draft(&draft).map_err(|error| StoreError::copy(file, error))?;
        let copied = self.read(|db| match copy_pages(db, &mut copy) {
            Err(error) if is_of_writing(&error) => Ok(Err(error)),
            read => read.map(Ok),
        })?;
        copied.map_err(|error| StoreError::copy(file, error))?;
        drop(copy);
        let written = draft.as_file().sync_all().and_then(|()| draft.as_file().metadata());
        let size = written.map_err(failed)?.len();
        draft.persist_noclobber(file).map_err(|refused| match refused.error.kind() {
            io::ErrorKind::AlreadyExists => StoreError::Exists { file: file.to_owned() },
            _ => failed(refused.error),
        })?;
        // Until the folder is on the disk too, a power cut can take the name away again.
        File::open(folder_of(file)).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(size)
    }

    /// Replaces all that a store in memory holds by what another holds.
    pub fn become_copy_of(&self, other: &Self) -> Result<(), StoreError> {
        let Mode::Inline(db) = &self.0.mode else {
            return Err(StoreError::InUse { file: self.0.file.clone() });
        };
        let mut db = db.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |error| StoreError::of(&self.0.file, error);
        let last = leases::last(&db).map_err(failed)?;
        other.read(|other| copy_pages(other, &mut db))?;
        // What is on its way is of the state that goes.
        leases::go_on_from(&db, last).map_err(failed)?;
        self.notify_outbox();
        Ok(())
    }
}

/// A file in the same folder, for its owner only; it goes unless it gets the final name, or the process
/// is killed.
fn draft_beside(file: &Path) -> io::Result<NamedTempFile> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!(".{name}.");
    tempfile::Builder::new().prefix(&prefix).suffix(".partial").tempfile_in(folder_of(file))
}

fn open_draft(draft: &NamedTempFile) -> rusqlite::Result<Connection> {
    let copy = Connection::open(draft.path())?;
    copy.busy_timeout(connection::BUSY)?;
    // A draft that is not finished is thrown away, so nothing need be undone in it.
    copy.execute_batch("PRAGMA journal_mode = OFF")?;
    Ok(copy)
}

fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Copies all, or fails: `SQLite` calls it no error when one of the two is held by somebody else.
pub(super) fn copy_pages(from: &Connection, to: &mut Connection) -> rusqlite::Result<()> {
    match Backup::new(from, to)?.step(ALL)? {
        StepResult::Done => Ok(()),
        _ => Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_somebody_else_holds_is_no_copy() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("copy.db");
        let holder = Connection::open(&file).unwrap();
        holder.execute_batch("CREATE TABLE t (a); BEGIN EXCLUSIVE;").unwrap();
        let (from, mut to) = (connection::memory().unwrap(), Connection::open(&file).unwrap());
        to.busy_timeout(std::time::Duration::ZERO).unwrap();
        from.execute_batch("CREATE TABLE u (b);").unwrap();
        assert!(copy_pages(&from, &mut to).is_err());
        holder.execute_batch("COMMIT").unwrap();
        copy_pages(&from, &mut to).unwrap();
        assert!(to.prepare("SELECT b FROM u").is_ok());
    }

    #[test]
    fn a_copy_without_room_is_not_the_fault_of_what_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let mut to = Connection::open(folder.path().join("copy.db")).unwrap();
        to.execute_batch("PRAGMA max_page_count = 2").unwrap();
        let from = connection::memory().unwrap();
        from.execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (randomblob(99999));")
            .unwrap();
        let error = copy_pages(&from, &mut to).unwrap_err();
        assert!(is_of_writing(&error), "{error:?}");
    }
}
