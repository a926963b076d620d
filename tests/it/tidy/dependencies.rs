//! Dependencies are guests: each has its reason in docs/decisions.md, and the vocabulary's own
//! tree stays free of what a browser could not run.

use std::{collections::BTreeSet, process::Command};

use super::{
    assert_none,
    sources::{Source, mask, read, root, rust_under},
};

/// Each manifest, and where its crate's code lies.
const CRATES: &[(&str, &[&str])] = &[
    ("Cargo.toml", &["cli", "tests"]),
    ("examples/Cargo.toml", &["examples"]),
    ("sdk/Cargo.toml", &["sdk"]),
    ("server/Cargo.toml", &["server"]),
];

/// What a crate without HTTP client must not bring along.
const CLIENT_ONLY: &[&str] = &[
    "axum",
    "fastrand",
    "getrandom",
    "hyper",
    "mio",
    "reqwest",
    "rusqlite",
    "rustls",
    "tokio",
    "ulid",
];

#[test]
fn every_dependency_has_its_reason() {
    let reasons = reasons();
    let dependencies = workspace_dependencies();
    let unexplained: Vec<_> = dependencies.difference(&reasons).cloned().collect();
    assert_none("docs/decisions.md gives no reason for", &unexplained);
    let gone: Vec<_> = reasons.difference(&dependencies).cloned().collect();
    assert_none("docs/decisions.md gives a reason for what is no dependency", &gone);
}

#[test]
fn every_dependency_is_used_by_a_crate() {
    let users: Vec<_> = CRATES.iter().map(|(path, _)| outside_workspace(&read(path))).collect();
    let idle: Vec<_> = workspace_dependencies()
        .into_iter()
        .filter(|name| !users.iter().any(|text| text.lines().any(|line| names(line, name))))
        .collect();
    assert_none("[workspace.dependencies] lists what no crate uses", &idle);
}

#[test]
fn every_crate_uses_what_it_depends_on() {
    let mut idle = Vec::new();
    for (path, folders) in CRATES {
        let code: Vec<_> = rust_under(folders).iter().map(spoken).collect();
        for line in dependency_lines(&outside_workspace(&read(path))) {
            let name = line.split([' ', '.']).next().unwrap().replace('-', "_");
            if !code.iter().any(|code| code.contains(&name)) {
                idle.push(format!("{path}: {name}"));
            }
        }
    }
    assert_none("a crate depends on what its code never names", &idle);
}

/// The words of a file's code, its tests' and its examples' too.
fn spoken(source: &Source) -> BTreeSet<String> {
    let documented = source.text.lines().map(str::trim);
    let documented =
        documented.filter_map(|line| line.strip_prefix("/// ").or(line.strip_prefix("//! ")));
    let examples: String = documented.flat_map(|line| [line, "\n"]).collect();
    let code = mask(&source.text) + &examples;
    code.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_owned).collect()
}

#[test]
fn versions_stand_in_the_workspace_only() {
    let mut offences = Vec::new();
    for (path, _) in CRATES {
        for line in dependency_lines(&outside_workspace(&read(path))) {
            if !line.contains("workspace = true") && !line.contains("path = ") {
                offences.push(format!("{path}: {line}"));
            }
        }
    }
    assert_none("a dependency's version stands in [workspace.dependencies]", &offences);
}

#[test]
fn the_vocabulary_brings_no_client_along() {
    let held = held_by(&["--package", "parcelo", "--no-default-features"]);
    let names: BTreeSet<_> = held.iter().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains("serde_json"), "the tree was not read: {held:?}");
    let offences: Vec<_> = CLIENT_ONLY.iter().filter(|name| names.contains(**name)).collect();
    assert!(offences.is_empty(), "parcelo without default features holds {offences:?}");
}

/// The crates that the SDK may bring along besides those of reqwest and tokio.
const MOST_OWN_CRATES: usize = 30;

#[test]
fn the_sdk_brings_few_crates_besides_reqwest_and_tokio() {
    let (mut theirs, mut ours, mut owner) = (BTreeSet::new(), BTreeSet::new(), String::new());
    for line in tree(&["--package", "parcelo", "--prefix", "depth", "--no-dedupe"]).lines() {
        let line = line.split(" (").next().unwrap();
        let (depth, held) = line.split_at(line.find(|c: char| !c.is_ascii_digit()).unwrap());
        if depth == "1" {
            held.split(' ').next().unwrap().clone_into(&mut owner);
        }
        match owner.as_str() {
            // Its feature `json`, which our peers use, brings serde_json along.
            "reqwest" | "tokio" | "serde_json" => theirs.insert(held.to_owned()),
            _ => depth != "0" && ours.insert(held.to_owned()),
        };
    }
    assert!(theirs.len() > 50 && ours.len() > 10, "the tree was not read");
    let own: Vec<_> = ours.difference(&theirs).collect();
    assert!(own.len() <= MOST_OWN_CRATES, "{}: {own:?}", own.len());
}

/// The crates that the mock server may bring into the tests of somebody who has the SDK.
const MOST_MOCK_CRATES: usize = 40;

#[test]
fn the_mock_server_brings_few_crates_besides_the_sdk() {
    let sdk = held_by(&["--package", "parcelo"]);
    let mock = ["--package", "parcelo-server", "--no-default-features", "--features", "sdk"];
    let held = held_by(&mock);
    let more: Vec<_> = held.difference(&sdk).collect();
    assert!(sdk.len() > 80 && more.len() > 10, "the trees were not read");
    assert!(more.len() <= MOST_MOCK_CRATES, "{}: {more:?}", more.len());
}

/// The crates of a tree, as `name version`.
fn held_by(arguments: &[&str]) -> BTreeSet<String> {
    let tree = tree(&[arguments, &["--prefix", "none"]].concat());
    let held = tree.lines().filter_map(|line| line.split(" (").next());
    held.map(str::to_owned).collect()
}

/// A tree without what tests bring along.
fn tree(arguments: &[&str]) -> String {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges", "normal"])
        .args(arguments)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    String::from_utf8(tree.stdout).unwrap()
}

/// The names in the tables of docs/decisions.md: rows of "Dependencies" start with | `name`.
fn reasons() -> BTreeSet<String> {
    let text = read("docs/decisions.md");
    let section = text.split("\n## Dependencies").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split_once("` |"))
        .filter(|(_, reason)| reason.trim_matches([' ', '|']).len() > 20)
        .flat_map(|(names, _)| names.split("`, `").map(str::to_owned))
        .collect()
}

fn workspace_dependencies() -> BTreeSet<String> {
    let text = read("Cargo.toml");
    let section = text.split("[workspace.dependencies]").nth(1).unwrap();
    let lines = section.split("\n[").next().unwrap().lines();
    let foreign = lines.filter(|line| !line.contains("path = "));
    foreign.filter_map(|line| line.split_once(" = ")).map(|(name, _)| name.to_owned()).collect()
}

fn outside_workspace(manifest: &str) -> String {
    let sections = manifest.split("\n[").filter(|section| !section.starts_with("workspace"));
    sections.flat_map(|section| ["[", section, "\n"]).collect()
}

fn dependency_lines(manifest: &str) -> Vec<String> {
    let sections = manifest.split("\n[").filter(|section| {
        section.split(']').next().is_some_and(|name| name.ends_with("dependencies"))
    });
    let lines = sections.flat_map(str::lines);
    lines.filter(|line| line.contains(" = ")).map(str::to_owned).collect()
}

fn names(line: &str, dependency: &str) -> bool {
    line.strip_prefix(dependency).is_some_and(|rest| rest.starts_with([' ', '.']))
}
