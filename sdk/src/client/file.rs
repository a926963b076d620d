//! A file on disk: whole or not there, and under a harmless name.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

/// A file that is being written beside its place; dropped unfinished, it is gone.
#[derive(Debug)]
pub(super) struct Draft {
    file: fs::File,
    /// None once it has its final name.
    name: Option<PathBuf>,
}

/// How many characters of a file's name its draft has.
const BEGINNING: usize = 50;

impl Draft {
    /// A name beside `path` that nobody else uses.
    pub(super) fn name(path: &Path, random: u64) -> Option<PathBuf> {
        // The beginning alone: what is put behind it must not make the name too long for the disk.
        let begins: String = path.file_name()?.to_string_lossy().chars().take(BEGINNING).collect();
        Some(path.with_file_name(format!(".{begins}.{random:016x}.part")))
    }

    pub(super) fn create(name: PathBuf) -> io::Result<Self> {
        Ok(Self { file: fs::File::create_new(&name)?, name: Some(name) })
    }

    pub(super) fn with(mut self, piece: &[u8]) -> io::Result<Self> {
        self.file.write_all(piece)?;
        Ok(self)
    }

    /// Gives the finished file its place, in place of one that was there.
    pub(super) fn move_to(mut self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        if let Some(name) = &self.name {
            fs::rename(name, path)?;
        }
        self.name = None;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // The fault that ended it is the one to tell; a draft that stays behind does no harm.
            let _ = fs::remove_file(name);
        }
    }
}

/// Names that Windows gives to devices, whatever follows their dot.
const DEVICES: [&str; 4] = ["CON", "PRN", "AUX", "NUL"];
const NUMBERED_DEVICES: [&str; 2] = ["COM", "LPT"];
const LONGEST: usize = 100;

/// A file name of letters, digits, dots, hyphens and underscores, that no system takes for
/// something else, and no command for an option.
pub(super) fn harmless(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = name.chars().map(|c| if plain(c) { c } else { '_' }).take(LONGEST).collect();
    let name = name.trim_start_matches(['-', '.']).trim_end_matches('.');
    if name.is_empty() {
        "label".to_owned()
    } else if is_device(name) {
        format!("_{name}")
    } else {
        name.to_owned()
    }
}

fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().to_ascii_uppercase();
    let numbered = |device: &str| {
        stem.strip_prefix(device)
            .is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|digit| digit.is_ascii_digit()))
    };
    DEVICES.contains(&stem.as_str()) || NUMBERED_DEVICES.into_iter().any(numbered)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_from_outside_becomes_harmless() {
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
            assert_eq!(harmless(name), expected, "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn no_name_leaves_its_directory(name in any::<String>()) {
            let path = Path::new("labels").join(harmless(&name));
            prop_assert_eq!(path.parent(), Some(Path::new("labels")));
            prop_assert!(path.file_name().is_some_and(|name| name.len() <= LONGEST + 1));
            prop_assert!(!harmless(&name).starts_with(['-', '.']));
        }
    }
}
