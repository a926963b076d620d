//! A doc comment begins as native ones do: a function's with a verb ("Returns …"), a type's with a noun, a constant's with
//! "Maximum …", and never with a question word or a preposition.

use super::{assert_at_most, sources::Source};

const OPENINGS: &[&str] = &[
    "As", "By", "From", "How", "In", "Of", "On", "What", "When", "Where", "Whether", "Which",
    "Who", "Whose", "Why", "With",
];

/// Doc comments that still open so, by the first folder that fits; everywhere else there are none. Fewer is always
/// right, and the number may then be lowered.
const REMAINING: &[(&str, usize)] = &[
    ("cli/", 113),
    ("examples/", 3),
    ("sdk/src/", 207),
    ("sdk/tests/", 15),
    ("server/benches/", 40),
    ("server/src/domain/", 241),
    ("server/src/http/", 145),
    ("server/src/label/", 30),
    ("server/src/mail/", 26),
    ("server/src/mock/", 51),
    ("server/src/process/", 54),
    ("server/src/service/", 83),
    ("server/src/store/", 418),
    ("server/src/webhook/", 13),
    ("server/src/", 18),
    ("server/tests/", 52),
    ("tests/crash/", 35),
    ("tests/fuzz/", 14),
    ("tests/it/", 14),
    ("tests/tidy/", 9),
    ("tests/torture/", 70),
];

#[test]
fn doc_comments_that_open_with_a_question_or_a_preposition_become_fewer() {
    assert_at_most(
        "a function's doc begins with a verb, a type's with a noun",
        REMAINING,
        openings,
    );
}

/// Returns the place and text of each doc comment in a file that opens with one of the words.
fn openings(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    if !source.is("rs") {
        return found;
    }
    let mut is_inside = false;
    for (number, line) in (1..).zip(source.text.lines()) {
        let doc = line.trim_start().strip_prefix("/// ");
        let first = doc.and_then(|doc| doc.split(' ').next()).unwrap_or_default();
        if !is_inside && OPENINGS.contains(&first) {
            found.push(format!("{}:{number}: {}", source.path, line.trim()));
        }
        is_inside = line.trim_start().starts_with("///");
    }
    found
}

#[test]
fn an_opening_is_seen_in_the_first_line_of_a_comment_only() {
    let text = "/// Whether it is.\n/// What follows.\nfn f() {}\n    /// Returns it.\n    /// When asked.\n// How so.\n";
    let source = Source { path: "it.rs".to_owned(), text: text.to_owned() };
    assert_eq!(openings(&source), ["it.rs:1: /// Whether it is."]);
}
