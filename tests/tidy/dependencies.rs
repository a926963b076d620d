//! Rules for dependencies: each one is used and has its reason in docs/decisions.md, and the SDK and the mock server
//! add few crates to the builds of their users.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use serde_json::Value;

use super::{
    assert_none,
    sources::{Source, is_word, read, root, rust_under},
};

#[test]
fn every_dependency_has_its_reason() {
    let (reasons, used) =
        (documented_reasons(), dependencies().into_iter().map(|(_, name)| name).collect());
    let violations = reasons.symmetric_difference(&used).cloned().collect::<Vec<_>>();
    assert_none("the manifests and the reasons in docs/decisions.md differ in", &violations);
}

#[test]
fn every_crate_uses_what_it_depends_on() {
    let mut named = BTreeMap::new();
    let mut violations = Vec::new();
    let all = dependencies();
    let crates: BTreeSet<_> = all.iter().map(|(folder, _)| folder.as_str()).collect();
    for (folder, name) in &all {
        let words = named.entry(folder).or_insert_with(|| words_in(folder, &crates));
        if !words.contains(&name.replace('-', "_")) {
            violations.push(format!("{folder}Cargo.toml: {name}"));
        }
    }
    assert_none("a crate depends on what its code never names", &violations);
}

/// Returns the words in a crate's code and in its comments, whose examples are compiled too. Crates in nested
/// folders are left out. The command line is the crate at the root, whose folder is empty.
fn words_in(folder: &str, crates: &BTreeSet<&str>) -> BTreeSet<String> {
    let folders: &[&str] = if folder.is_empty() { &["cli/", "tests/"] } else { &[folder] };
    let is_nested = |other: &&&str| other.len() > folder.len() && other.starts_with(folder);
    let nested: Vec<_> = crates.iter().filter(is_nested).filter(|_| !folder.is_empty()).collect();
    let is_own = |file: &Source| !nested.iter().any(|other| file.path.starts_with(**other));
    let files = rust_under(folders).into_iter().filter(is_own);
    files
        .flat_map(|file| file.text.split(|c| !is_word(c)).map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

/// Returns each dependency on a third-party crate, with the folder of the crate that declares it.
fn dependencies() -> Vec<(String, String)> {
    let metadata = cargo(&["metadata", "--locked", "--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let mut found = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let manifest = package["manifest_path"].as_str().unwrap();
        let folder = manifest.strip_prefix(root().to_str().unwrap()).unwrap();
        let folder = folder[1..].strip_suffix("Cargo.toml").unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            if dependency["path"].is_null() {
                found.push((folder.to_owned(), dependency["name"].as_str().unwrap().to_owned()));
            }
        }
    }
    found
}

/// Returns the names in the rows `| `name`, `name` | reason |` under "Dependencies" in docs/decisions.md.
fn documented_reasons() -> BTreeSet<String> {
    let text = read("docs/decisions.md");
    let section = text.split("\n## Dependencies").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let rows = rows.filter(|(_, reason)| reason.trim_matches([' ', '|']).len() > 20);
    rows.flat_map(|(names, _)| names.split("`, `").map(str::to_owned)).collect()
}

#[test]
fn the_sdk_and_the_cli_bring_no_unwanted_crates() {
    let table: &[(&[&str], &[&str])] = &[
        // Without default features, the SDK must also compile for a browser.
        (
            &["--package", "parcelo", "--no-default-features"],
            &[
                "axum",
                "getrandom",
                "hyper",
                "mio",
                "reqwest",
                "rusqlite",
                "rustls",
                "tokio",
                "ulid",
            ],
        ),
        // The client alone sends by the program's own transport.
        (
            &["--package", "parcelo", "--no-default-features", "--features", "client"],
            &["axum", "h2", "hyper", "hyper-util", "mio", "reqwest", "rustls", "tower"],
        ),
        // The phases of hyper's errors need no client of hyper.
        (
            &["--package", "parcelo", "--no-default-features", "--features", "hyper"],
            &["h2", "hyper-util", "mio", "reqwest", "rustls"],
        ),
        // The program chooses the TLS of its HTTP client.
        (
            &["--package", "parcelo", "--no-default-features", "--features", "reqwest"],
            &["aws-lc-rs", "hyper-rustls", "ring", "rustls"],
        ),
        (&["--package", "parcelo-cli"], &["parcelo-server"]),
    ];
    for (package, unwanted) in table {
        let crates = crates_of(package);
        assert!(crates.iter().any(|name| name.starts_with("serde_json ")), "not read: {crates:?}");
        let names: BTreeSet<_> = crates.iter().filter_map(|line| line.split(' ').next()).collect();
        let violations: Vec<_> = unwanted.iter().filter(|name| names.contains(**name)).collect();
        assert!(violations.is_empty(), "{package:?} pulls in {violations:?}");
    }
}

/// Maximum number of crates that the SDK may add to the crates of reqwest and tokio.
const MAX_SDK_CRATES: usize = 30;

#[test]
fn the_sdk_adds_few_crates_to_reqwest_and_tokio() {
    let (mut theirs, mut ours, mut owner) = (BTreeSet::new(), BTreeSet::new(), "");
    let tree = dependency_tree(&["--package", "parcelo", "--prefix", "depth", "--no-dedupe"]);
    for line in tree.lines().filter_map(|line| line.split(" (").next()) {
        let name = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let depth = &line[..line.len() - name.len()];
        owner = if depth == "1" { name.split(' ').next().unwrap() } else { owner };
        match owner {
            // reqwest's feature `json`, which similar SDKs use too, pulls in serde_json.
            "reqwest" | "tokio" | "serde_json" => theirs.insert(name),
            _ => !name.starts_with("parcelo") && ours.insert(name),
        };
    }
    assert!(theirs.len() > 50 && ours.len() > 10, "the tree was not read");
    let own: Vec<_> = ours.difference(&theirs).collect();
    assert!(own.len() <= MAX_SDK_CRATES, "{}: {own:?}", own.len());
}

/// Maximum number of crates that the mock server may add to the tests of a program that uses the SDK.
const MAX_MOCK_CRATES: usize = 42;

#[test]
fn the_mock_server_adds_few_crates_to_the_sdk() {
    let sdk = crates_of(&["--package", "parcelo"]);
    let mock = ["--package", "parcelo-server", "--no-default-features", "--features", "sdk"];
    let crates = crates_of(&mock);
    let more: Vec<_> =
        crates.difference(&sdk).filter(|name| !name.starts_with("parcelo-")).collect();
    assert!(sdk.len() > 80 && more.len() > 10, "the trees were not read");
    assert!(more.len() <= MAX_MOCK_CRATES, "{}: {more:?}", more.len());
}

/// Returns the crates of a package's dependency tree, as `name version`.
fn crates_of(package: &[&str]) -> BTreeSet<String> {
    let tree = dependency_tree(&[package, &["--prefix", "none"]].concat());
    tree.lines().filter_map(|line| line.split(" (").next()).map(str::to_owned).collect()
}

/// Returns a dependency tree without dev-dependencies.
fn dependency_tree(arguments: &[&str]) -> String {
    cargo(&[&["tree", "--locked", "--edges", "normal"], arguments].concat())
}

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
