//! Opens a file with the program that the user has chosen for it.

use std::{
    fs, io,
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::{
    failure::{Exit, Failure},
    texts,
};

#[cfg(target_os = "macos")]
const OPENER: &str = "open";
#[cfg(windows)]
const OPENER: &str = "explorer";
#[cfg(not(any(target_os = "macos", windows)))]
const OPENER: &str = "xdg-open";

/// Writes the content to a new file and opens it. The file is kept, because the program may read it at any time.
pub(super) fn open(name: &str, content: &[u8]) -> Result<PathBuf, Failure> {
    let file = write_private(name, content).map_err(|err| {
        Failure::for_unwritable_file(&std::env::temp_dir().to_string_lossy(), &err)
    })?;
    let mut opener = Command::new(OPENER);
    let opener = opener.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match opener.status() {
        // The opener of Windows returns 1 even after success.
        Ok(status) if status.success() || cfg!(windows) => Ok(file),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Err(failure(texts::NO_OPENER)),
        Ok(_) | Err(_) => Err(failure(texts::NOT_OPENED)),
    }
}

/// Writes a file that only the user can read, since a label contains a name and an address.
fn write_private(name: &str, content: &[u8]) -> io::Result<PathBuf> {
    let directory = tempfile::Builder::new().prefix("parcelo-").tempdir()?;
    let file = directory.path().join(name);
    fs::write(&file, content)?;
    // From here on the directory is not deleted.
    let _ = directory.keep();
    Ok(file)
}

fn failure(text: texts::Text) -> Failure {
    let message = text.with(&[("opener", OPENER)]);
    Failure::new(Exit::Usage, "OPENER", message).hint(texts::SAVE_LABEL)
}
