//! Checks that the documents agree with the code that they describe.

use std::{collections::BTreeSet, path::Path};

use super::{
    assert_none,
    sources::{Source, all_files, read, root, rust_under},
};

#[test]
fn the_manual_quotes_the_tested_nginx_configuration() {
    let configuration = read("examples/servers/nginx.conf");
    assert!(read("docs/operations.md").contains(&format!("```nginx\n{configuration}```\n")));
}

#[test]
fn every_exit_code_is_in_the_help_and_in_the_guide() {
    let code = read("cli/failure.rs");
    let variants = code.split("enum Exit {").nth(1).unwrap().split('}').next().unwrap();
    let numbers: Vec<_> = variants
        .lines()
        .filter_map(|line| Some(line.strip_suffix(',')?.split_once(" = ")?.1))
        .collect();
    assert!(numbers.len() > 10, "the codes were not read: {numbers:?}");
    let (texts, guide) = (read("cli/texts/help.rs"), read("docs/cli.md"));
    let help = texts.split("EXIT_CODES").nth(1).unwrap();
    let is_present = |number: &&&str| {
        let languages = help.matches(&format!("\n{number:>5}  ")).count();
        languages == 2 && guide.contains(&format!("\n| {number} | "))
    };
    let missing: Vec<_> = numbers.iter().filter(|number| !is_present(number)).collect();
    assert!(
        missing.is_empty(),
        "cli/texts/help.rs or docs/cli.md lacks the exit codes {missing:?}"
    );
}

#[test]
fn every_list_of_formats_and_settings_is_complete() {
    let names = |file: &str, start: &str, end: char| -> BTreeSet<String> {
        let code = read(file);
        let list = code.split(start).nth(1).unwrap().split(end).next().unwrap();
        list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let formats = names("cli/output/format.rs", "fn name(self)", '}');
    let settings = names("cli/profiles.rs", "const NAMES: [&str;", ';');
    assert!(formats.len() > 3 && settings.len() > 3, "not read: {formats:?} {settings:?}");
    let line = |file: &str, start: &str| {
        let text = read(file);
        text.lines().find(|line| line.trim_start().starts_with(start)).unwrap().to_owned()
    };
    let (hint, help) =
        (line("cli/texts/tools.rs", "FIX_CONFIG = "), line("cli/texts/help.rs", "(\"output\", "));
    let (example, guide) = (line("docs/cli.md", "output = "), read("docs/cli.md"));
    let twice = |text: &str, name: &str| text.matches(name).count() >= 2;
    let mut violations = Vec::new();
    for format in &formats {
        let is_listed = twice(&hint, format) && twice(&help, format) && example.contains(&**format);
        violations.extend((!is_listed).then(|| format!("the format {format}")));
    }
    for setting in &settings {
        let is_listed = twice(&hint, setting) && guide.contains(&format!("\n{setting} = "));
        violations.extend((!is_listed).then(|| format!("the setting {setting}")));
    }
    assert_none("FIX_CONFIG, the help of --output or docs/cli.md lacks", &violations);
}

#[test]
fn the_changelog_starts_with_this_version() {
    let (text, manifest) = (read("CHANGELOG.md"), read("Cargo.toml"));
    let version = manifest.split("\nversion = \"").nth(1).unwrap().split('"').next().unwrap();
    let first = text.lines().find_map(|line| line.strip_prefix("## ")).unwrap_or_default();
    assert_eq!(first.split(' ').next().unwrap_or_default(), version);
}

#[test]
fn the_documents_quote_what_ci_runs() {
    let quoted = |page: &str, language: &str| {
        let (text, fence) = (read(page), format!("```{language}\n"));
        let blocks = text.split(&fence).skip(1);
        let blocks = blocks.filter_map(|rest| Some(rest.split("```").next()?.to_owned()));
        let blocks: Vec<_> = blocks.collect();
        assert!(!blocks.is_empty(), "{page} has no block in {language}");
        blocks
    };
    let pages = [
        ("README.md", "python", "py"),
        ("docs/start/python.md", "python", "py"),
        ("docs/start/suite.md", "python", "py"),
        ("docs/start/suite.md", "rust", "rs"),
        ("docs/start/suite.md", "ts", "ts"),
        ("docs/start/typescript.md", "ts", "ts"),
        ("docs/testing-python.md", "python", "py"),
        ("docs/testing-typescript.md", "ts", "ts"),
    ];
    let mut examples = all_files();
    examples.retain(|file| file.path.starts_with("examples/"));
    for (page, language, extension) in pages {
        let sources = examples.iter().filter(|file| file.has_extension(extension));
        for code in quoted(page, language) {
            let is_run = sources.clone().any(|source| source.text.contains(&code));
            assert!(is_run, "no example has these lines of {page}:\n{code}");
        }
    }
    let (steps, guide) = (quoted("README.md", "yaml").concat(), read("docs/testing.md"));
    assert!(guide.contains(&steps), "docs/testing.md has other steps than README.md");
    // `.ci/prove clients` runs what is in the pages of languages.
    let commands = quoted("docs/testing-python.md", "sh").concat();
    let command = guide.lines().find(|line| line.starts_with("parcelo-server mock ")).unwrap();
    assert!(commands.contains(command), "CI does not run {command}");
    assert!(steps.contains(&format!("- run: {command}\n")), "README.md lacks {command}");
}

#[test]
fn every_link_leads_to_an_existing_file_and_heading() {
    let mut dead = Vec::new();
    for source in all_files().into_iter().filter(|source| source.has_extension("md")) {
        for (at, _) in source.text.match_indices("](") {
            let link = source.text[at + 2..].split(')').next().unwrap_or_default();
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let folder = Path::new(&source.path).parent().unwrap();
            let file = if file.is_empty() { source.path.clone().into() } else { folder.join(file) };
            let found = root().join(&file).exists()
                && (anchor.is_empty()
                    || heading_anchors(&read(file.to_str().unwrap())).contains(anchor));
            dead.extend((!found).then(|| format!("{}: {link}", source.location(at))));
        }
    }
    assert_none("a link leads nowhere", &dead);
}

#[test]
fn the_site_has_every_page_once() {
    let summary = read("docs/SUMMARY.md");
    let mut pages = all_files();
    pages.retain(|file| file.path.starts_with("docs/") && file.has_extension("md"));
    let links =
        |page: &Source| summary.matches(&format!("({})", &page.path["docs/".len()..])).count();
    pages.retain(|page| page.path != "docs/SUMMARY.md" && links(page) != 1);
    let paths: Vec<_> = pages.into_iter().map(|page| page.path).collect();
    assert_none("docs/SUMMARY.md has no link, or several, to", &paths);
}

/// Returns the anchors of a document's headings, as GitHub generates them.
fn heading_anchors(text: &str) -> BTreeSet<String> {
    // Hidden lines of an example begin with # too.
    let prose = text.split("```").step_by(2);
    let headings = prose.flat_map(str::lines).filter(|line| line.starts_with('#'));
    let names = headings.map(|line| line.trim_start_matches('#').trim().to_lowercase());
    let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
    names.map(|name| name.chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

/// The last column of the tables in ARCHITECTURE.md names the tests and lints that fail.
#[test]
fn every_test_and_lint_named_in_the_architecture_exists() {
    let text = read("ARCHITECTURE.md");
    let sources = all_files()
        .into_iter()
        .filter(|source| source.has_extension("rs") || source.has_extension("toml"));
    let code: String = sources.map(|source| source.text).collect();
    let is_present = |keeper: &&str| {
        let found = |form: &str| code.contains(&form.replace("{}", keeper));
        ["fn {}()", "\n{} = "].into_iter().any(found)
    };
    let mut broken = Vec::new();
    for row in text.lines().filter(|line| line.starts_with("| ")) {
        let keepers = row.rsplit('|').nth(1).unwrap().split('`').skip(1).step_by(2);
        let keepers: Vec<_> = keepers
            .filter(|name| name.contains(['_', '-']) && !name.contains([' ', '/']))
            .collect();
        let missing: Vec<_> = keepers.iter().filter(|keeper| !is_present(keeper)).collect();
        let is_kept = !row.starts_with("| **I") || !keepers.is_empty();
        broken.extend((!is_kept || !missing.is_empty()).then(|| format!("{missing:?} of {row}")));
    }
    assert_none("an invariant or a step names no test or lint that exists", &broken);
}

/// The last column of the table of faults names a test of each.
#[test]
fn every_test_named_in_the_reliability_page_exists() {
    let (page, code) = (read("docs/reliability.md"), rust_code());
    let table = page.split("## Faults that this found").nth(1).unwrap().split("\n## ").next();
    let rows = table.unwrap().lines().filter(|line| line.starts_with("| ")).skip(1);
    let names = rows.map(|row| row.rsplit('|').nth(1).unwrap().trim().trim_matches('`'));
    let names: Vec<_> = names.collect();
    assert!(names.len() > 5, "the table was not read: {names:?}");
    let missing = names.into_iter().filter(|name| !code.contains(&format!("fn {name}(")));
    let missing: Vec<_> = missing.map(str::to_owned).collect();
    assert_none("docs/reliability.md names a test that does not exist", &missing);
}

/// `just breakages` shows that each is caught.
#[test]
fn every_breakage_applies() {
    let (mut patches, code) = (all_files(), rust_code());
    patches.retain(|source| source.has_extension("patch"));
    assert!(!patches.is_empty(), "the patches were not found");
    let mut broken = Vec::new();
    for Source { path, text } in &patches {
        let catcher = text.lines().next().unwrap().strip_prefix("# caught by: ").unwrap_or("");
        let test = catcher.split_once(' ').map(|(_, test)| format!("fn {test}("));
        let is_caught = catcher == "crash" || test.is_some_and(|test| code.contains(&test));
        broken.extend((!is_caught).then(|| format!("{path}: {catcher:?}")));
        let file = text.split("\n--- a/").nth(1).unwrap().lines().next().unwrap();
        let file = read(file);
        for hunk in text.split("\n@@").skip(1) {
            let lines = hunk.lines().skip(1).filter(|line| line.starts_with([' ', '-']));
            let before: String = lines.flat_map(|line| [&line[1..], "\n"]).collect();
            let places = file.matches(&before).count();
            broken.extend((places != 1).then(|| format!("{path}: {places} places of\n{before}")));
        }
    }
    assert_none(
        "a deliberate defect fits no single place of the code, or nothing catches it",
        &broken,
    );
}

fn rust_code() -> String {
    let sources = all_files().into_iter().filter(|source| source.has_extension("rs"));
    sources.map(|source| source.text).collect()
}

#[test]
fn the_architecture_names_every_folder_and_only_real_paths() {
    let page = read("ARCHITECTURE.md");
    let documents = page.clone() + &read("CONTRIBUTING.md");
    let top_folders = ["sdk/", "server/", "cli/", "tests/", "docs/", "examples/"];
    let is_path = |name: &&str| {
        top_folders.iter().any(|top| name.starts_with(top)) && !name.contains([' ', '…', '*'])
    };
    let paths = documents.split('`').skip(1).step_by(2).filter(is_path);
    let missing =
        paths.filter(|path| !root().join(path).exists()).map(|path| format!("missing: {path}"));
    let folders = rust_under(&[
        "sdk/src/",
        "sdk/types/",
        "server/domain/",
        "server/label/",
        "server/process/",
        "server/service/",
        "server/store/",
        "server/system/",
        "server/wire/",
        "cli/",
    ])
    .into_iter()
    .filter_map(|file| {
        let depth = if file.path.starts_with("cli/") { 2 } else { 3 };
        let parts: Vec<_> = file.path.split('/').collect();
        (parts.len() > depth).then(|| parts[..depth].join("/") + "/")
    });
    let folders: BTreeSet<_> = folders.collect();
    let unnamed = folders.iter().filter(|folder| !page.contains(&format!("`{folder}`")));
    let unnamed = unnamed.map(|folder| format!("not named: {folder}"));
    assert_none("ARCHITECTURE.md or CONTRIBUTING.md", &missing.chain(unnamed).collect::<Vec<_>>());
}
