//! A journal in a file: a line of JSON for each change of an entry, the last of which counts.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use tokio::task::spawn_blocking;

use super::{Entry, Journal, JournalError};

/// A [`Journal`] in a file of its own, which one process at a time has open.
///
/// Each change is a line of JSON that is on the disk before the method returns. A line that a crash has cut off is
/// removed when the file is opened; a damaged one is an error. Orders that were settled stay, each as a line of some
/// 60 bytes, so that none is shipped again; the rest of their lines is removed when the file is opened. Open orders have
/// names and addresses in it, so on Unix only the owner can read it.
///
/// A file `PATH.lock` beside it is locked as long as a clone exists.
///
/// ```
#[doc = include_str!("../example.txt")]
/// # let folder = tempfile::tempdir()?;
/// use parcelo::journal::JournalFile;
///
/// let journal = JournalFile::open(folder.path().join("orders.journal"))?;
/// for (id, shipped) in client.orders().resume(&journal).await? {
///     println!("{id}, left by a crash: {:?}", shipped.map(|shipped| shipped.tracking_number));
/// }
/// let shipped = client.orders().ship(&order.with_external_order_id("1001"), &journal).await?;
/// println!("{}", shipped.tracking_number);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct JournalFile(Arc<Mutex<Contents>>);

#[derive(Debug)]
struct Contents {
    entries: BTreeMap<String, Entry>,
    file: File,
    /// Set after a failed write: it is unknown how much of the line is on the disk, and no line may follow it.
    is_broken: bool,
    _lock: File,
}

/// Minimum number of lines for the file to be written again without those that no longer count.
const MIN_COMPACTED_LINES: usize = 64;

impl JournalFile {
    /// Opens the journal, and creates the file if it does not exist. It reads and writes the disk without awaiting.
    ///
    /// Errors: `ResourceBusy` if it is open, here or in another process, `InvalidData` if a line is damaged, and those
    /// of the file system.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let lock = lock(&with_suffix(path, ".lock"))?;
        let mut file = private().read(true).append(true).create(true).open(path)?;
        let Lines { entries, count, length } = Lines::read(&mut file)?;
        if file.metadata()?.len() > length {
            file.set_len(length)?;
            file.sync_all()?;
        }
        if length == 0 {
            sync_folder(path)?;
        }
        if count >= MIN_COMPACTED_LINES && count >= 2 * entries.len() {
            file = write_again(path, entries.values())?;
        }
        Ok(Self(Arc::new(Mutex::new(Contents { entries, file, is_broken: false, _lock: lock }))))
    }

    /// Runs work that waits for the disk on a thread for that.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Contents) -> io::Result<T> + Send + 'static,
    ) -> Result<T, JournalError> {
        let contents = Arc::clone(&self.0);
        // After a panic in between, the entries are still those on the disk.
        let work = move || work(&mut contents.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(spawn_blocking(work).await??)
    }
}

impl Journal for JournalFile {
    async fn insert(&self, entry: &Entry) -> Result<Option<Entry>, JournalError> {
        let entry = entry.clone();
        let insert = |contents: &mut Contents| match contents.entries.get(entry.order_id()) {
            Some(known) => Ok(Some(known.clone())),
            None => contents.append(entry).map(|()| None),
        };
        self.blocking(insert).await
    }

    async fn update(&self, entry: &Entry) -> Result<(), JournalError> {
        let entry = entry.clone();
        self.blocking(|contents| contents.append(entry)).await
    }

    async fn open(&self) -> Result<Vec<Entry>, JournalError> {
        let open = |contents: &mut Contents| {
            Ok(contents.entries.values().filter(|entry| entry.is_open()).cloned().collect())
        };
        self.blocking(open).await
    }
}

impl Contents {
    fn append(&mut self, entry: Entry) -> io::Result<()> {
        if self.is_broken {
            return Err(io::Error::other("an earlier write failed: open the journal again"));
        }
        let line = line(&entry)?;
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        self.is_broken = written.is_err();
        written?;
        self.entries.insert(entry.order_id().to_owned(), entry);
        Ok(())
    }
}

fn line(entry: &Entry) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(entry)?;
    line.push(b'\n');
    Ok(line)
}

/// The lines of a file.
#[derive(Default)]
struct Lines {
    /// The last entry of each order.
    entries: BTreeMap<String, Entry>,
    count: usize,
    /// The length of the file without a last line that was cut off.
    length: u64,
}

impl Lines {
    fn read(file: &mut File) -> io::Result<Self> {
        let (mut text, mut lines) = (Vec::new(), Self::default());
        file.read_to_end(&mut text)?;
        let mut rest = text.split_inclusive(|byte| *byte == b'\n').peekable();
        while let Some(line) = rest.next() {
            // The parts of a line that was being written may reach the disk in any order; zeros stand for the others.
            // An acknowledged line is whole.
            let is_torn = rest.peek().is_none() && (!line.ends_with(b"\n") || line.contains(&0));
            if is_torn {
                break;
            }
            let entry: Entry = serde_json::from_slice(line).map_err(|_| lines.damaged())?;
            lines.entries.insert(entry.order_id().to_owned(), entry);
            lines.count += 1;
            lines.length += line.len() as u64;
        }
        Ok(lines)
    }

    /// Returns the error for the next line. It does not quote the line, which may have names and addresses.
    fn damaged(&self) -> io::Error {
        let text = format!("line {} of the journal is damaged", self.count + 1);
        io::Error::new(io::ErrorKind::InvalidData, text)
    }
}

/// Writes the entries to a new file, which replaces the old one as a whole.
fn write_again<'a>(path: &Path, entries: impl Iterator<Item = &'a Entry>) -> io::Result<File> {
    let new_path = with_suffix(path, ".new");
    // Left by a crash, if it exists: the lock keeps other processes out.
    let mut file = private().write(true).create(true).truncate(true).open(&new_path)?;
    let lines = entries.map(line).collect::<io::Result<Vec<_>>>()?;
    file.write_all(&lines.concat())?;
    file.sync_all()?;
    fs::rename(&new_path, path)?;
    sync_folder(path)?;
    private().append(true).open(path)
}

fn lock(path: &Path) -> io::Result<File> {
    let file = private().write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(io::Error::new(io::ErrorKind::ResourceBusy, "the journal is open already"))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Returns options for a file that only its owner can read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Syncs the folder, since the name of a new file must be on the disk too. Other systems than Unix do it by themselves.
fn sync_folder(path: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
