//! A doc comment begins as native ones do: a function's with a verb ("Returns …"), a type's with a noun, a constant's with
//! "Maximum …", and seldom with a question word or a preposition.

use std::collections::BTreeMap;

use super::{
    assert_none,
    sources::{Source, rust_under},
};

const OPENINGS: &[&str] = &[
    "As", "At", "By", "For", "From", "How", "In", "Of", "On", "To", "Up", "What", "When", "Where",
    "Whether", "Which", "Who", "Whose", "Why", "With",
];

/// Maximum percentage of a folder's doc comments that may open so. Well-kept projects have 2-5 %.
const LIMIT: usize = 6;

/// Folders above the limit, with the percentage they may have for now. Lower it whenever it has fallen.
const REMAINING: &[(&str, usize)] = &[
    ("cli", 10),
    ("cli/args", 15),
    ("cli/commands", 16),
    ("cli/import", 20),
    ("cli/output", 19),
    ("cli/resolve", 8),
    ("cli/results", 20),
    ("cli/texts", 100),
    ("examples/tests/it", 24),
    ("sdk/src", 25),
    ("sdk/src/blocking", 7),
    ("sdk/src/client", 15),
    ("sdk/src/model", 11),
    ("sdk/src/rules", 7),
    ("sdk/src/webhook", 15),
    ("sdk/tests/client", 13),
    ("sdk/tests/service", 17),
    ("server/benches", 20),
    ("server/benches/costs", 25),
    ("server/benches/load", 27),
    ("server/src/http", 28),
    ("server/tests/cluster", 16),
    ("server/tests/it", 20),
    ("tests/crash/src", 20),
    ("tests/fuzz/src", 19),
    ("tests/it", 7),
    ("tests/it/day", 30),
    ("tests/it/imports", 19),
    ("tests/tidy", 17),
    ("tests/torture/src", 35),
];

#[test]
fn few_doc_comments_open_with_a_question_or_a_preposition() {
    let mut folders = BTreeMap::<String, (usize, Vec<String>)>::new();
    for source in rust_under(&[""]) {
        let folders_above = source.path.rsplit_once('/').unwrap_or_default().0.split('/');
        let folder = folders_above.take(3).collect::<Vec<_>>().join("/");
        let (docs, found) = folders.entry(folder).or_default();
        let (all, openings) = openings(&source);
        *docs += all;
        found.extend(openings);
    }
    let mut faults = Vec::new();
    for (folder, (docs, found)) in folders {
        let limit = REMAINING.iter().find(|(known, _)| *known == folder).map_or(LIMIT, |it| it.1);
        if found.len() * 100 > limit * docs {
            let count = found.len();
            faults.push(format!("{folder}: {count} of {docs}, may have {limit} %:"));
            faults.extend(found);
        }
    }
    assert_none("a function's doc begins with a verb, a type's with a noun", &faults);
}

/// Returns the number of a file's doc comments, and place and text of each that opens with one of the words.
fn openings(source: &Source) -> (usize, Vec<String>) {
    let (mut docs, mut found) = (0, Vec::new());
    let mut is_inside = false;
    for (number, line) in (1..).zip(source.text.lines().map(str::trim_start)) {
        if let (false, Some(doc)) = (is_inside, line.strip_prefix("/// ")) {
            docs += 1;
            let first = doc.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
            if OPENINGS.contains(&first) {
                found.push(format!("{}:{number}: {}", source.path, line.trim_end()));
            }
        }
        is_inside = line.starts_with("///");
    }
    (docs, found)
}

#[test]
fn an_opening_is_seen_in_the_first_line_of_a_comment_only() {
    let text = "/// Whether it is.\n/// What follows.\nfn f() {}\n    /// Returns it.\n    /// When asked.\n// How so.\n";
    let source = Source { path: "it.rs".to_owned(), text: text.to_owned() };
    assert_eq!(openings(&source), (2, vec!["it.rs:1: /// Whether it is.".to_owned()]));
}
