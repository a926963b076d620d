//! The newest committed idempotency record, noted in the lock file beside a database, which shows at the next start that
//! the database has lost its log. `SQLite` opens such a file as if the log had never been there, and the orders in the log
//! would be made a second time.
//!
//! The note is not synced and may be old, but it is never ahead of the disk, because it is written after the commit. So
//! it does not matter who has moved the log into the file. It counts for the same file only, and only if the file's
//! header says that it has a log: a backup, or a new file, rightly has fewer records.

use std::{cell::Cell, path::Path, sync::Arc};

use super::{
    StoreError, connection,
    file_lock::FileLock,
    identity::{LOG_MARK_OFFSET, NO_LOG},
    key_index::{self, KeyIndex},
};

/// Refuses a file that lacks a record that was committed. It is called before anything is written to the file, because
/// its log may be put back.
pub(super) fn verify_newest(lock: &FileLock, file: &Path) -> Result<(), StoreError> {
    let mut mark = [0; 2];
    let is_read = lock.file().read_at(&mut mark, LOG_MARK_OFFSET).is_ok();
    if !is_read || mark == NO_LOG {
        lock.forget_note();
        return Ok(());
    }
    let Some(noted) = lock.note() else { return Ok(()) };
    // A file that cannot be read is reported by the code that opens it.
    let last = connection::open_reader(file).and_then(|db| key_index::last_id(&db));
    if last.is_ok_and(|last| last < noted) {
        return Err(StoreError::LostRecords { file: file.to_owned(), note: lock.note_path() });
    }
    Ok(())
}

/// The note of a server's file, with the lock that protects both.
pub(super) struct NewestRecord {
    lock: FileLock,
    keys: Arc<KeyIndex>,
    noted: Cell<i64>,
}

impl NewestRecord {
    /// Notes nothing yet: what a killed server has written may not be on the disk before the next commit.
    pub(super) fn new(lock: FileLock, keys: Arc<KeyIndex>) -> Self {
        let noted = Cell::new(keys.last_added());
        Self { lock, keys, noted }
    }

    /// Notes the newest committed record; call it after each commit.
    pub(super) fn write(&self) {
        let newest = self.keys.last_committed();
        if newest > self.noted.get() {
            self.noted.set(newest);
            self.lock.write_note(newest);
        }
    }
}
