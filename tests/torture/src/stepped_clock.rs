//! A server's wall clock, which libfaketime steps forward and back by hours; monotonic time is not affected.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicI64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

/// The library's path in Debian's package `libfaketime`.
const FAKETIME_LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

/// The wall clock of the processes that are started with it.
pub(crate) struct SteppedClock {
    file: PathBuf,
    /// The seconds by which it is ahead of the machine's clock.
    seconds_ahead: AtomicI64,
}

impl SteppedClock {
    pub(crate) fn new(folder: &Path) -> Self {
        let is_there = Path::new(FAKETIME_LIBRARY).exists();
        assert!(
            is_there,
            "{FAKETIME_LIBRARY} is missing: install libfaketime, or run --without-clocks"
        );
        let clock = Self { file: folder.join("clock"), seconds_ahead: AtomicI64::new(0) };
        clock.set_ahead(0);
        clock
    }

    /// Makes a process use this clock.
    pub(crate) fn apply_to(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", FAKETIME_LIBRARY)
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            .env("FAKETIME_CACHE_DURATION", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("DONT_FAKE_MONOTONIC", "1");
    }

    /// Sets the clock this many seconds ahead of the machine's; processes see that within a second.
    pub(crate) fn set_ahead(&self, seconds: i64) {
        self.seconds_ahead.store(seconds, Ordering::SeqCst);
        // Renamed into place, so that no process reads a half-written file.
        let new = self.file.with_extension("new");
        std::fs::write(&new, format!("{seconds:+}\n")).expect("a file for the clock");
        std::fs::rename(new, &self.file).expect("a file for the clock");
    }

    pub(crate) fn now_millis(&self) -> u64 {
        now_millis().saturating_add_signed(self.seconds_ahead.load(Ordering::SeqCst) * 1_000)
    }
}

/// Removes libfaketime's shared memory of a killed process, which would make a later process with the same id fail.
pub(crate) fn remove_shared_memory(process: u32) {
    for name in [format!("faketime_shm_{process}"), format!("sem.faketime_sem_{process}")] {
        let _absent = std::fs::remove_file(Path::new("/dev/shm").join(name));
    }
}

/// Returns the machine's time, in milliseconds since 1970.
pub(crate) fn now_millis() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
