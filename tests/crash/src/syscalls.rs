//! Replacements for the libc functions that change files. They log the changes to the files of one folder, and can make
//! any such call fail.
//!
//! `SQLite` has a hook for its system calls (`xSetSystemCall`), but the hook does not cover `fsync`, and the store
//! creates and syncs the database file through its own descriptor. Because this program defines `open64`, `fsync` and
//! the others itself, the linker uses these definitions for `SQLite` and Rust's standard library too. Each recording
//! without failing calls ends with a check that no change bypassed the log: replaying it must reproduce the files.

use std::{
    collections::HashMap,
    ffi::{CStr, c_char, c_int, c_void},
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::disk::{Event, FOLDER, FileId, Image};

/// `true` while a folder is being recorded. Every replaced function reads this first.
static RECORDING: AtomicBool = AtomicBool::new(false);
static RECORDER: Mutex<Option<Recorder>> = Mutex::new(None);
/// Delay before each call on a descriptor, to simulate a disk.
const CALL_DELAY_MICROS: u32 = 100;

/// Device and inode.
type Inode = (u64, u64);

struct Recorder {
    folder: PathBuf,
    files: HashMap<Inode, FileId>,
    events: Vec<Event>,
    /// Number of calls that could have failed.
    calls: usize,
    fault: Option<Fault>,
}

/// An error with which a system call fails.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// The value of `errno`.
    pub error: c_int,
    /// Index of the call that fails.
    pub call_index: usize,
    /// `true` if all later calls fail too.
    pub is_persistent: bool,
}

fn recorder() -> MutexGuard<'static, Option<Recorder>> {
    RECORDER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts recording the files in a folder, and returns them. Their current content counts as durable.
pub fn start(folder: &Path, fault: Option<Fault>) -> Image {
    let base = read_folder(folder);
    let paths = base.iter().map(|(name, _)| inode(folder.join(name)).unwrap());
    let mut files: HashMap<_, _> = paths.zip(0..).collect();
    files.insert(inode(folder).unwrap(), FOLDER);
    let folder = folder.to_owned();
    *recorder() = Some(Recorder { folder, files, events: Vec::new(), calls: 0, fault });
    RECORDING.store(true, Ordering::SeqCst);
    base
}

/// Ends the recording. Returns its events and the number of calls that could have failed.
pub fn stop() -> (Vec<Event>, usize) {
    RECORDING.store(false, Ordering::SeqCst);
    let recorded = recorder().take().unwrap();
    (recorded.events, recorded.calls)
}

/// Adds an event to the log.
pub fn log(event: Event) {
    recorder().as_mut().unwrap().events.push(event);
}

/// Returns the files of a folder that survive a crash, sorted by name.
pub fn read_folder(folder: &Path) -> Image {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap()).filter(|name| is_in_image(name));
    let mut image: Image =
        names.map(|name| (name.clone(), fs::read(folder.join(name)).unwrap())).collect();
    image.sort();
    image
}

/// Returns `true` if a file is part of an image. `SQLite` rebuilds the shared memory after a crash, and the lock file
/// may be lost.
fn is_in_image(name: &str) -> bool {
    !name.ends_with("-shm") && !name.ends_with(".lock")
}

fn inode(path: impl AsRef<Path>) -> Option<Inode> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

fn descriptor_inode(descriptor: c_int) -> Option<Inode> {
    inode(format!("/proc/self/fd/{descriptor}"))
}

impl Recorder {
    /// Executes a call, or fails with the error of the fault if the fault applies to this call.
    fn execute(&mut self, call: impl FnOnce() -> isize) -> isize {
        let call_index = self.calls;
        self.calls += 1;
        let fault = self.fault.filter(|fault| {
            call_index == fault.call_index || fault.is_persistent && call_index > fault.call_index
        });
        let Some(Fault { error, .. }) = fault else { return call() };
        // SAFETY: the pointer to this thread's `errno` is valid.
        unsafe { *libc::__errno_location() = error };
        -1
    }
}

/// Executes a call on a descriptor, and logs it if the file is recorded.
fn call_on_descriptor(
    descriptor: c_int,
    call: impl FnOnce() -> isize,
    event: impl FnOnce(FileId, isize) -> Option<Event>,
) -> isize {
    if !RECORDING.load(Ordering::Acquire) {
        return call();
    }
    // Without this delay, a write would always finish before a premature response could be observed.
    // SAFETY: `usleep` only sleeps.
    unsafe { libc::usleep(CALL_DELAY_MICROS) };
    let found = descriptor_inode(descriptor);
    let mut recorder = recorder();
    let Some(recorder) = &mut *recorder else { return call() };
    let Some(file) = found.and_then(|inode| recorder.files.get(&inode).copied()) else {
        return call();
    };
    let returned = recorder.execute(call);
    recorder.events.extend(event(file, returned));
    returned
}

/// Executes a call on a path, and logs it if the file is recorded.
fn call_on_path(
    path: *const c_char,
    call: impl FnOnce() -> c_int,
    log: impl FnOnce(&mut Recorder, String, c_int),
) -> c_int {
    if !RECORDING.load(Ordering::Acquire) {
        return call();
    }
    // SAFETY: the caller passes a null-terminated path.
    let path = Path::new(unsafe { CStr::from_ptr(path) }.to_str().unwrap_or_default());
    let mut recorder = recorder();
    let Some(recorder) = &mut *recorder else { return call() };
    let name = path.strip_prefix(&recorder.folder).ok().and_then(Path::to_str);
    let Some(name) = name.filter(|name| !name.is_empty() && is_in_image(name)) else {
        return call();
    };
    let returned = recorder.execute(|| call() as isize) as c_int;
    if returned >= 0 {
        log(recorder, name.to_owned(), returned);
    }
    returned
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    // SAFETY: the caller's own arguments.
    let open =
        || unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, mode) as c_int };
    call_on_path(path, open, |recorder, name, descriptor| {
        // No file id is used twice, because no inode is removed from the map and a tmpfs does not reuse inode numbers.
        let (inode, next_id) =
            (descriptor_inode(descriptor).unwrap(), recorder.files.len() as FileId - 1);
        let file = *recorder.files.entry(inode).or_insert(next_id);
        if file == next_id {
            recorder.events.push(Event::Create { name, file });
        }
        if flags & libc::O_TRUNC != 0 {
            recorder.events.push(Event::Truncate { file, to: 0 });
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    // SAFETY: the same arguments.
    unsafe { open64(path, flags, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: the caller's own argument.
    let remove = || unsafe { libc::syscall(libc::SYS_unlink, path) as c_int };
    call_on_path(path, remove, |recorder, name, _| recorder.events.push(Event::Unlink { name }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(
    descriptor: c_int,
    bytes: *const c_void,
    length: usize,
    at: i64,
) -> isize {
    // SAFETY: the caller's own arguments.
    let write =
        || unsafe { libc::syscall(libc::SYS_pwrite64, descriptor, bytes, length, at) as isize };
    call_on_descriptor(descriptor, write, |file, written| {
        let (written, at) = (usize::try_from(written).ok()?, usize::try_from(at).ok()?);
        // SAFETY: the call has just written this many of the caller's bytes.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), written) };
        Some(Event::Write { file, at, bytes: bytes.into() })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ftruncate64(descriptor: c_int, to: i64) -> c_int {
    // SAFETY: the caller's own arguments.
    let truncate = || unsafe { libc::syscall(libc::SYS_ftruncate, descriptor, to) as isize };
    call_on_descriptor(descriptor, truncate, |file, returned| {
        (returned == 0).then_some(Event::Truncate { file, to: to as usize })
    }) as c_int
}

/// Syncs a file or the folder, and logs whether the sync succeeded. The recorded folder is in memory, so its syncs do
/// not wait for a disk.
fn sync(descriptor: c_int) -> c_int {
    // SAFETY: the caller's own argument.
    let sync = || unsafe { libc::syscall(libc::SYS_fsync, descriptor) as isize };
    call_on_descriptor(descriptor, sync, |file, returned| {
        Some(if returned == 0 { Event::Sync { file } } else { Event::FailedSync { file } })
    }) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fsync(descriptor: c_int) -> c_int {
    sync(descriptor)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fdatasync(descriptor: c_int) -> c_int {
    sync(descriptor)
}
