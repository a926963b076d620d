//! The lock that one server holds on a database file, and the check that the file stays where it is.
//!
//! A process that closes any descriptor of a file loses all its POSIX locks on the file, including `SQLite`'s. So this
//! process opens a database file once, in addition to `SQLite`, and never closes it. Anything else about the file is
//! learned from `stat`.

use std::{
    fs::{self, File, Metadata, TryLockError},
    io,
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, fchown},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::StoreError;

/// Device and inode, which identify the file whatever its names. The inode of an open file is not reused.
type FileId = (u64, u64);

/// All database files that this process has opened.
static OPEN: Mutex<Vec<Arc<Descriptor>>> = Mutex::new(Vec::new());

struct Descriptor {
    file: File,
    id: FileId,
    /// `true` while locked. A lock belongs to the descriptor, so the same process could take it a second time.
    is_held: AtomicBool,
}

/// A lock that reserves the file for one server, until it is dropped.
pub(super) struct FileLock {
    descriptor: Arc<Descriptor>,
    /// The lock file that servers before 0.2 check, with a note (see `newest_record`).
    lock_file: File,
}

/// Locks the file for one server, and creates it if it does not exist.
pub(super) fn lock(file: &Path) -> Result<FileLock, StoreError> {
    let descriptor = open_once(file).map_err(|error| StoreError::open(file, error))?;
    let lock_file = lock_companion_file(file)?;
    if descriptor.is_held.swap(true, Ordering::AcqRel) {
        return Err(StoreError::InUse { file: file.to_owned() });
    }
    // From here on dropping the lock releases the file, even if locking it fails.
    let lock = FileLock { descriptor, lock_file };
    // Outside Linux such a lock conflicts with SQLite's own.
    if cfg!(target_os = "linux") {
        check_locked(lock.descriptor.file.try_lock(), file)?;
    }
    Ok(lock)
}

impl FileLock {
    /// Returns the locked file.
    pub(super) fn file(&self) -> OpenFile {
        OpenFile(Arc::clone(&self.descriptor))
    }

    /// Notes a number for this file. Without the note the next start checks less, so a failure is ignored.
    pub(super) fn write_note(&self, number: i64) {
        let bytes = [self.descriptor.id.1.to_le_bytes(), number.to_le_bytes()].concat();
        let _ = self.lock_file.write_all_at(&bytes, 0);
    }
}

/// Returns the number that was noted for a file, perhaps by a server that runs, and the path of the note. A note for
/// another file that had its name does not count.
pub(super) fn read_note(file: &Path) -> Option<(i64, PathBuf)> {
    let path = lock_path(file).ok()?;
    let mut bytes = [0; 16];
    File::open(&path).ok()?.read_exact_at(&mut bytes, 0).ok()?;
    let (inode, number) = bytes.split_first_chunk()?;
    let number = i64::from_le_bytes(*number.first_chunk()?);
    (u64::from_le_bytes(*inode) == fs::metadata(file).ok()?.ino()).then_some((number, path))
}

/// Deletes the note of a file, if there is one.
pub(super) fn forget_note(file: &Path) {
    let open = |path: PathBuf| File::options().write(true).open(path);
    let _ = lock_path(file).and_then(open).and_then(|lock| lock.set_len(0));
}

/// A database file, through the descriptor that is never closed.
pub(super) struct OpenFile(Arc<Descriptor>);

impl OpenFile {
    /// Reads bytes of the file itself, without `SQLite` and its log.
    pub(super) fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.file.read_exact_at(bytes, offset)
    }

    /// Gives the file to the owner of its folder, if this process may do so.
    #[cfg(feature = "backup")]
    pub(super) fn give_to_folder_owner(&self, folder: &Path) -> io::Result<()> {
        give_to_owner(&self.0.file, &fs::metadata(folder)?)
    }

    /// Waits until everything written to the file, through any descriptor, is on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.0.file.sync_data()
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // If a file cannot be unlocked, it stays locked until the process ends, which is safe. Closing the lock file
        // would not be enough: a process that is being started has copies of all descriptors for a moment.
        let _ = self.descriptor.file.unlock();
        let _ = self.lock_file.unlock();
        self.descriptor.is_held.store(false, Ordering::Release);
    }
}

/// Locks a second file, named after the real file, whatever links lead to the real file. A new one gets the owner of the
/// real file, or the server could not open a lock file that a command of root has made.
fn lock_companion_file(file: &Path) -> Result<File, StoreError> {
    let path = lock_path(file).map_err(|error| StoreError::open(file, error))?;
    let open = || {
        let mut options = File::options();
        options.read(true).write(true);
        match options.create_new(true).open(&path) {
            Ok(new) => give_to_owner(&new, &fs::metadata(file)?).map(|()| new),
            // An existing one keeps its owner: it may be a link to another file, which root must not give away.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                options.create_new(false).create(true).truncate(false).open(&path)
            }
            Err(error) => Err(error),
        }
    };
    let lock = open().map_err(|source| StoreError::LockFile { file: path.clone(), source })?;
    check_locked(lock.try_lock(), file)?;
    Ok(lock)
}

/// Gives a file to the owner of another one. Only root can do so, and other accounts keep their files.
fn give_to_owner(file: &File, other: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) == (other.uid(), other.gid()) {
        return Ok(());
    }
    match fchown(file, Some(other.uid()), Some(other.gid())) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        given => given,
    }
}

fn lock_path(file: &Path) -> io::Result<PathBuf> {
    Ok(with_suffix(&file.canonicalize()?, ".lock"))
}

fn check_locked(tried: Result<(), TryLockError>, file: &Path) -> Result<(), StoreError> {
    match tried {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse { file: file.to_owned() }),
        Err(TryLockError::Error(error)) => Err(StoreError::open(file, error)),
    }
}

/// Opens the file, unless this process has done so before. Only its owner can read a new file, because it holds the
/// secret and people's addresses.
pub(super) fn create(file: &Path) -> Result<OpenFile, StoreError> {
    open_once(file).map(OpenFile).map_err(|error| StoreError::open(file, error))
}

fn open_once(file: &Path) -> io::Result<Arc<Descriptor>> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Ok(found) = fs::metadata(file)
        && let Some(known) = open.iter().find(|known| known.id == file_id(&found))
    {
        return Ok(Arc::clone(known));
    }
    let mut options = File::options();
    let opened =
        options.read(true).write(true).create(true).truncate(false).mode(0o600).open(file)?;
    let id = file_id(&opened.metadata()?);
    let descriptor = Arc::new(Descriptor { file: opened, id, is_held: AtomicBool::new(false) });
    open.push(Arc::clone(&descriptor));
    Ok(descriptor)
}

fn file_id(found: &Metadata) -> FileId {
    (found.dev(), found.ino())
}

pub(super) fn with_suffix(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// The files of an open database, with their paths.
#[derive(Debug)]
pub(super) struct Files(Vec<(PathBuf, FileId)>);

impl Files {
    /// Returns the files of an open database, including its log and its shared memory if they exist. Data that is
    /// written to any of these files after its name is gone is lost.
    pub(super) fn of_database(file: &Path) -> io::Result<Self> {
        let real = file.canonicalize()?;
        let mut files = vec![(file.to_owned(), file_id(&fs::metadata(file)?))];
        for end in ["-wal", "-shm"] {
            let path = with_suffix(&real, end);
            if let Ok(found) = fs::metadata(&path) {
                files.push((path, file_id(&found)));
            }
        }
        Ok(Self(files))
    }

    /// Returns the first file that was deleted, or replaced by another file of its name.
    pub(super) fn missing(&self) -> Option<&Path> {
        let is_missing = |(path, id): &&(PathBuf, FileId)| match fs::metadata(path) {
            Ok(found) => file_id(&found) != *id,
            // Without permission to look, the answer is unknown, so the file does not count as missing.
            Err(error) => {
                matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
            }
        };
        self.0.iter().find(is_missing).map(|(path, _)| path.as_path())
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_released_lock_is_free_despite_inherited_descriptors() {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("parcelo.db");
        let held = lock(&file).unwrap();
        let _copies =
            [&held.descriptor.file, &held.lock_file].map(|file| file.try_clone().unwrap());
        drop(held);
        assert!(lock(&file).is_ok());
    }
}
