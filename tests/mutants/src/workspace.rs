//! The copy of the workspace into which the mutants are built: `target/mutants/workspace`. The sources themselves, and
//! so every release, have nothing of them.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    patch::{Stale, edits, patched},
    table::MUTANTS,
};

/// What the copy does without: what was built or fetched.
const NOT_COPIED: &[&str] = &["target", "node_modules", "quickstart-out", "vendor", "artifacts"];
/// The crates that mutants change, each with the module that says which one is chosen.
const CRATES: [(&str, &str); 2] = [("sdk/src", ANOTHER_KEY), ("server/src", "")];

/// Read once: a mutant is chosen for a process.
const MODULE: &str = r#"//! Which mutant is chosen.
#![allow(warnings, clippy::all, reason = "of the mutants' build only")]

pub(crate) fn is_chosen(name: &str) -> bool {
    static CHOSEN: std::sync::LazyLock<Option<String>> =
        std::sync::LazyLock::new(|| std::env::var("PARCELO_MUTANT").ok());
    CHOSEN.as_deref() == Some(name)
}
"#;

/// For the mutant whose key changes from attempt to attempt.
const ANOTHER_KEY: &str = r#"
/// The body with another idempotency key, a new one for each call.
pub(crate) fn with_another_key(body: &[u8]) -> bytes::Bytes {
    static MADE: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let sent = serde_json::from_slice::<serde_json::Value>(body);
    let Ok(mut other) = sent else { return bytes::Bytes::copy_from_slice(body) };
    if let Some(key) = other.get_mut("idempotencyKey") {
        let made = MADE.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        *key = format!("another-{made:08}").into();
    }
    other.to_string().into()
}
"#;

/// Why there is no copy.
#[derive(Debug)]
pub(crate) enum NotCopied {
    Stale(Vec<Stale>),
    Io(PathBuf, io::Error),
}

/// Brings the copy up to date with the sources. A file that has not changed is not written, so that it is not built
/// again.
pub(crate) fn copy(root: &Path, to: &Path) -> Result<(), NotCopied> {
    let mut files = files(root)?;
    let (mut texts, mut stale) = (Vec::new(), Vec::new());
    let missing = edits(MUTANTS).map(|(_, edit)| edit.file).filter(|file| !files.contains(*file));
    if let Some(file) = missing.collect::<BTreeSet<_>>().pop_first() {
        return Err(NotCopied::Io(root.join(file), io::ErrorKind::NotFound.into()));
    }
    for file in &files {
        let path = root.join(file);
        let bytes = fs::read(&path).map_err(|error| NotCopied::Io(path, error))?;
        match with_mutants(file, bytes) {
            Ok(bytes) => texts.push((file.clone(), bytes)),
            Err(faults) => stale.extend(faults),
        }
    }
    if !stale.is_empty() {
        return Err(NotCopied::Stale(stale));
    }
    for (folder, further) in CRATES {
        let file = format!("{folder}/mutant.rs");
        texts.push((file.clone(), [MODULE, further].concat().into_bytes()));
        files.insert(file);
    }
    for (file, bytes) in &texts {
        let path = to.join(file);
        write_if_changed(&path, bytes).map_err(|error| NotCopied::Io(path, error))?;
    }
    // What the sources no longer have must not be built.
    for gone in self::files(to)?.difference(&files) {
        let path = to.join(gone);
        fs::remove_file(&path).map_err(|error| NotCopied::Io(path, error))?;
    }
    Ok(())
}

/// A file as the copy has it.
pub(crate) fn with_mutants(file: &str, bytes: Vec<u8>) -> Result<Vec<u8>, Vec<Stale>> {
    let is_root = CRATES.iter().any(|(folder, _)| file.strip_prefix(folder) == Some("/lib.rs"));
    let is_changed = edits(MUTANTS).any(|(_, edit)| edit.file == file);
    match String::from_utf8(bytes) {
        Ok(text) if is_root => Ok([text.as_str(), "\nmod mutant;\n"].concat().into_bytes()),
        Ok(text) if is_changed => patched(file, &text, MUTANTS).map(String::into_bytes),
        Ok(text) => Ok(text.into_bytes()),
        Err(binary) => Ok(binary.into_bytes()),
    }
}

/// Every file of a folder, from there on; none when there is no such folder.
fn files(folder: &Path) -> Result<BTreeSet<String>, NotCopied> {
    let (mut found, mut folders) = (BTreeSet::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        let failed = |error| NotCopied::Io(next.clone(), error);
        let entries = match fs::read_dir(&next) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries.map_err(failed)?,
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_hidden = name.starts_with('.') && name != ".cargo";
            if is_hidden || NOT_COPIED.contains(&name.as_str()) {
                continue;
            }
            if entry.file_type().map_err(failed)?.is_dir() {
                folders.push(entry.path());
            } else if let Ok(file) = entry.path().strip_prefix(folder) {
                found.insert(file.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    Ok(found)
}

fn write_if_changed(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|before| before == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::MUTANTS;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// Each text of the table is in its file once, and what is built of it is Rust.
    #[test]
    fn every_mutant_fits_the_sources() {
        let changed: BTreeSet<_> = edits(MUTANTS).map(|(_, edit)| edit.file).collect();
        for file in changed {
            let bytes = fs::read(root().join(file)).unwrap();
            let stale = |stale: Vec<Stale>| {
                stale.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
            };
            let text =
                with_mutants(file, bytes).map_err(stale).unwrap_or_else(|all| panic!("{all}"));
            let text = String::from_utf8(text).unwrap();
            syn::parse_file(&text)
                .unwrap_or_else(|error| panic!("{file} with its mutants is not Rust: {error}"));
        }
    }

    #[test]
    fn there_are_at_least_32_mutants_with_names_of_their_own() {
        let names: BTreeSet<_> = MUTANTS.iter().map(|mutant| mutant.name).collect();
        assert!(names.len() >= 32 && names.len() == MUTANTS.len(), "{}", names.len());
    }

    #[test]
    fn the_sources_have_no_mutant() {
        for file in files(&root()).unwrap().iter().filter(|file| file.contains("/src/")) {
            let text = String::from_utf8_lossy(&fs::read(root().join(file)).unwrap()).into_owned();
            let is_ours = file.starts_with("tests/mutants/");
            assert!(is_ours || !text.contains("mutant::is_chosen"), "{file}");
        }
    }
}
