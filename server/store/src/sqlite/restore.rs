//! The return of a backup to the place of a database file, for operators. Nothing is deleted: the files that were there
//! are kept under other names.

use std::{
    fs::{self, File},
    io, iter,
    os::unix::fs::{MetadataExt, fchown},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use super::{
    StoreError,
    backup::{draft_beside, parent_folder, seal, sync_folder},
    file_lock,
};

/// A restored database file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreReport {
    /// Size of the file in bytes.
    pub bytes: u64,
    /// New names of the files that were in its place.
    pub moved_aside: Vec<PathBuf>,
}

/// Puts a copy of a backup durably in the place of a database file that no server uses, or under its name if it is
/// missing. The old file, its log and its shared memory are kept, with `suffix` behind the file's name, and a number if
/// that is taken. Verify the backup first.
pub fn restore(backup: &Path, database: &Path, suffix: &str) -> Result<RestoreReport, StoreError> {
    let is_replaced = database.exists();
    if !is_replaced {
        // A server could not open a file that belongs to root.
        let new = file_lock::create(database)?;
        database
            .canonicalize()
            .and_then(|file| new.give_to_folder_owner(&parent_folder(&file)))
            .map_err(|error| StoreError::open(database, error))?;
    }
    // The lock beside the file also keeps out a server that finds the restored one.
    let _lock = file_lock::lock(database)?;
    // A log is beside the file itself, not beside a link to it.
    let file = database.canonicalize().map_err(|error| StoreError::open(database, error))?;
    let source = File::open(backup).map_err(|error| StoreError::open(backup, error))?;
    let replace = || {
        let draft = copy(&source, &file)?;
        let bytes = seal(&draft)?;
        let moved_aside = swap(draft, (&file, is_replaced), suffix)?;
        Ok(RestoreReport { bytes, moved_aside })
    };
    replace().map_err(|error: io::Error| StoreError::copy(&file, error))
}

/// Copies a backup to a draft beside the database file, for the file's owner.
fn copy(mut source: &File, file: &Path) -> io::Result<NamedTempFile> {
    let draft = draft_beside(file)?;
    io::copy(&mut source, &mut draft.as_file())?;
    let (old, new) = (fs::metadata(file)?, draft.as_file().metadata()?);
    // The server could not open a file that root has restored.
    if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
        fchown(draft.as_file(), Some(old.uid()), Some(old.gid()))?;
    }
    Ok(draft)
}

/// Returns a name that another restore of the same second has not given to its files: this one, or one with a number.
fn free_name(name: &Path) -> PathBuf {
    let is_free = |name: &PathBuf| {
        let is_absent = |end| file_lock::with_suffix(name, end).symlink_metadata().is_err();
        ["", "-wal", "-shm"].into_iter().all(is_absent)
    };
    let numbered = (2..1_000).map(|number| file_lock::with_suffix(name, &format!("-{number}")));
    iter::once(name.to_owned()).chain(numbered).find(is_free).unwrap_or_else(|| name.to_owned())
}

/// Exchanges the files, and returns the new names of the old ones. The steps are on the disk one after the other, so that
/// a crash leaves the old database with its log, or the backup beside a log that is refused with it. If the file or its
/// log were missing for a moment, a server that starts then would make orders a second time.
fn swap(
    draft: NamedTempFile,
    (file, is_replaced): (&Path, bool),
    suffix: &str,
) -> io::Result<Vec<PathBuf>> {
    let aside = free_name(&file_lock::with_suffix(file, suffix));
    let mut moved_aside = Vec::new();
    if is_replaced {
        fs::hard_link(file, &aside)?;
        sync_folder(file)?;
        moved_aside.push(aside.clone());
    }
    draft.persist(file).map_err(|refused| refused.error)?;
    sync_folder(file)?;
    for end in ["-wal", "-shm"] {
        let (old, new) = (file_lock::with_suffix(file, end), file_lock::with_suffix(&aside, end));
        match fs::rename(old, &new) {
            Ok(()) => moved_aside.push(new),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    sync_folder(file)?;
    Ok(moved_aside)
}
