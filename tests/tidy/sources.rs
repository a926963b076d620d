//! The repository's files, in the form that the rules read.

use std::{fs, path::Path};

/// Folders of generated or downloaded files.
const SKIPPED_FOLDERS: &[&str] =
    &["target", "quickstart-out", "node_modules", "vendor", "corpus", "artifacts"];

/// A text file of the repository.
pub(super) struct Source {
    /// The path from the repository's root, with `/`.
    pub(super) path: String,
    pub(super) text: String,
}

impl Source {
    pub(super) fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }

    /// Returns `true` for files that only tests use.
    pub(super) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "benches"))
    }

    /// Returns the text up to the test modules at the end of the file.
    pub(super) fn without_tests(&self) -> &str {
        let end = self.text.find("\n#[cfg(test)]\nmod ").map_or(self.text.len(), |at| at + 1);
        &self.text[..end]
    }

    /// Returns the location of a byte offset, as `path:line`.
    pub(super) fn location(&self, offset: usize) -> String {
        format!("{}:{}", self.path, self.text[..offset].matches('\n').count() + 1)
    }
}

/// Returns the repository's folder.
pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// Reads a text file of the repository.
pub(super) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns every text file, sorted by path.
pub(super) fn all_files() -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![root().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') && name != ".ci" || SKIPPED_FOLDERS.contains(&name.as_str()) {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else if let Ok(text) = fs::read_to_string(entry.path()) {
                let path =
                    entry.path().strip_prefix(root()).unwrap().to_string_lossy().into_owned();
                found.push(Source { path, text });
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// Returns every Rust file under one of the folders.
pub(super) fn rust_under(folders: &[&str]) -> Vec<Source> {
    let mut found = all_files();
    found.retain(|file| {
        file.has_extension("rs") && folders.iter().any(|folder| file.path.starts_with(folder))
    });
    found
}

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
