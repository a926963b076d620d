//! Maximum length of files, so that each can be read in one go. The length of functions is checked by clippy.

use super::{assert_none, sources::all_files};

/// Maximum number of lines of a file without its tests. The first prefix that matches counts.
const LIMITS: &[(&str, usize)] = &[
    // Tables of data: rows, not logic.
    ("sdk/types/src/model/countries.rs", 1_000),
    ("sdk/types/src/rules/texts/faults.rs", 1_000),
    // An example fits on one screen.
    ("examples/", 60),
    ("", 400),
];

#[test]
fn no_file_is_too_long_to_read_in_one_go() {
    let mut violations = Vec::new();
    for source in all_files().into_iter().filter(|source| source.has_extension("rs")) {
        let limit = LIMITS.iter().find(|(folder, _)| source.path.starts_with(folder)).unwrap().1;
        let lines = source.without_tests().lines().count();
        if lines > limit && !source.is_test() {
            violations.push(format!("{}: {lines} lines, at most {limit}", source.path));
        }
        if !source.text.starts_with("//! ") {
            violations.push(format!("{}: its first line is not //!", source.path));
        }
    }
    assert_none("a file is short, and starts with a //! summary", &violations);
}
