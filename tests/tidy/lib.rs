//! The rules of this repository as tests: allowed imports, lengths of files, contents of documents. Each test reads the
//! files of the working tree. A failure names the rule and the files, usually with the line.
//!
//! To add a rule, write a test for it in this crate.
#![cfg(test)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::too_many_lines,
    reason = "a test fails by panicking, and a table of cases may be long"
)]

mod cycles;
mod dependencies;
mod doc_comments;
mod documents;
mod imports;
mod layering;
mod public_api;
mod server_code;
mod sizes;
mod sources;
mod words;

use std::collections::BTreeMap;

use self::sources::{Source, all_files};

/// The root file of each crate that is installed or imported.
const CRATES: [&str; 11] = [
    "sdk/src/lib.rs",
    "sdk/types/src/lib.rs",
    "cli/main.rs",
    "server/domain/src/lib.rs",
    "server/label/src/lib.rs",
    "server/process/src/lib.rs",
    "server/service/src/lib.rs",
    "server/store/src/lib.rs",
    "server/system/src/lib.rs",
    "server/wire/src/lib.rs",
    "server/src/lib.rs",
];

/// Fails if there are violations, and lists them, one per line.
fn assert_none(rule: &str, violations: &[String]) {
    assert!(violations.is_empty(), "{rule}\n  {}\n", violations.join("\n  "));
}

/// Fails if a folder has more violations than `remaining` allows. The first prefix that matches counts; all other
/// folders may have none. When violations have been removed, lower the number.
fn assert_at_most(rule: &str, remaining: &[(&str, usize)], find: impl Fn(&Source) -> Vec<String>) {
    let mut found = BTreeMap::<_, Vec<_>>::new();
    for source in all_files() {
        let known = remaining.iter().find(|(folder, _)| source.path.starts_with(folder));
        found.entry(known.unwrap_or(&("", 0))).or_default().extend(find(&source));
    }
    let mut violations = Vec::new();
    for ((folder, known), places) in found {
        if places.len() > *known {
            violations.push(format!("{folder:?} has {} and may have {known}:", places.len()));
            violations.extend(places);
        }
    }
    assert_none(rule, &violations);
}
