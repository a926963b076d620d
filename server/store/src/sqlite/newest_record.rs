//! The newest committed idempotency record, noted in the lock file beside a database, which shows at the next start, and
//! to every command, that the database has lost its log. `SQLite` opens such a file as if the log had never been there:
//! the orders in the log would be made a second time, and once something is written, the log cannot be put back.
//!
//! The note is not synced and may be old, but it is never ahead of the disk, because it is written after the commit. So
//! it does not matter who has moved the log into the file. It counts for the same file only, and only if the file's
//! header says that it has a log: a backup, or a new file, rightly has fewer records.

use std::{cell::Cell, path::Path, sync::Arc};

use super::{
    StoreError, connection,
    file_lock::{self, FileLock},
    identity::{self, LOG_MARK_OFFSET, NO_LOG},
    key_index::{self, KeyIndex},
};

/// Refuses a file that lacks a record that was committed, or has another's log beside it. It is called before `SQLite`'s
/// first look at the file, and before anything is written to it, because its log may be put back. It needs no lock, so
/// that a command can check the file of a server that runs. A missing file is created.
pub(super) fn verify_newest(file: &Path) -> Result<(), StoreError> {
    identity::verify_log(file)?;
    let mut mark = [0; 2];
    let is_read = file_lock::create(file)?.read_at(&mut mark, LOG_MARK_OFFSET).is_ok();
    if !is_read || mark == NO_LOG {
        file_lock::forget_note(file);
        return Ok(());
    }
    // The note is read first: a server that runs may commit and note another record before the next line.
    let Some((noted, note)) = file_lock::read_note(file) else { return Ok(()) };
    // A file that cannot be read is reported by the code that opens it.
    let last = connection::open_reader(file).and_then(|db| key_index::last_id(&db));
    if last.is_ok_and(|last| last < noted) {
        return Err(StoreError::LostRecords { file: file.to_owned(), note });
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
