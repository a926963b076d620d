//! A file on disk that appears complete or not at all, and safe names for files.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

/// A file that is being written in the directory of its final path. Dropped before it is persisted, it is
/// deleted.
#[derive(Debug)]
pub(super) struct TempFile {
    file: fs::File,
    /// `None` once the file has its final name.
    path: Option<PathBuf>,
}

/// Maximum number of characters of the final name in the temporary one. The whole name, with the added parts, could
/// exceed the 255 bytes that file systems allow.
const MAX_PREFIX_CHARS: usize = 50;

impl TempFile {
    /// Returns an unused path in the same directory, since a rename across file systems would not be atomic.
    pub(super) fn path_beside(path: &Path, random: u64) -> Option<PathBuf> {
        let name = path.file_name()?.to_string_lossy();
        let prefix: String = name.chars().take(MAX_PREFIX_CHARS).collect();
        Some(path.with_file_name(format!(".{prefix}.{random:016x}.part")))
    }

    pub(super) fn create(path: PathBuf) -> io::Result<Self> {
        Ok(Self { file: fs::File::create_new(&path)?, path: Some(path) })
    }

    pub(super) fn append(mut self, chunk: &[u8]) -> io::Result<Self> {
        self.file.write_all(chunk)?;
        Ok(self)
    }

    /// Moves the finished file to its final path, replacing any existing file. It is synced first: after a
    /// power failure the new name must not belong to an empty file.
    pub(super) fn persist(mut self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        if let Some(temporary) = &self.path {
            fs::rename(temporary, path)?;
        }
        self.path = None;
        Ok(())
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // A leftover file does no harm, and the error that ended the download is the one to report.
            let _ = fs::remove_file(path);
        }
    }
}

/// Names that Windows reserves for devices, with any extension.
const DEVICE_NAMES: [&str; 4] = ["CON", "PRN", "AUX", "NUL"];
const NUMBERED_DEVICE_NAMES: [&str; 2] = ["COM", "LPT"];
const MAX_NAME_CHARS: usize = 100;

/// Returns a file name of ASCII letters, digits, dots, hyphens and underscores. The file is not hidden on any system,
/// stays in its directory, and its name does not look like a command-line option.
pub(super) fn safe_file_name(name: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let safe = name.chars().map(|c| if is_safe(c) { c } else { '_' });
    let name: String = safe.take(MAX_NAME_CHARS).collect();
    let name = name.trim_start_matches(['-', '.']).trim_end_matches('.');
    if name.is_empty() {
        "label".to_owned()
    } else if is_device_name(name) {
        format!("_{name}")
    } else {
        name.to_owned()
    }
}

fn is_device_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().to_ascii_uppercase();
    let is_numbered = |device: &str| {
        stem.strip_prefix(device)
            .is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|digit| digit.is_ascii_digit()))
    };
    DEVICE_NAMES.contains(&stem.as_str()) || NUMBERED_DEVICE_NAMES.into_iter().any(is_numbered)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_untrusted_file_name_becomes_safe() {
        let table = [
            ("SB-SUCCESS-0001.pdf", "SB-SUCCESS-0001.pdf"),
            ("", "label"),
            ("..", "label"),
            (".hidden", "hidden"),
            ("../../etc/passwd", "_.._etc_passwd"),
            ("-rf", "rf"),
            ("--output=x.pdf", "output_x.pdf"),
            (".-.-a.pdf", "a.pdf"),
            ("-", "label"),
            ("-.-", "label"),
            ("-con.pdf", "_con.pdf"),
            ("a-b.pdf-", "a-b.pdf-"),
            ("a\\b:c*d.pdf", "a_b_c_d.pdf"),
            ("a\u{202e}fdp.exe", "a_fdp.exe"),
            ("a%2Fb\n", "a_2Fb_"),
            ("con.pdf", "_con.pdf"),
            ("LPT1", "_LPT1"),
            ("COM12.pdf", "COM12.pdf"),
            ("CONTAINER.pdf", "CONTAINER.pdf"),
        ];
        for (name, expected) in table {
            assert_eq!(safe_file_name(name), expected, "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn no_name_leaves_its_directory(name in any::<String>()) {
            let path = Path::new("labels").join(safe_file_name(&name));
            prop_assert_eq!(path.parent(), Some(Path::new("labels")));
            prop_assert!(path.file_name().is_some_and(|name| name.len() <= MAX_NAME_CHARS + 1));
            prop_assert!(!safe_file_name(&name).starts_with(['-', '.']));
        }
    }
}
