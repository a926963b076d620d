//! Copies of a database to a file, for operators.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use rusqlite::Connection;
use tempfile::NamedTempFile;

use super::{
    StoreError,
    connection::{self, copy_pages},
    error::is_write_error,
    identity::{LOG_MARK_OFFSET, NO_LOG},
    newest_record,
};

/// Copies a snapshot of a database to a new file and returns its size. Other connections may write during the copy.
/// Neither file is upgraded, so an operator can go back to a copy made before an upgrade. The copy gets its final name
/// only when it is complete and synced, because a partial copy could be mistaken for a database without its newest
/// orders, or for a new database.
pub fn backup(database: &Path, file: &Path) -> Result<u64, StoreError> {
    let draft = draft(file)?;
    // A backup without the newest orders would be sound, and take the place of one that has more.
    newest_record::verify_newest(database)?;
    let source = connection::open_source(database)?;
    let mut copy = open_draft(&draft).map_err(|error| StoreError::copy(file, error))?;
    copy_pages(&source, &mut copy).map_err(|error| {
        if is_write_error(&error) {
            StoreError::copy(file, error)
        } else {
            StoreError::from_sqlite(database, error)
        }
    })?;
    drop(copy);
    publish(draft, file)
}

/// Creates a file that becomes `file` once it is complete.
pub(super) fn draft(file: &Path) -> Result<NamedTempFile, StoreError> {
    if file.symlink_metadata().is_ok() {
        return Err(StoreError::Exists { file: file.to_owned() });
    }
    draft_beside(file).map_err(|error| StoreError::copy(file, error))
}

/// Gives a complete draft its final name, durably, and returns its size.
pub(super) fn publish(draft: NamedTempFile, file: &Path) -> Result<u64, StoreError> {
    let failed = |error: io::Error| StoreError::copy(file, error);
    let size = seal(&draft).map_err(failed)?;
    draft.persist_noclobber(file).map_err(|refused| match refused.error.kind() {
        io::ErrorKind::AlreadyExists => StoreError::Exists { file: file.to_owned() },
        _ => failed(refused.error),
    })?;
    // Until the folder is on the disk too, a power cut can undo the renaming.
    sync_folder(file).map_err(failed)?;
    Ok(size)
}

/// Marks a complete draft as a file without a log, waits until it is on the disk, and returns its size.
pub(super) fn seal(draft: &NamedTempFile) -> io::Result<u64> {
    // The mark of the source says that it has a log.
    draft.as_file().write_all_at(&NO_LOG, LOG_MARK_OFFSET)?;
    draft.as_file().sync_all()?;
    Ok(draft.as_file().metadata()?.len())
}

/// Waits until the names in the file's folder are on the disk.
pub(super) fn sync_folder(file: &Path) -> io::Result<()> {
    File::open(parent_folder(file))?.sync_all()
}

/// Creates a file in the same folder that only its owner can read. It is deleted unless it gets the final name, or the
/// process is killed.
pub(super) fn draft_beside(file: &Path) -> io::Result<NamedTempFile> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!(".{name}.");
    tempfile::Builder::new().prefix(&prefix).suffix(".partial").tempfile_in(parent_folder(file))
}

pub(super) fn open_draft(draft: &NamedTempFile) -> rusqlite::Result<Connection> {
    let copy = Connection::open(draft.path())?;
    copy.busy_timeout(connection::BUSY_TIMEOUT)?;
    // An unfinished draft is thrown away, so nothing needs to be undone in it.
    copy.execute_batch("PRAGMA journal_mode = OFF")?;
    Ok(copy)
}

pub(super) fn parent_folder(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_during_a_copy_is_not_a_source_error() {
        let folder = tempfile::tempdir().unwrap();
        let mut to = Connection::open(folder.path().join("copy.db")).unwrap();
        to.execute_batch("PRAGMA max_page_count = 2").unwrap();
        let from = connection::memory().unwrap();
        from.execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (randomblob(99999));")
            .unwrap();
        let error = copy_pages(&from, &mut to).unwrap_err();
        assert!(is_write_error(&error), "{error:?}");
    }
}
