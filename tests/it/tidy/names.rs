//! Where others find the names of the SDK: each in one place, and few of them at the root.

use std::collections::BTreeMap;

use super::{
    assert_none,
    sources::{mask, read},
};

/// Public modules, by the file in which their names stand.
const PUBLIC: &[(&str, &str)] = &[
    ("sdk/src/blocking/mod.rs", "blocking"),
    ("sdk/src/lib.rs", ""),
    ("sdk/src/model/mod.rs", "model"),
    ("sdk/src/rules/mod.rs", "rules"),
    ("sdk/src/webhook/mod.rs", "webhook"),
];

/// What a reader of the first page can take in.
const ROOT: usize = 50;

#[test]
fn every_name_of_the_sdk_has_one_path() {
    let mut paths: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut globs = Vec::new();
    for (file, module) in PUBLIC {
        for item in exported(file) {
            if item.origin.ends_with('*') {
                globs.push(format!("{file}: pub use {}", item.origin));
            }
            let origin = origin(module, &item.origin);
            paths.entry(origin).or_default().push(format!("{module}::{}", item.inside));
        }
    }
    assert_none("the SDK exports names one by one", &globs);
    let twice: Vec<_> = paths
        .iter()
        .filter(|(_, places)| places.len() > 1)
        .map(|(name, places)| format!("{name}: {}", places.join(", ")))
        .collect();
    assert_none("a name of the SDK can be reached by one path only", &twice);
}

#[test]
fn the_root_of_the_sdk_is_short_enough_to_read() {
    let root = exported("sdk/src/lib.rs").into_iter().filter(|item| item.inside.is_empty());
    let names = root.count();
    assert!((20..=ROOT).contains(&names), "{names} names are re-exported at the root");
}

/// A name that a file re-exports for others.
struct Exported {
    /// Where it comes from, as the file says.
    origin: String,
    /// The module within the file that it stands in; empty for the file's own.
    inside: String,
}

/// What the `pub use` of a file export.
fn exported(file: &str) -> Vec<Exported> {
    let (mut found, mut inside, mut open) = (Vec::new(), String::new(), None::<String>);
    for line in mask(&read(file)).lines() {
        if let Some(module) = line.strip_prefix("pub mod ").and_then(|it| it.strip_suffix(" {")) {
            module.clone_into(&mut inside);
        } else if line == "}" {
            inside.clear();
        }
        match (&mut open, line.trim().strip_prefix("pub use ")) {
            (Some(tree), _) => tree.push_str(line.trim()),
            (None, Some(tree)) => open = Some(tree.to_owned()),
            (None, None) => {}
        }
        if let Some(tree) = open.take_if(|tree| tree.ends_with(';')) {
            let tree: String = tree.trim_end_matches(';').split_whitespace().collect();
            let item = |origin| Exported { origin, inside: inside.clone() };
            found.extend(leaves("", &tree).map(item));
        }
    }
    found
}

/// The names of `a::{B, c::D}`: `a::B`, `a::c::D`.
fn leaves<'t>(prefix: &str, tree: &'t str) -> Box<dyn Iterator<Item = String> + 't> {
    let Some((head, group)) = tree.split_once('{') else {
        return Box::new(std::iter::once(format!("{prefix}{tree}")));
    };
    let (prefix, group) = (format!("{prefix}{head}"), group.strip_suffix('}').unwrap_or(group));
    let mut depth = 0;
    let parts = group.split(move |c| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    });
    Box::new(parts.filter(|part| !part.is_empty()).flat_map(move |part| leaves(&prefix, part)))
}

/// One spelling for what a module calls `a::B`, and others `crate::module::a::B`.
fn origin(module: &str, path: &str) -> String {
    match path.strip_prefix("crate::") {
        Some(path) => path.to_owned(),
        None if module.is_empty() => path.to_owned(),
        None => format!("{module}::{path}"),
    }
}
