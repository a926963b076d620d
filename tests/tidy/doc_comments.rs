//! The first words of doc comments: a verb for functions ("Returns …"), a noun for types, "Maximum …" for constants.
//! Few may begin with a question word or a preposition.

use std::collections::BTreeMap;

use super::{
    assert_none,
    sources::{Source, rust_under},
};

/// First words that say nothing about what an item is or does.
const DISCOURAGED_OPENINGS: &[&str] = &[
    "As", "At", "By", "For", "From", "How", "In", "Of", "On", "To", "Up", "What", "When", "Where",
    "Whether", "Which", "Who", "Whose", "Why", "With",
];

/// Maximum percentage of a folder's doc comments that open with one of these words. Well-kept projects have 2-5 %.
const MAX_PERCENT: usize = 6;

#[test]
fn few_doc_comments_open_with_a_question_or_a_preposition() {
    let mut folders = BTreeMap::<String, (usize, Vec<String>)>::new();
    for source in rust_under(&[""]) {
        let folders_above = source.path.rsplit_once('/').unwrap_or_default().0.split('/');
        let folder = folders_above.take(3).collect::<Vec<_>>().join("/");
        let (docs, found) = folders.entry(folder).or_default();
        let (count, openings) = find_openings(&source);
        *docs += count;
        found.extend(openings);
    }
    let mut violations = Vec::new();
    for (folder, (docs, found)) in folders {
        if found.len() * 100 > MAX_PERCENT * docs {
            let count = found.len();
            violations.push(format!("{folder}: {count} of {docs}, may have {MAX_PERCENT} %:"));
            violations.extend(found);
        }
    }
    assert_none("a function's doc begins with a verb, a type's with a noun", &violations);
}

/// Returns the number of a file's doc comments, and those that open with one of the words, as `path:line: text`.
fn find_openings(source: &Source) -> (usize, Vec<String>) {
    let (mut docs, mut found) = (0, Vec::new());
    let mut is_inside = false;
    for (number, line) in (1..).zip(source.text.lines().map(str::trim_start)) {
        if let (false, Some(doc)) = (is_inside, line.strip_prefix("/// ")) {
            docs += 1;
            let first = doc.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
            if DISCOURAGED_OPENINGS.contains(&first) {
                found.push(format!("{}:{number}: {}", source.path, line.trim_end()));
            }
        }
        is_inside = line.starts_with("///");
    }
    (docs, found)
}

#[test]
fn only_the_first_line_of_a_doc_comment_is_checked() {
    let text = "/// Whether it is.\n/// What follows.\nfn f() {}\n    /// Returns it.\n    /// When asked.\n// How so.\n";
    let source = Source { path: "it.rs".to_owned(), text: text.to_owned() };
    assert_eq!(find_openings(&source), (2, vec!["it.rs:1: /// Whether it is.".to_owned()]));
}
