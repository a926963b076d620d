//! Replacements of libc's calls that change files: changes to the files of one folder are logged, and any call can be
//! made to fail.
//!
//! `SQLite` lets a program replace its system calls (`xSetSystemCall`), but not `fsync`, and the store creates and
//! syncs the database file through its own descriptor. A program that defines `open64` or `fsync` itself is linked with
//! its definition, and so are `SQLite` and Rust's standard library in it. Each recording ends by proving that nothing
//! bypassed it: the log, replayed, gives the files as they are.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::{CStr, c_char, c_int, c_void},
    fs,
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use crate::disk::{Event, FileId, Image, Mark};

/// True while a folder is being recorded. Every call reads this first.
static RECORDING: AtomicBool = AtomicBool::new(false);
static RECORDER: Mutex<Option<Recorder>> = Mutex::new(None);
/// The file of each descriptor: 0 for one that is not recorded, 1 for the folder, from 2 on a file.
static DESCRIPTORS: [AtomicU32; 4_096] = [const { AtomicU32::new(0) }; 4_096];
/// Duration of a write or sync of a recorded file.
const SLOW_MICROS: u32 = 100;
const FOLDER: u32 = 1;
const FIRST_FILE: u32 = 2;

struct Recorder {
    folder: String,
    names: BTreeMap<String, FileId>,
    inodes: HashMap<u64, FileId>,
    files: FileId,
    events: Vec<Event>,
    calls: Calls,
    fault: Option<Fault>,
}

/// The number of calls of each class.
#[derive(Debug, Clone, Copy, Default)]
pub struct Calls {
    pub changes: usize,
    pub reads: usize,
}

/// An error that a call gets.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    pub kind: FaultKind,
    /// Index of the call within its class.
    pub nth: usize,
    /// Set if all later calls fail too.
    pub lasts: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// `EIO` from a call that changes a file.
    Eio,
    /// `ENOSPC` from such a call.
    Enospc,
    /// Half of a write is written.
    Short,
    /// `EIO` from a read.
    ReadEio,
}

fn recorder() -> MutexGuard<'static, Option<Recorder>> {
    RECORDER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts recording the files in a folder. Their present content counts as durable.
pub fn start(folder: &Path, fault: Option<Fault>) {
    let mut made = Recorder {
        folder: folder.to_str().unwrap().to_owned(),
        names: BTreeMap::new(),
        inodes: HashMap::new(),
        files: 0,
        events: Vec::new(),
        calls: Calls::default(),
        fault,
    };
    for (name, _) in read_folder(folder) {
        let inode = fs::metadata(folder.join(&name)).unwrap().ino();
        made.inodes.insert(inode, made.files);
        made.names.insert(name, made.files);
        made.files += 1;
    }
    *recorder() = Some(made);
    RECORDING.store(true, Ordering::SeqCst);
}

/// Ends the recording.
pub fn stop() -> (Vec<Event>, Calls) {
    RECORDING.store(false, Ordering::SeqCst);
    let recorded = recorder().take().unwrap();
    (recorded.events, recorded.calls)
}

/// Writes a mark into the log.
pub fn mark(mark: Mark) {
    if let Some(recorder) = &mut *recorder() {
        recorder.events.push(Event::Mark(mark));
    }
}

/// Returns the files of a folder that survive a crash, sorted by name.
pub fn read_folder(folder: &Path) -> Image {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap()).filter(|name| counts(name));
    let mut image: Image =
        names.map(|name| (name.clone(), fs::read(folder.join(name)).unwrap())).collect();
    image.sort();
    image
}

/// Returns whether a file is part of an image. `SQLite` rebuilds the shared memory after a crash, and the lock file is
/// empty.
fn counts(name: &str) -> bool {
    !name.ends_with("-shm") && !name.ends_with(".lock")
}

impl Recorder {
    fn name_of<'p>(&self, path: &'p str) -> Option<&'p str> {
        let name = path.strip_prefix(&self.folder)?.strip_prefix('/')?;
        counts(name).then_some(name)
    }

    /// Returns the error of this call, if it is its turn.
    fn fault(&mut self, of: impl Fn(FaultKind) -> bool, is_read: bool) -> Option<FaultKind> {
        let count = if is_read { &mut self.calls.reads } else { &mut self.calls.changes };
        let now = *count;
        *count += 1;
        let fault = self.fault.filter(|fault| of(fault.kind))?;
        (now == fault.nth || fault.lasts && now > fault.nth).then_some(fault.kind)
    }
}

/// Returns whether every call that changes a file can fail in this way.
fn from_every_change(kind: FaultKind) -> bool {
    matches!(kind, FaultKind::Eio | FaultKind::Enospc)
}

fn from_every_write(kind: FaultKind) -> bool {
    kind != FaultKind::ReadEio
}

/// Returns whether a call that needs no disk space can fail in this way.
fn from_no_room_needed(kind: FaultKind) -> bool {
    kind == FaultKind::Eio
}

fn fail(kind: FaultKind) -> c_int {
    let number = if kind == FaultKind::Enospc { libc::ENOSPC } else { libc::EIO };
    // SAFETY: the location is this thread's.
    unsafe { *libc::__errno_location() = number };
    -1
}

fn slot(descriptor: c_int) -> Option<&'static AtomicU32> {
    DESCRIPTORS.get(usize::try_from(descriptor).ok()?)
}

/// Returns the file of a descriptor, if it is recorded.
fn recorded(descriptor: c_int) -> Option<u32> {
    if !RECORDING.load(Ordering::Acquire) {
        return None;
    }
    slot(descriptor).map(|slot| slot.load(Ordering::Acquire)).filter(|found| *found > 0)
}

fn file_of(descriptor: c_int) -> Option<FileId> {
    recorded(descriptor)?.checked_sub(FIRST_FILE)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    let open = || {
        // SAFETY: the caller's own arguments.
        unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, mode) as c_int }
    };
    let track = |descriptor, what| {
        if let Some(slot) = slot(descriptor) {
            slot.store(what, Ordering::Release);
        }
        descriptor
    };
    if !RECORDING.load(Ordering::Acquire) {
        return track(open(), 0);
    }
    // SAFETY: the caller passes a path that ends with a zero.
    let text = unsafe { CStr::from_ptr(path) }.to_str().unwrap_or_default();
    let mut recorder = recorder();
    let Some(recorder) = &mut *recorder else { return track(open(), 0) };
    if text == recorder.folder {
        return track(open(), FOLDER);
    }
    let Some(name) = recorder.name_of(text) else { return track(open(), 0) };
    if let Some(kind) = recorder.fault(from_every_change, false) {
        return fail(kind);
    }
    let descriptor = open();
    if descriptor < 0 {
        return descriptor;
    }
    let inode = inode_of(descriptor);
    let file = *recorder.inodes.entry(inode).or_insert(recorder.files);
    recorder.files = recorder.files.max(file + 1);
    if recorder.names.get(name) != Some(&file) {
        recorder.names.insert(name.to_owned(), file);
        recorder.events.push(Event::Create { name: name.to_owned(), file });
    }
    if flags & libc::O_TRUNC != 0 {
        recorder.events.push(Event::Truncate { file, to: 0 });
    }
    track(descriptor, FIRST_FILE + file)
}

fn inode_of(descriptor: c_int) -> u64 {
    // SAFETY: a `stat` may be all zeros, and the call fills it.
    let mut found: libc::stat64 = unsafe { std::mem::zeroed() };
    // SAFETY: both outlive the call.
    unsafe { libc::fstat64(descriptor, &raw mut found) };
    found.st_ino
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    // SAFETY: the same arguments.
    unsafe { open64(path, flags, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn close(descriptor: c_int) -> c_int {
    if let Some(slot) = slot(descriptor) {
        slot.store(0, Ordering::Release);
    }
    // SAFETY: the caller's own argument.
    unsafe { libc::syscall(libc::SYS_close, descriptor) as c_int }
}

/// Sleeps as long as a disk would take. Otherwise an answer that is given too early would never be seen before the
/// write that it should have waited for.
fn be_slow() {
    // SAFETY: it only sleeps.
    unsafe { libc::usleep(SLOW_MICROS) };
}

/// Logs a write at an offset of a file. `call` writes at most the given number of bytes.
fn write_at(
    (descriptor, at): (c_int, i64),
    (bytes, length): (*const c_void, usize),
    call: impl Fn(usize) -> isize,
) -> isize {
    let Some(file) = file_of(descriptor) else { return call(length) };
    be_slow();
    let mut recorder = recorder();
    let Some(recorder) = &mut *recorder else { return call(length) };
    let length = match recorder.fault(from_every_write, false) {
        Some(FaultKind::Short) if length > 1 => length / 2,
        Some(FaultKind::Short) | None => length,
        Some(kind) => return fail(kind) as isize,
    };
    let written = call(length);
    if let (Ok(written @ 1..), Ok(at)) = (usize::try_from(written), u64::try_from(at)) {
        // SAFETY: the call has just written this many of the caller's bytes.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), written) };
        recorder.events.push(Event::Write { file, at, bytes: bytes.into() });
    }
    written
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(
    descriptor: c_int,
    bytes: *const c_void,
    length: usize,
    at: i64,
) -> isize {
    // SAFETY: the caller's own arguments, or fewer of the bytes.
    write_at((descriptor, at), (bytes, length), |length| unsafe {
        libc::syscall(libc::SYS_pwrite64, descriptor, bytes, length, at) as isize
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn write(descriptor: c_int, bytes: *const c_void, length: usize) -> isize {
    // SAFETY: it only reads the descriptor's offset.
    let at = match file_of(descriptor) {
        Some(_) => unsafe { libc::lseek64(descriptor, 0, libc::SEEK_CUR) },
        None => 0,
    };
    // SAFETY: the caller's own arguments, or fewer of the bytes.
    write_at((descriptor, at), (bytes, length), |length| unsafe {
        libc::syscall(libc::SYS_write, descriptor, bytes, length) as isize
    })
}

/// Executes a read, which may be made to fail.
fn read_with(descriptor: c_int, call: impl Fn() -> isize) -> isize {
    if file_of(descriptor).is_none() {
        return call();
    }
    let fault = recorder()
        .as_mut()
        .and_then(|recorder| recorder.fault(|kind| kind == FaultKind::ReadEio, true));
    fault.map_or_else(call, |kind| fail(kind) as isize)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pread64(
    descriptor: c_int,
    bytes: *mut c_void,
    length: usize,
    at: i64,
) -> isize {
    // SAFETY: the caller's own arguments.
    read_with(descriptor, || unsafe {
        libc::syscall(libc::SYS_pread64, descriptor, bytes, length, at) as isize
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ftruncate64(descriptor: c_int, to: i64) -> c_int {
    // SAFETY: the caller's own arguments.
    let cut = || unsafe { libc::syscall(libc::SYS_ftruncate, descriptor, to) as c_int };
    let Some(file) = file_of(descriptor) else { return cut() };
    let mut recorder = recorder();
    let Some(recorder) = &mut *recorder else { return cut() };
    if let Some(kind) = recorder.fault(from_no_room_needed, false) {
        return fail(kind);
    }
    let done = cut();
    if let (0, Ok(to)) = (done, u64::try_from(to)) {
        recorder.events.push(Event::Truncate { file, to });
    }
    done
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: the caller's own argument.
    let remove = || unsafe { libc::syscall(libc::SYS_unlink, path) as c_int };
    if !RECORDING.load(Ordering::Acquire) {
        return remove();
    }
    // SAFETY: the caller passes a path that ends with a zero.
    let text = unsafe { CStr::from_ptr(path) }.to_str().unwrap_or_default();
    let mut recorder = recorder();
    let Some(recorder) = &mut *recorder else { return remove() };
    let Some(name) = recorder.name_of(text) else { return remove() };
    if let Some(kind) = recorder.fault(from_no_room_needed, false) {
        return fail(kind);
    }
    let done = remove();
    if let (0, Some(file)) = (done, recorder.names.remove(name)) {
        recorder.events.push(Event::Unlink { name: name.to_owned() });
        // The inode's number may be given to another file.
        recorder.inodes.retain(|_, other| *other != file);
    }
    done
}

/// Executes a sync of a file or of the folder. A failed one says nothing about the bytes that reach the disk.
fn sync_with(descriptor: c_int, call: impl Fn() -> c_int) -> c_int {
    let Some(what) = recorded(descriptor) else { return call() };
    be_slow();
    let mut recorder = recorder();
    let Some(recorder) = &mut *recorder else { return call() };
    let fault = recorder.fault(from_every_change, false);
    let is_done = fault.is_none();
    recorder.events.push(match what.checked_sub(FIRST_FILE) {
        Some(file) if is_done => Event::Sync { file },
        Some(file) => Event::FailedSync { file },
        None if is_done => Event::SyncFolder,
        None => return fault.map_or(0, fail),
    });
    // The folder is in memory, so no disk needs to be waited for.
    fault.map_or(0, fail)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fsync(descriptor: c_int) -> c_int {
    // SAFETY: the caller's own argument.
    sync_with(descriptor, || unsafe { libc::syscall(libc::SYS_fsync, descriptor) as c_int })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fdatasync(descriptor: c_int) -> c_int {
    // SAFETY: the caller's own argument.
    sync_with(descriptor, || unsafe { libc::syscall(libc::SYS_fdatasync, descriptor) as c_int })
}
