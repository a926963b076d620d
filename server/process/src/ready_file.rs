//! The ready file, by which other programs learn that a server listens, and its addresses.

use std::{
    io::{self, Write},
    path::Path,
};

use super::Failure;

/// Writes a ready file atomically, so that no reader sees half of it.
pub(super) fn write_atomically(path: &Path, content: &str) -> Result<(), Failure> {
    let failed = |source| Failure::ReadyFile { path: path.to_owned(), source };
    // A pipe or a device is written to directly: a rename would replace it with a file.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return std::fs::write(path, content).map_err(failed);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let written =
        write_temporary(&temporary, content).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // The file may hold a key. If it cannot be deleted, the first error is reported anyway.
        let _ = std::fs::remove_file(&temporary);
    }
    written.map_err(failed)
}

/// Writes a file that only its owner can read.
fn write_temporary(path: &Path, content: &str) -> io::Result<()> {
    let mut options = std::fs::File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(content.as_bytes())
}
