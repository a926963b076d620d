//! Words that may stand in some places only, or nowhere.

use super::{
    assert_none,
    sources::{Source, all, is_under, mask, rust_under},
};

/// Where binaries print. Everything else returns values or writes to a tracing span.
const OUTPUT: &[&str] = &["cli/output", "cli/output.rs", "server/src/process/print.rs", "examples"];

/// Somebody else's servers, which receive webhooks.
const RECEIVER: &str = "examples/webhook_receiver.rs";
const EXTRACTOR: &str = "examples/webhook_extractor.rs";

/// Where sockets are opened: the HTTP shell and what starts it, the sender of webhooks, and the
/// command's receiver of them.
const SOCKETS: &[&str] = &[
    "cli/commands/listen.rs",
    "server/src/http",
    "server/src/mock",
    "server/src/process/serve.rs",
    "server/src/webhook",
    RECEIVER,
    EXTRACTOR,
];

/// Where HTTP status numbers stand: the error table, and what reads foreign answers, the client and
/// the schedule of webhooks.
const STATUSES: &[&str] = &[
    "sdk/src/model/error_code.rs",
    "sdk/src/client",
    "server/src/domain/webhooks/retry.rs",
    RECEIVER,
    EXTRACTOR,
];

/// Statuses that tell no error of the table; the last one stands in for a number that is none.
const PLAIN: &[&str] = &["OK", "CREATED", "NOT_MODIFIED", "INTERNAL_SERVER_ERROR"];

/// Said nowhere in the repository. In two halves each, so that this list is not its own offence.
const NOWHERE: &[(&str, &str)] = &[
    ("/wo", "rk/"),
    ("/ro", "ot/"),
    ("/ho", "me/"),
    ("/tmp/", "bash_jobs"),
    ("shared/", "design"),
    ("shared/", "spec"),
    ("design/", "api.md"),
    ("language ", "model"),
    ("system ", "prompt"),
    ("sub", "agent"),
    ("as an ", "ai "),
    ("FIX", "ME"),
    ("TO", "DO:"),
    ("XX", "X:"),
];

#[test]
fn only_output_modules_print() {
    let macros = ["println!", "eprintln!", "print!", "eprint!", "dbg!"];
    assert_none("printing belongs to an output module", &found(&macros, OUTPUT, &["build.rs"]));
}

#[test]
fn only_the_shell_opens_sockets() {
    let sockets = ["TcpListener", "TcpStream", "UdpSocket", "UnixListener"];
    assert_none("a socket is opened outside the HTTP shell", &found(&sockets, SOCKETS, &[]));
}

#[test]
fn status_numbers_stand_in_the_error_table() {
    let offences: Vec<_> = production(STATUSES).flat_map(|source| statuses(&source)).collect();
    assert_none("an error's HTTP status is read from ErrorCode::status", &offences);
}

#[test]
fn no_test_is_left_out_without_a_reason() {
    let mut offences = Vec::new();
    for source in rust_under(&["cli", "examples", "sdk", "server", "tests"]) {
        let code = mask(&source.text);
        for (at, _) in code.match_indices("#[ignore") {
            let reason = code[at..].split_once(']').map(|(attribute, _)| attribute.len());
            if reason.is_none_or(|length| !source.text[at..at + length].contains("= \"")) {
                offences.push(source.at(at));
            }
        }
    }
    assert_none("#[ignore = \"…\"] says who runs the test then", &offences);
}

#[test]
fn nothing_names_a_machine_or_how_it_was_written() {
    let mut offences = Vec::new();
    for source in all() {
        for (one, other) in NOWHERE {
            let word = format!("{one}{other}");
            for (at, _) in source.text.match_indices(&word) {
                offences.push(format!("{}: {word}", source.at(at)));
            }
        }
    }
    assert_none("the repository stands alone", &offences);
}

#[test]
fn no_module_is_a_drawer_for_odds_and_ends() {
    let drawers = ["util", "utils", "helper", "helpers", "manager", "common", "misc"];
    let offences: Vec<_> = all()
        .into_iter()
        .filter(Source::is_rust)
        .filter(|source| source.path.split(['/', '.']).any(|part| drawers.contains(&part)))
        .map(|source| source.path)
        .collect();
    assert_none("a module is named after its idea", &offences);
}

/// Production code outside the allowed places.
fn production(allowed: &'static [&'static str]) -> impl Iterator<Item = Source> {
    rust_under(&["cli", "examples", "sdk/src", "server/src"])
        .into_iter()
        .filter(|source| !source.is_test())
        .filter(move |source| {
            let stem = source.path.trim_end_matches(".rs");
            !is_under(&source.path, allowed) && !is_under(stem, allowed)
        })
}

fn found(words: &[&str], allowed: &'static [&'static str], files: &[&str]) -> Vec<String> {
    let mut offences = Vec::new();
    for source in production(allowed) {
        let code = source.code();
        let free = files.iter().any(|file| source.path.ends_with(file));
        for word in words.iter().filter(|_| !free) {
            let places = code.match_indices(word).filter(|(at, _)| !code[..*at].ends_with(is_word));
            offences.extend(places.map(|(at, _)| format!("{}: {word}", source.at(at))));
        }
    }
    offences
}

/// Error statuses spelled out: `StatusCode::NOT_FOUND`, or `404` beside the word status.
fn statuses(source: &Source) -> Vec<String> {
    let code = source.code();
    let mut offences = Vec::new();
    for (at, path) in code.match_indices("StatusCode::") {
        let name: String = code[at + path.len()..].chars().take_while(|c| is_word(*c)).collect();
        let constant = name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        if constant && !PLAIN.contains(&name.as_str()) {
            offences.push(format!("{}: {name}", source.at(at)));
        }
    }
    for (at, line) in line_starts(&code) {
        let numbers = line.split(|c| !is_word(c)).filter(|word| is_error_status(word));
        if line.to_lowercase().contains("status") {
            offences.extend(numbers.map(|number| format!("{}: {number}", source.at(at))));
        }
    }
    offences
}

fn line_starts(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.split_inclusive('\n').scan(0, |start, line| {
        let at = *start;
        *start += line.len();
        Some((at, line))
    })
}

fn is_error_status(word: &str) -> bool {
    word.len() == 3 && word.parse().is_ok_and(|number| (400..600).contains(&number))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[test]
fn a_spelled_out_status_is_seen() {
    let table = [
        ("StatusCode::NOT_FOUND", 1),
        ("if answer.status() == 404 {}", 1),
        ("StatusCode::from_u16(code.status())", 0),
        ("StatusCode::CREATED", 0),
        ("const WIDTH: u32 = 404;", 0),
        ("// status 404", 0),
    ];
    for (text, offences) in table {
        let source = Source { path: "a.rs".into(), text: text.into() };
        assert_eq!(statuses(&source).len(), offences, "{text}");
    }
}
