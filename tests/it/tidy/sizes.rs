//! How long a file and a function may be, so that each can be read in one go.

use super::{
    assert_none,
    sources::{Source, all, root},
};

const FILE: usize = 400;
const FUNCTION: usize = 60;
const EXAMPLE: usize = 60;
const PAGE: usize = 92;

/// Tables of data: rows, not logic.
const TABLES: &[&str] = &["sdk/src/model/countries.rs", "sdk/src/rules/texts/faults.rs"];

#[test]
fn no_file_is_too_long_to_read_in_one_go() {
    let mut offences = Vec::new();
    for source in code_files() {
        let lines = source.without_tests().lines().count();
        if lines > FILE && !TABLES.contains(&source.path.as_str()) {
            offences.push(format!("{}: {lines} lines", source.path));
        }
    }
    assert_none("a file has at most 400 lines without its tests", &offences);
}

#[test]
fn no_function_is_too_long_to_read_in_one_go() {
    let mut offences = Vec::new();
    for source in code_files() {
        for (at, lines) in functions(&source.code()) {
            if lines > FUNCTION {
                offences.push(format!("{}: {lines} lines", source.at(at)));
            }
        }
    }
    assert_none("a function has at most 60 lines", &offences);
}

#[test]
fn no_example_is_longer_than_a_screen() {
    let mut offences = Vec::new();
    for source in code_files().filter(|source| source.path.starts_with("examples/")) {
        let lines = source.text.lines().count();
        if lines > EXAMPLE {
            offences.push(format!("{}: {lines} lines", source.path));
        }
    }
    assert_none("an example has at most 60 lines", &offences);
}

/// What a reader sees without scrolling sideways in a window of 1200 dots.
#[test]
fn no_example_is_wider_than_its_page() {
    let mut offences = Vec::new();
    for source in all().into_iter().filter(|source| source.path.starts_with("sdk/")) {
        for (place, line) in documented_code(&source) {
            if line.chars().count() > PAGE && !line.starts_with("# ") {
                offences.push(format!("{}:{place}: {line}", source.path));
            }
        }
    }
    assert_none("a line of an example has at most 92 characters", &offences);
}

/// The lines between fences of a document, or of a file's documentation, and their numbers.
fn documented_code(source: &Source) -> Vec<(usize, String)> {
    let (mut lines, mut fenced) = (Vec::new(), false);
    for (place, line) in (1..).zip(source.text.lines()) {
        let text = line.trim_start();
        let comment = text.strip_prefix("///").or(text.strip_prefix("//!"));
        let Some(text) = comment.or((!source.is_rust()).then_some(line)) else { continue };
        let text = text.strip_prefix(' ').unwrap_or(text);
        if text.starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            lines.push((place, text.to_owned()));
        }
    }
    lines
}

#[test]
fn every_file_says_first_what_it_decides() {
    let silent: Vec<_> = all()
        .into_iter()
        .filter(|source| source.is_rust() && !source.text.starts_with("//! "))
        .map(|source| source.path)
        .collect();
    assert_none("a Rust file starts with //!", &silent);
}

#[test]
fn every_table_is_still_there() {
    for table in TABLES {
        assert!(root().join(table).is_file(), "{table}");
    }
}

fn code_files() -> impl Iterator<Item = Source> {
    all().into_iter().filter(|source| source.is_rust() && !source.is_test())
}

/// Where each function with a body starts in masked code, and how many lines it has.
fn functions(code: &str) -> Vec<(usize, usize)> {
    code.match_indices("fn ")
        .filter(|(at, _)| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
        .filter_map(|(at, _)| Some((at, body_end(&code[at..])?)))
        .map(|(at, length)| (at, code[at..at + length].lines().count()))
        .collect()
}

/// The length from `fn` to the brace that closes its body; none for a declaration.
fn body_end(code: &str) -> Option<usize> {
    let (mut round, mut curly) = (0_i32, 0_i32);
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => round += 1,
            ')' | ']' => round -= 1,
            ';' if round == 0 && curly == 0 => return None,
            '{' => curly += 1,
            '}' if curly == 1 => return Some(at + 1),
            '}' => curly -= 1,
            _ => {}
        }
    }
    None
}

#[test]
fn functions_are_measured_from_fn_to_their_last_brace() {
    let code =
        "fn a();\nfn b(x: [u8; 2]) -> u8 {\n  if x { 1 } else { 2 }\n}\nlet c = |f: fn(u8)| 1;\n";
    let lengths: Vec<_> = functions(code).into_iter().map(|(_, lines)| lines).collect();
    assert_eq!(lengths, [3]);
}
