//! What the documents must say, compared with the code that they speak of.

use std::collections::BTreeSet;

use parcelo::{
    ErrorCode, Language, Operation, ParcelStatus,
    model::{EventKind, FaultCode, WarningCode},
};
use parcelo_server::internals::TRANSITIONS;

use super::{
    assert_none,
    sources::{Source, all, has_ending, read, root},
};

#[test]
fn the_reference_has_every_error_with_status_and_texts() {
    let text = read("docs/api.md");
    let missing: Vec<_> = ErrorCode::ALL
        .iter()
        .map(|code| {
            let (en, es) = (code.template(Language::En), code.template(Language::Es));
            format!("| {code} | {} | {en} | {es} |", code.status())
        })
        .filter(|row| !text.contains(row.as_str()))
        .collect();
    assert_none("docs/api.md lacks the row", &missing);
}

#[test]
fn the_reference_has_every_operation() {
    let text = read("docs/api.md");
    let missing: Vec<_> = Operation::ALL
        .iter()
        .map(|operation| format!("{} {}", operation.method().as_str(), operation.path()))
        .filter(|line| !text.contains(line.as_str()))
        .collect();
    assert_none("docs/api.md lacks the operation", &missing);
}

#[test]
fn the_reference_s_contents_have_every_section() {
    let text = read("docs/api.md");
    let contents = text.split("\n## ").next().unwrap();
    let missing: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .map(|section| format!("(#{})", section.to_lowercase().replace(',', "").replace(' ', "-")))
        .filter(|link| !contents.contains(link.as_str()))
        .collect();
    assert_none("the contents of docs/api.md lack", &missing);
}

#[test]
fn the_reference_has_every_status_fault_and_warning() {
    let text = read("docs/api.md");
    let statuses = ParcelStatus::KNOWN.iter().map(|status| {
        format!("| {status} | {} | {} |", status.name(Language::En), status.name(Language::Es))
    });
    let faults = FaultCode::KNOWN.iter().map(|fault| format!("`{fault}`"));
    let warnings = WarningCode::KNOWN.iter().map(|warning| format!("`{warning}`"));
    let kinds = EventKind::KNOWN.iter().map(|kind| format!("| `{kind}` |"));
    let missing: Vec<_> = statuses
        .chain(kinds)
        .chain(faults)
        .chain(warnings)
        .filter(|word| !text.contains(word.as_str()))
        .collect();
    assert_none("docs/api.md lacks", &missing);
}

#[test]
fn the_reference_has_the_transitions_that_the_core_allows() {
    let text = read("docs/api.md");
    let table = text.split("\n| from | to |\n|---|---|\n").nth(1).unwrap();
    let mut told = Vec::new();
    for line in table.lines().take_while(|line| line.starts_with('|')) {
        let [from, to] = [1, 2].map(|cell| line.split('|').nth(cell).unwrap().trim());
        let (from, to) = (from.split(", "), to.split(", ").filter(|to| *to != "final"));
        let pairs = from.flat_map(|from| to.clone().map(move |to| (from, to)));
        told.extend(pairs.map(|(from, to)| format!("{from} > {to}")));
    }
    let status = |state| ParcelStatus::from(state);
    let allowed = TRANSITIONS.iter().flat_map(|(from, next)| {
        next.iter().map(|to| format!("{} > {}", status(*from), status(*to)))
    });
    let mut allowed: Vec<_> = ["(none) > ORDERED".to_owned()].into_iter().chain(allowed).collect();
    told.sort();
    allowed.sort();
    assert_eq!(told, allowed, "the table of transitions in docs/api.md");
}

#[test]
fn the_changelog_starts_with_this_version() {
    let text = read("CHANGELOG.md");
    let first = text.lines().find_map(|line| line.strip_prefix("## ")).unwrap_or_default();
    let version = first.split(' ').next().unwrap_or_default();
    assert_eq!(version, env!("CARGO_PKG_VERSION"), "the first section of CHANGELOG.md");
}

#[test]
fn the_readme_begins_with_two_commands() {
    let text = read("README.md");
    for command in ["cargo run --example quickstart", "cargo test"] {
        assert!(text.lines().any(|line| line == command), "README.md lacks the line {command}");
    }
}

#[test]
fn the_readme_quotes_what_ci_runs() {
    let (readme, guide) = (read("README.md"), read("docs/testing.md"));
    let quoted = |language: &str| {
        let fence = format!("```{language}\n");
        let blocks = readme.split(&fence);
        let texts: Vec<_> = blocks.skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert!(!texts.is_empty(), "README.md has no block in {language}");
        texts.concat()
    };
    let suite = read("examples/pytest/test_parcelo.py");
    assert!(suite.contains(&quoted("python")), "the suite has other lines than README.md");
    assert!(guide.contains(&quoted("yaml")), "docs/testing.md has other steps than README.md");
    let command = guide.lines().find(|line| line.starts_with("parcelo-server mock ")).unwrap();
    assert!(quoted("yaml").contains(&format!("- run: {command}\n")), "CI runs {command}");
}

#[test]
fn every_link_leads_to_a_file() {
    let mut dead = Vec::new();
    for source in all().into_iter().filter(|source| has_ending(&source.path, "md")) {
        let folder = root().join(&source.path).parent().unwrap().to_path_buf();
        for (at, _) in source.text.match_indices("](") {
            let link = source.text[at + 2..].split(')').next().unwrap_or_default();
            let file = link.split('#').next().unwrap_or_default();
            let elsewhere = link.contains("://") || link.starts_with("mailto:");
            if !elsewhere && !file.is_empty() && !folder.join(file).exists() {
                dead.push(format!("{}: {link}", source.at(at)));
            }
        }
    }
    assert_none("a link leads nowhere", &dead);
}

#[test]
fn every_invariant_names_a_test_that_is_there() {
    let text = read("ARCHITECTURE.md");
    let section = text.split("\n## Invariants").nth(1).unwrap().split("\n## ").next().unwrap();
    let invariants: Vec<_> = section.lines().filter(|line| line.starts_with("| **I")).collect();
    assert!(invariants.len() > 5, "the invariants were not read");
    let code: String =
        all().into_iter().filter(Source::is_rust).map(|source| source.text).collect();
    let mut broken = Vec::new();
    for line in invariants {
        let keepers = line.rsplit('|').nth(1).unwrap_or_default();
        let tests: Vec<_> = keepers.split('`').skip(1).step_by(2).collect();
        let gone = tests.iter().filter(|test| !is_there(&code, test));
        broken.extend(gone.map(|test| format!("{test} of {line}")));
        if tests.is_empty() {
            broken.push(format!("no test: {line}"));
        }
    }
    assert_none("an invariant is kept by nothing", &broken);
}

/// A test function, or a lint of this workspace.
fn is_there(code: &str, keeper: &str) -> bool {
    let lint = |file: &str| read(file).contains(keeper);
    code.contains(&format!("fn {keeper}()")) || lint("Cargo.toml") || lint("clippy.toml")
}

#[test]
fn the_map_is_whole_and_true() {
    let text = read("ARCHITECTURE.md");
    let map = text.split("\n## Map").nth(1).unwrap().split("\n## ").next().unwrap();
    let mapped: BTreeSet<String> = map
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|row| row.split('`').next())
        .map(str::to_owned)
        .collect();
    let gone: Vec<_> = mapped.iter().filter(|path| !root().join(path).exists()).cloned().collect();
    assert_none("ARCHITECTURE.md maps what is not there", &gone);
    let unmapped: Vec<_> = all()
        .into_iter()
        .filter(Source::is_rust)
        .filter(|source| !is_mapped(&source.path, &mapped))
        .map(|source| source.path)
        .collect();
    assert_none("ARCHITECTURE.md does not map", &unmapped);
}

/// A file is mapped by its own row or by the row of a folder that holds it, crates' roots aside.
fn is_mapped(path: &str, mapped: &BTreeSet<String>) -> bool {
    let whole_crates = ["cli/", "sdk/", "server/", "sdk/src/", "server/src/"];
    mapped.contains(path)
        || mapped.iter().any(|place| {
            place.ends_with('/')
                && !whole_crates.contains(&place.as_str())
                && path.starts_with(place.as_str())
        })
}
