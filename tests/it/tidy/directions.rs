//! Who may know whom. The core stays testable because it cannot reach a socket, a file or the
//! clock; the vocabulary stays small because it cannot reach the client.

use std::collections::BTreeSet;

use super::{
    assert_none,
    sources::{Source, is_under, mask, read, rust_under},
};

/// In these folders, these modules of the same crate, and these words, must not be named.
struct Wall {
    folder: &'static str,
    modules: &'static [&'static str],
    words: &'static [&'static str],
}

const WALLS: &[Wall] = &[
    Wall {
        folder: "sdk/src/model",
        modules: &["rules", "client", "webhook"],
        words: &["reqwest", "tokio", "SystemTime", "Instant"],
    },
    Wall {
        folder: "sdk/src/rules",
        modules: &["client", "webhook"],
        words: &["reqwest", "tokio", "getrandom", "SystemTime", "Instant"],
    },
    Wall {
        folder: "sdk/src/webhook",
        modules: &["rules", "client"],
        words: &["reqwest", "tokio", "getrandom", "SystemTime", "Instant"],
    },
    Wall {
        folder: "server/src/domain",
        modules: &["store", "http", "service", "label", "mock", "process", "webhook"],
        words: &[
            "rusqlite",
            "axum",
            "hyper",
            "reqwest",
            "tokio",
            "fs",
            "Clock",
            "SystemClock",
            "SystemTime",
            "Instant",
        ],
    },
    Wall {
        folder: "server/src/label",
        modules: &["store", "http", "service", "mock", "process", "webhook"],
        words: &[
            "rusqlite",
            "axum",
            "hyper",
            "reqwest",
            "tokio",
            "fs",
            "Clock",
            "SystemClock",
            "SystemTime",
            "Instant",
        ],
    },
    Wall {
        folder: "server/src/store",
        modules: &["http", "service", "label", "mock", "process", "webhook"],
        words: &["axum", "hyper", "reqwest"],
    },
    Wall {
        folder: "server/src/service",
        modules: &["http", "mock", "process", "webhook"],
        words: &["rusqlite", "axum", "hyper", "reqwest"],
    },
    Wall {
        folder: "server/src/webhook",
        modules: &["store", "http", "label", "mock", "process"],
        words: &["rusqlite", "axum", "Clock", "SystemClock", "SystemTime", "Instant"],
    },
    Wall {
        folder: "server/src/http",
        modules: &["mock", "process", "webhook"],
        words: &["rusqlite", "reqwest"],
    },
];

#[test]
fn no_module_looks_behind_its_wall() {
    let mut offences = Vec::new();
    for wall in WALLS {
        for source in rust_under(&[wall.folder, &format!("{}.rs", wall.folder)]) {
            if !source.is_test() {
                offences.extend(seen_behind(wall, &source));
            }
        }
    }
    assert_none("a module names what its place forbids", &offences);
}

fn seen_behind(wall: &Wall, source: &Source) -> Vec<String> {
    let code = source.code();
    let named = modules_named(&code);
    let modules = wall.modules.iter().filter(|module| named.contains(**module));
    let words = wall.words.iter().filter(|word| has_word(&code, word));
    let climbs = code.contains("super::super::").then_some(&"super::super:: (say crate::)");
    modules.chain(words).chain(climbs).map(|what| format!("{}: {what}", source.path)).collect()
}

/// The first names after `crate::`, also in `crate::{a::B, c}`.
fn modules_named(code: &str) -> BTreeSet<String> {
    let dense: String = code.split_whitespace().collect();
    let mut named = BTreeSet::new();
    for (at, path) in dense.match_indices("crate::") {
        let rest = dense.get(at + path.len()..).unwrap_or_default();
        match rest.strip_prefix('{') {
            Some(group) => named.extend(group_names(group)),
            None => named.extend(first_word(rest)),
        }
    }
    named
}

/// The names at the first level of `a::B, c::{D, E}}…`, up to the brace that ends the group.
fn group_names(group: &str) -> Vec<String> {
    let (mut depth, mut start, mut names) = (0_usize, 0, Vec::new());
    for (at, c) in group.char_indices() {
        let ends = c == '}' && depth == 0;
        if ends || (c == ',' && depth == 0) {
            names.extend(first_word(&group[start..at]));
            start = at + 1;
        }
        match c {
            '{' => depth += 1,
            '}' if ends => break,
            '}' => depth -= 1,
            _ => {}
        }
    }
    names
}

fn first_word(text: &str) -> Option<String> {
    let end = text.find(|c: char| !is_word(c)).unwrap_or(text.len());
    (end > 0).then(|| text[..end].to_owned())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// True when a type stands in the code as a whole word, or a crate or module beside `::`.
fn has_word(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + word.len()..]);
        let whole = !before.ends_with(is_word) && !after.starts_with(is_word);
        let is_type = word.starts_with(char::is_uppercase);
        let in_path = before.ends_with("::") || after.starts_with("::") || before.ends_with("use ");
        whole && (is_type || in_path)
    })
}

#[test]
fn sql_stands_under_the_store_only() {
    let mut offences = Vec::new();
    for source in rust_under(&["server/src", "cli", "sdk/src"]) {
        if !is_under(&source.path, &["server/src/store"]) && has_word(&source.code(), "rusqlite") {
            offences.push(source.path);
        }
    }
    assert_none("only server/src/store may name rusqlite", &offences);
}

/// A reset hides rows before it deletes them: who reads from the tables shows what is gone. A query for ids
/// alone shows nothing: their rows are read through the views, and the views would look into a bad page.
#[test]
fn reads_of_the_store_see_nothing_that_a_reset_hides() {
    let mut offences = Vec::new();
    for source in rust_under(&["server/src/store"]) {
        let erases = ["erase.rs", "resets.rs", "reset_counts.rs", "connection.rs"]
            .map(|file| source.path.ends_with(file));
        if source.is_test() || erases.contains(&true) {
            continue;
        }
        for table in ["parcels", "manifests", "idempotency", "outbox"] {
            for (word, may_follow) in
                [("FROM ", ["DELETE ", "max(id) ", "\"SELECT id "].as_slice()), ("JOIN ", &[])]
            {
                let read = format!("{word}{table} ");
                for (at, _) in source.without_tests().match_indices(&read) {
                    let before = source.text.get(..at).unwrap_or_default();
                    if !may_follow.iter().any(|word| before.ends_with(word)) {
                        offences.push(format!("{}: {read}", source.at(at)));
                    }
                }
            }
        }
    }
    assert_none(
        "reads name living_parcels, living_manifests, living_idempotency, living_outbox",
        &offences,
    );
}

#[test]
fn the_cli_and_the_sdk_never_name_the_server() {
    let mut offences = Vec::new();
    for source in rust_under(&["cli", "sdk/src"]) {
        if mask(&source.text).contains("parcelo_server") {
            offences.push(source.path);
        }
    }
    assert_none("cli/ and sdk/src must not know parcelo_server", &offences);
    let manifest = read("Cargo.toml");
    let dependencies = manifest.split("\n[dependencies]").nth(1).unwrap();
    let dependencies = dependencies.split("\n[").next().unwrap();
    assert!(!dependencies.contains("parcelo-server"), "the CLI depends on the server");
}

#[test]
fn the_wall_reader_sees_groups_and_single_names() {
    let code = "use crate::{clock::{Clock, Millis}, ids, domain::{a::b, c}}; crate::store::open();";
    let named: Vec<_> = modules_named(code).into_iter().collect();
    assert_eq!(named, ["clock", "domain", "ids", "store"]);
    assert!(has_word("use tokio::fs;", "tokio") && has_word("std::fs::read", "fs"));
    assert!(has_word("use crate::clock::{Clock, Millis};", "Clock"));
    assert!(!has_word("SystemClock", "Clock") && !has_word("crate::clock::Millis", "Clock"));
    assert!(!has_word("let offset = prefs;", "fs") && !has_word("a network", "net"));
}

const WALL_EXAMPLE: Wall = Wall { folder: "x", modules: &["store"], words: &["tokio"] };

#[test]
fn a_wall_stops_what_it_forbids_and_nothing_else() {
    let table = [
        ("use crate::{ids, store::Store};", 1),
        ("fn f() { tokio::spawn(g()); }", 1),
        ("use super::super::store;", 1),
        ("// crate::store\nconst A: &str = \"crate::store\";", 0),
        ("use crate::ids;\n\n#[cfg(test)]\nmod tests { use crate::store; }", 0),
    ];
    for (text, offences) in table {
        let source = Source { path: "x/a.rs".into(), text: text.into() };
        assert_eq!(seen_behind(&WALL_EXAMPLE, &source).len(), offences, "{text}");
    }
}
