//! Import cycles between files: a reader would have to understand all files of a cycle at once.
//!
//! A parent module and its children may import one another, because the parent holds what they share and combines the
//! parts. A cycle is forbidden unless it includes the file of the innermost module that contains all its files: `a.rs`
//! → `mod.rs` → `b.rs` → `a.rs` is allowed, `a.rs` → `b.rs` → `a.rs` is not.

use std::collections::BTreeMap;

use super::{
    CRATES, assert_none,
    imports::{Crate, Edges, Files},
};

#[test]
fn files_do_not_import_one_another_in_cycles() {
    let mut violations = Vec::new();
    for root in CRATES {
        let repository = Crate::in_repository(root);
        let cycles = find_cycles(&repository);
        violations
            .extend(cycles.iter().map(|cycle| format!("{} → {}", cycle.join(" → "), cycle[0])));
    }
    assert_none("files use one another in a cycle", &violations);
}

/// Returns cycles that have no file in common, shortest first.
fn find_cycles(krate: &Crate) -> Vec<Vec<&str>> {
    let (edges, mut cycles) = (krate.edges(), Vec::new());
    for (scope, parent) in krate.files() {
        let below = krate.files().filter(|(path, file)| {
            path.len() > scope.len() && path.starts_with(scope) && *file != parent
        });
        let mut branches: Branches =
            below.map(|(path, file)| (file, &*path[scope.len()])).collect();
        while let Some(cycle) = shortest_cycle(&edges, &branches) {
            branches.retain(|file, _| !cycle.contains(file));
            cycles.push(cycle);
        }
    }
    cycles
}

/// The files below a module, each with the child module that contains it.
type Branches<'c> = BTreeMap<&'c str, &'c str>;

/// Returns the shortest cycle that leads from one child module to another.
fn shortest_cycle<'c>(edges: &Edges<'c>, branches: &Branches<'c>) -> Option<Vec<&'c str>> {
    let crossings = branches.iter().flat_map(|(file, branch)| {
        let used = edges.get(file).into_iter().flatten();
        let used =
            used.filter(move |used| branches.get(**used).is_some_and(|other| other != branch));
        used.map(move |used| (*file, *used))
    });
    let cycles = crossings.filter_map(|(last, first)| {
        let predecessors = predecessors(edges, branches, first);
        let mut cycle = vec![last];
        while cycle[cycle.len() - 1] != first {
            cycle.push(predecessors.get(cycle[cycle.len() - 1])?);
        }
        // The cycle starts at `last`, in the direction of the imports.
        cycle[1..].reverse();
        Some(cycle)
    });
    cycles.min_by_key(Vec::len)
}

/// Returns the files that can be reached from `from`, each with its predecessor on a shortest path.
fn predecessors<'c>(
    edges: &Edges<'c>,
    within: &Branches<'c>,
    from: &'c str,
) -> BTreeMap<&'c str, &'c str> {
    let (mut before, mut next) = (BTreeMap::from([(from, from)]), vec![from]);
    while !next.is_empty() {
        for file in std::mem::take(&mut next) {
            for used in edges.get(file).into_iter().flatten() {
                if within.contains_key(used) && !before.contains_key(used) {
                    before.insert(used, file);
                    next.push(used);
                }
            }
        }
    }
    before
}

/// Returns the cycles in a crate with these files. `mod` lines are added for the files in `src`.
fn find_cycles_in(files: &[(&str, &str)]) -> Vec<String> {
    let files: Files =
        files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    let krate = Crate::new("src/lib.rs", &files);
    find_cycles(&krate).into_iter().map(|cycle| cycle.join(" ")).collect()
}

#[test]
fn a_cycle_is_found_in_every_notation() {
    let table = [
        ("use crate::b::B; pub struct A;", "use crate::a::A; pub struct B;"),
        ("use super::{b::{self, B as C}}; pub struct A;", "pub struct B; fn f() { crate::a::A; }"),
        ("pub struct A; fn f() { use crate::b; b::g() }", "pub fn g(_: super::a::A) {}"),
        ("pub struct A; use crate::B;", "pub struct B; use crate::a::*;"),
        (
            "pub struct A; mod x { use crate::b::B; }",
            "pub struct B; macro_rules! m {} use crate::a::A;",
        ),
    ];
    for (a, b) in table {
        let files =
            [("src/lib.rs", "mod a; mod b; pub use b::B;"), ("src/a.rs", a), ("src/b.rs", b)];
        assert_eq!(find_cycles_in(&files), ["src/a.rs src/b.rs"], "{a} {b}");
    }
}

#[test]
fn acyclic_imports_pass() {
    let parent = ("src/lib.rs", "mod a; mod b; pub use b::B; pub struct P; fn f() { a::A; }");
    let table = [
        // Imports in one direction only. The other direction occurs in a test, a comment, a string, an attribute or the
        // body of a macro.
        (
            "use crate::B; pub struct A;",
            "pub struct B; #[cfg(test)] mod tests { use crate::a::A; }",
        ),
        (
            "use crate::B; pub struct A;",
            "pub struct B; // use crate::a::A;\nconst C: &str = \"crate::a::A\";",
        ),
        (
            "use crate::B; pub struct A;",
            "pub struct B; #[x(crate::a::A)] macro_rules! m { () => { crate::a::A } }",
        ),
        // A child and its parent, and two children that import each other through the parent.
        ("use crate::P; pub struct A;", "pub struct B;"),
        ("use super::P; pub struct A;", "use crate::a::A; pub struct B;"),
        // Names from other crates.
        ("use b::B; pub struct A;", "use ::a::A; pub struct B;"),
    ];
    for (a, b) in table {
        assert_eq!(find_cycles_in(&[parent, ("src/a.rs", a), ("src/b.rs", b)]), [""; 0], "{a} {b}");
    }
}

#[test]
fn a_cycle_between_folders_is_found_through_a_parent() {
    let cycles = find_cycles_in(&[
        ("src/lib.rs", "mod a; mod b;"),
        ("src/a/mod.rs", "mod c; pub struct A; use crate::b::B;"),
        ("src/a/c.rs", "use super::A; pub struct C;"),
        ("src/b.rs", "pub struct B; use crate::a::c::C;"),
    ]);
    assert_eq!(cycles, ["src/a/mod.rs src/b.rs src/a/c.rs"]);
}
