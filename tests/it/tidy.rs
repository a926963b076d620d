//! The rules of this repository, as tests: who may know whom, how long a file may be, what the
//! documents must say. Each reads the files of the working tree, and a failure names the rule and the
//! files, most with the line.
//!
//! Want a new rule? Write the check here; a rule that is only written down is forgotten.

mod cycles;
mod dependencies;
mod documents;
mod imports;
mod public_api;
mod server_code;
mod sizes;
mod sources;
mod walls;
mod words;

/// Fails with one line for each offence.
fn assert_none(rule: &str, offences: &[String]) {
    assert!(offences.is_empty(), "{rule}\n  {}\n", offences.join("\n  "));
}
