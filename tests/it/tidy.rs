//! The rules of this repository, as tests: who may know whom, how long a file may be, what the
//! documents must say. Each reads the files as they lie on disk, so a rule is broken where it
//! is broken and the message names file, line and rule.
//!
//! Want a new rule? Write the check here; a rule that is only written down is forgotten.

mod dependencies;
mod documents;
mod imports;
mod public_api;
mod rings;
mod sizes;
mod sources;
mod walls;
mod words;

/// Fails with one line for each offence.
fn assert_none(rule: &str, offences: &[String]) {
    assert!(offences.is_empty(), "{rule}\n  {}\n", offences.join("\n  "));
}
