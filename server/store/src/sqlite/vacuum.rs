//! Removal of erased data from the disk. `secure_delete` overwrites it in the database file. The write-ahead log holds
//! older copies of pages until the log is truncated, which needs a moment without readers. A file that was written
//! before 0.2 is cleaned as a whole.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::{PoisonError, atomic::Ordering},
};

use rusqlite::Connection;

use super::{
    Mode, Store, StoreError, connection,
    file_lock::{self, FileLock},
    identity::IfEmpty,
    newest_record,
};

/// The size of a database before and after it was rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VacuumReport {
    /// Size in bytes before.
    pub before: u64,
    /// Size in bytes after.
    pub after: u64,
}

/// A database file that no other process uses.
pub struct VacuumJob {
    db: Connection,
    path: PathBuf,
    before: u64,
    /// Declared last, so that it is dropped after the connection.
    _lock: FileLock,
}

impl VacuumJob {
    /// Rewrites the whole file, without any trace of deleted data.
    pub fn run(self) -> Result<VacuumReport, StoreError> {
        let Self { db, path, before, .. } = &self;
        let failed = |error| StoreError::from_sqlite(path, error);
        // The copy is as large as the database, so it goes into a file, not into memory as elsewhere.
        db.execute_batch("PRAGMA temp_store = FILE; VACUUM;").map_err(failed)?;
        if !connection::truncate_log(db).map_err(failed)? {
            return Err(StoreError::Busy { database: path.display().to_string() });
        }
        Ok(VacuumReport { before: *before, after: size_with_log(path)? })
    }
}

impl fmt::Debug for VacuumJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VacuumJob").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Store {
    /// Locks a database file for rewriting, so that no server can use it, and checks that it is ours.
    pub fn lock_for_vacuum(path: &Path, fresh_secret: [u8; 32]) -> Result<VacuumJob, StoreError> {
        let lock = file_lock::lock(path)?;
        newest_record::verify_newest(path)?;
        let before = size_with_log(path)?;
        let (db, _) = connection::open_writer(path, IfEmpty::Refuse, fresh_secret)?;
        Ok(VacuumJob { _lock: lock, path: path.to_owned(), db, before })
    }

    /// Truncates the log if it may hold erased data and nothing is being erased. If a reader uses the log, the next
    /// call tries again.
    pub(crate) async fn truncate_log(&self) {
        let Mode::File { writer, .. } = &self.0.mode else { return };
        let is_idle = self.0.state.mass_writes.try_lock().is_ok();
        if is_idle && !self.is_erasing() && self.0.log_holds_erased.swap(false, Ordering::Relaxed) {
            let is_done = writer.truncate_log().await;
            self.mark_erased(!is_done);
        }
    }

    fn is_erasing(&self) -> bool {
        self.0.state.resets.lock().unwrap_or_else(PoisonError::into_inner).is_erasing()
    }

    /// Records that the log may hold erased data, if anything was erased.
    pub(crate) fn mark_erased(&self, something: bool) {
        if something {
            self.0.log_holds_erased.store(true, Ordering::Relaxed);
        }
    }
}

/// Returns the size of a database file and its log, in bytes.
fn size_with_log(path: &Path) -> Result<u64, StoreError> {
    let file = fs::metadata(path).map_err(|error| StoreError::open(path, error))?;
    Ok(file.len() + log_size(path))
}

/// Returns the size of a database file's log in bytes. A missing log counts as 0.
pub(super) fn log_size(path: &Path) -> u64 {
    fs::metadata(connection::wal_path(path)).map_or(0, |log| log.len())
}
