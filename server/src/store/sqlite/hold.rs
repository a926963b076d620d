//! Holding a database file: one server has it, and it stays where it is.
//!
//! A process that closes any descriptor of a file loses all POSIX locks it has on it, `SQLite`'s
//! too. So this process opens a database file once beside `SQLite`, and never closes it; whatever
//! else is asked of the file is asked by `stat`.

use std::{
    fs::{self, File, Metadata, TryLockError},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::StoreError;

/// Device and inode: the file itself, whatever its names. The inode of an open file is not given away.
type FileId = (u64, u64);

/// Every database file that this process has opened.
static OPEN: Mutex<Vec<Arc<Descriptor>>> = Mutex::new(Vec::new());

struct Descriptor {
    file: File,
    id: FileId,
    /// A lock belongs to the descriptor: asked for again by the same process, it would be granted.
    is_held: AtomicBool,
}

/// The file is one server's for as long as this lives.
pub(super) struct Hold {
    descriptor: Arc<Descriptor>,
    /// What servers before 0.2 look at.
    _lock_file: File,
}

/// Holds the file for one server, and makes it if it does not exist.
pub(super) fn hold(file: &Path) -> Result<Hold, StoreError> {
    let descriptor = open_once(file).map_err(|error| StoreError::open(file, error))?;
    let lock_file = lock_beside(file)?;
    if descriptor.is_held.swap(true, Ordering::AcqRel) {
        return Err(StoreError::InUse { file: file.to_owned() });
    }
    // From here on the hold gives it free, also when it could not be locked.
    let hold = Hold { descriptor, _lock_file: lock_file };
    // Elsewhere than on Linux such a lock and SQLite's own stand in each other's way.
    if cfg!(target_os = "linux") {
        locked(hold.descriptor.file.try_lock(), file)?;
    }
    Ok(hold)
}

impl Hold {
    /// The file that is held.
    pub(super) fn file(&self) -> Held {
        Held(Arc::clone(&self.descriptor))
    }
}

/// A file that is held, by the descriptor that is never closed.
pub(super) struct Held(Arc<Descriptor>);

impl Held {
    /// Waits until all that was written to the file, by whichever descriptor, is on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.0.file.sync_data()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // Where it cannot be unlocked, it is held until the process ends: safe, and nothing to be done.
        let _ = self.descriptor.file.unlock();
        self.descriptor.is_held.store(false, Ordering::Release);
    }
}

/// A lock of a file beside it, named after the real file, whatever links lead to that.
fn lock_beside(file: &Path) -> Result<File, StoreError> {
    let real = file.canonicalize().map_err(|error| StoreError::open(file, error))?;
    let lock =
        File::options().create(true).truncate(false).write(true).open(beside(&real, ".lock"));
    let lock = lock.map_err(|error| StoreError::open(file, error))?;
    locked(lock.try_lock(), file)?;
    Ok(lock)
}

fn locked(tried: Result<(), TryLockError>, file: &Path) -> Result<(), StoreError> {
    match tried {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse { file: file.to_owned() }),
        Err(TryLockError::Error(error)) => Err(StoreError::open(file, error)),
    }
}

/// Opens the file, unless this process has done so before; one that is made can be read by its owner
/// only, for it holds the secret and people's addresses.
pub(super) fn create(file: &Path) -> Result<(), StoreError> {
    open_once(file).map(drop).map_err(|error| StoreError::open(file, error))
}

fn open_once(file: &Path) -> io::Result<Arc<Descriptor>> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Ok(found) = fs::metadata(file)
        && let Some(known) = open.iter().find(|known| known.id == id_of(&found))
    {
        return Ok(Arc::clone(known));
    }
    let mut options = File::options();
    let opened =
        options.read(true).write(true).create(true).truncate(false).mode(0o600).open(file)?;
    let id = id_of(&opened.metadata()?);
    let descriptor = Arc::new(Descriptor { file: opened, id, is_held: AtomicBool::new(false) });
    open.push(Arc::clone(&descriptor));
    Ok(descriptor)
}

fn id_of(found: &Metadata) -> FileId {
    (found.dev(), found.ino())
}

pub(super) fn beside(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// The files of an open database, and where they are.
#[derive(Debug)]
pub(super) struct Files(Vec<(PathBuf, FileId)>);

impl Files {
    /// Those of a database that is open: its log and its shared memory, where there are any, too. What
    /// is written to one of them after its name is gone is lost as well.
    pub(super) fn of_database(file: &Path) -> io::Result<Self> {
        let real = file.canonicalize()?;
        let mut files = vec![(file.to_owned(), id_of(&fs::metadata(file)?))];
        for end in ["-wal", "-shm"] {
            let path = beside(&real, end);
            if let Ok(found) = fs::metadata(&path) {
                files.push((path, id_of(&found)));
            }
        }
        Ok(Self(files))
    }

    /// The first that was deleted, or replaced by another file of its name.
    pub(super) fn missing(&self) -> Option<&Path> {
        let is_missing = |(path, id): &&(PathBuf, FileId)| match fs::metadata(path) {
            Ok(found) => id_of(&found) != *id,
            // Without permission to look it cannot be known to be gone.
            Err(error) => {
                matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
            }
        };
        self.0.iter().find(is_missing).map(|(path, _)| path.as_path())
    }
}
