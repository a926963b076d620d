//! Plain English: a list of discouraged words in comments, texts and names, with what to write instead.

use super::{
    assert_at_most, assert_none,
    sources::{Source, all_files, is_word},
};

/// Discouraged words of comments, texts and documents, and what to write instead.
const DISCOURAGED_PHRASES: &[(&str, &str)] = &[
    ("anew", "again"),
    ("anybody", "anyone, or name them: a caller, a client, a reader"),
    ("that are none", "say what they are, or: is not a …"),
    ("everybody", "everyone, or name them"),
    ("in the dark", "outcome unknown"),
    ("is no value", "invalid value"),
    ("that is none", "say what it is, or: is not a …, does not exist"),
    ("nobody", "no one, or name them: no other process, no caller"),
    ("one word too many", "unexpected argument"),
    ("somebody", "someone, or name them"),
    ("told", "notified, passed, given, sent, reported"),
    ("whoever", "name them: the caller, the first of …"),
];

/// Discouraged names in code, and their replacements.
const DISCOURAGED_NAMES: &[(&str, &str)] = &[
    ("Desk", "what it does: Recorder, RowImporter"),
    ("Door", "what it guards: LoginThrottle"),
    ("Dress", "ResponseStyle"),
    ("Heard", "what was received: RateLimitFeedback"),
    ("Knock", "LoginAttempt"),
    ("MOST", "MAX_ with its subject and unit: MAX_BODY_BYTES"),
    ("Said", "ResponseSummary"),
    ("Told", "OutboxEvent, Report"),
    ("fn of", "new, from_…, for_…"),
];

/// The number of violations that remain, by the first folder that matches; all other folders have none. The numbers
/// only go down: fewer violations always pass, and then the number should be lowered.
const REMAINING: &[(&str, usize)] = &[
    // The filter `Requests::of(operation)`, which reads as a sentence.
    ("server/service/src/mock/", 1),
    ("server/store/src/sqlite/tests/", 1),
    ("server/tests/", 21),
    ("sdk/tests/", 1),
    ("tests/tidy/", 0),
    ("tests/", 1),
];

#[test]
fn discouraged_words_do_not_increase() {
    assert_at_most("a discouraged word has a plainer replacement", REMAINING, find_discouraged);
}

/// Returns the location of each discouraged word in a file, with its replacement.
fn find_discouraged(source: &Source) -> Vec<String> {
    let is_prose = source.has_extension("md") || source.has_extension("html");
    let is_script = [".ci/run", ".ci/prove", ".ci/release", ".ci/stages.sh", "justfile"]
        .contains(&&*source.path);
    if source.path == file!() || !(source.has_extension("rs") || is_prose || is_script) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (number, line) in (1..).zip(source.text.lines()) {
        let (prose, code) = if source.has_extension("rs") {
            prose_and_code(line)
        } else {
            (line.to_owned(), String::new())
        };
        for (text, list) in
            [(prose.to_ascii_lowercase(), DISCOURAGED_PHRASES), (code, DISCOURAGED_NAMES)]
        {
            let occurs = |(phrase, _): &&(&str, _)| has_words(&text, phrase);
            found.extend(list.iter().filter(occurs).map(|(phrase, instead)| {
                format!("{}:{number}: {phrase} (instead: {instead})", source.path)
            }));
        }
    }
    found
}

/// Splits a line of Rust into its prose (string literals and the comment) and its code. The continuation of a string
/// from the previous line counts as code.
fn prose_and_code(line: &str) -> (String, String) {
    let (code, comment) = line.split_once("//").unwrap_or((line, ""));
    let (code, texts): (Vec<_>, Vec<_>) =
        (code.split('"').step_by(2).collect(), code.split('"').skip(1).step_by(2).collect());
    (format!("{} {comment}", texts.join(" ")), code.join(" "))
}

fn has_words(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(at, _)| {
        !text[..at].ends_with(is_word) && !text[at + phrase.len()..].starts_with(is_word)
    })
}

#[test]
fn words_are_found_in_prose_and_in_names_only() {
    let table = [
        ("// Nobody is told.", 2),
        ("let told = 1;", 0),
        ("const A: &str = \"an id that is none\";", 1),
        ("fn of(desk: Desk) {} // untold, renewed", 2),
    ];
    for (text, count) in table {
        let source = Source { path: "a.rs".into(), text: text.into() };
        assert_eq!(find_discouraged(&source).len(), count, "{text}");
    }
}

#[test]
fn no_file_is_named_helpers_or_utils() {
    let vague = ["util", "utils", "helper", "helpers", "manager", "common", "misc"];
    let mut violations: Vec<_> = all_files().into_iter().map(|source| source.path).collect();
    violations.retain(|path| path.split(['/', '.']).any(|part| vague.contains(&part)));
    assert_none("a file is named after what it contains", &violations);
}
