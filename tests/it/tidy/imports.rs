//! Which file uses which. A file uses the file that holds the name it writes, in a `use` or in a path:
//! re-exports are followed, and a `pub use` alone is no use. `mod` lines, attributes, test code and the
//! bodies of `macro_rules!` do not count.
//!
//! A parent module and its children may use one another: the parent holds what they share and puts the
//! parts together. So a ring is a fault unless the file of the innermost module around all its files is
//! one of them: `a.rs` → `mod.rs` → `b.rs` → `a.rs` is allowed, `a.rs` → `b.rs` → `a.rs` is not.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    assert_none,
    sources::{Kind, all, is_word, tokens},
};

/// A module of a crate: `["store", "group"]`; the crate's root is empty.
type Path = Vec<String>;
/// The texts of files by their paths.
type Files = BTreeMap<String, String>;
/// Which files each file uses.
type Edges<'c> = BTreeMap<&'c str, BTreeSet<&'c str>>;

pub(super) struct Crate {
    modules: BTreeMap<Path, Module>,
}

#[derive(Default)]
struct Module {
    file: String,
    items: BTreeSet<String>,
    uses: Vec<Use>,
    /// What stands outside `use` and `mod`: paths in one piece, other tokens one by one.
    code: Vec<String>,
}

struct Use {
    name: String,
    path: Path,
    /// `pub`, `pub(…)`, or empty.
    visibility: String,
}

/// How many rings are left in each crate: may only become fewer.
const LEFT: &[(&str, usize)] =
    &[("sdk/src/lib.rs", 4), ("cli/main.rs", 4), ("server/src/lib.rs", 9)];

#[test]
fn files_do_not_import_one_another_in_rings() {
    for (root, left) in LEFT {
        let repository = Crate::in_repository(root);
        let rings = repository.rings().into_iter().map(|(ring, knot)| {
            format!("{} → {} ({knot} files in the knot)", ring.join(" → "), ring[0])
        });
        let rings: Vec<_> = rings.collect();
        let found = if rings.len() > *left { rings } else { Vec::new() };
        assert_none(&format!("more than {left} rings of files that use one another"), &found);
    }
}

impl Crate {
    pub(super) fn in_repository(root: &str) -> Self {
        let files = all().into_iter().filter(|file| file.is("rs"));
        Self::new(root, &files.map(|file| (file.path, file.text)).collect())
    }

    fn new(root: &str, files: &Files) -> Self {
        let mut new = Self { modules: BTreeMap::new() };
        new.read_file(&[], root, root.rsplit_once('/').unwrap().0, files);
        new
    }

    fn read_file(&mut self, path: &[String], file: &str, folder: &str, files: &Files) {
        let code = tokens(&files[file]).into_iter();
        let code = code.filter(|(_, kind, _)| matches!(kind, Kind::Word | Kind::Sign));
        let code = without_tests_and_attributes(&code.map(|(_, _, text)| text).collect::<Vec<_>>());
        self.read_module(path, file, (folder, files), &code);
    }

    fn read_module(&mut self, path: &[String], file: &str, place: (&str, &Files), code: &[&str]) {
        let mut module = Module { file: file.to_owned(), ..Module::default() };
        let (mut at, mut depth) = (0, 0_usize);
        while at < code.len() {
            let end = match &code[at..] {
                ["mod", name, ";" | "{", ..] => {
                    let end = group_end(code, at + 2);
                    let inner = [path, &[(*name).to_owned()]].concat();
                    self.read_child(&inner, file, place, &code[at + 2..end]);
                    end
                }
                ["use", next, ..] if *next != "<" => {
                    let end = at + code[at..].iter().position(|token| *token == ";").unwrap();
                    let visibility = match code[..at] {
                        [.., "pub"] => "pub",
                        [.., ")"] => "pub(…)",
                        _ => "",
                    };
                    module.uses.extend(uses(&code[at + 1..end], visibility));
                    end + 1
                }
                ["macro_rules", "!", name, ..] => {
                    module.items.insert((*name).to_owned());
                    group_end(code, at + 3)
                }
                [token, rest @ ..] => {
                    depth = (depth + usize::from(*token == "{")) - usize::from(*token == "}");
                    if depth == 0 && is_item(token) {
                        module.items.extend(rest.first().map(|name| (*name).to_owned()));
                    }
                    push_code(&mut module.code, token);
                    at + 1
                }
                [] => break,
            };
            at = end;
        }
        self.modules.insert(path.to_vec(), module);
    }

    /// A child module: `; ` when it has a file of its own, otherwise `{ … }`.
    fn read_child(&mut self, path: &[String], file: &str, place: (&str, &Files), body: &[&str]) {
        let folder = format!("{}/{}", place.0, path.last().unwrap());
        if let ["{", inner @ .., "}"] = body {
            return self.read_module(path, file, (&folder, place.1), inner);
        }
        let files = [format!("{folder}.rs"), format!("{folder}/mod.rs")];
        if let Some(file) = files.iter().find(|file| place.1.contains_key(*file)) {
            self.read_file(path, file, &folder, place.1);
        }
    }

    /// What a path names, from the root on and by the module that holds it: `crate::a::Item`. A path into
    /// another crate stays as it is.
    fn resolve(&self, from: &[String], path: &[String], steps: u8) -> Path {
        let head = path.first().map_or("", String::as_str);
        let known = matches!(head, "crate" | "self" | "super") || self.knows(from, head);
        let Some(steps) = steps.checked_sub(1).filter(|_| known) else { return path.to_vec() };
        let mut at = if head == "crate" { Path::new() } else { from.to_vec() };
        let mut rest = &path[usize::from(matches!(head, "crate" | "self"))..];
        while let [name, more @ ..] = rest {
            if name == "super" {
                at.pop();
            } else if self.child(&at, name).is_some() {
                at.push(name.clone());
            } else if let Some(found) = self.imported(&at, name) {
                return self.resolve(&at, &[&found.path, more].concat(), steps);
            } else {
                break;
            }
            rest = more;
        }
        [&["crate".to_owned()], &*at, rest].concat()
    }

    /// Whether a path may start with this name: a child module, or a name that a `use` brought.
    fn knows(&self, module: &[String], name: &str) -> bool {
        self.child(module, name).is_some()
            || self.imported(module, name).is_some_and(|found| found.path != [name])
    }

    fn child(&self, module: &[String], name: &str) -> Option<&Module> {
        self.modules.get(&[module, &[name.to_owned()]].concat())
    }

    fn imported(&self, module: &[String], name: &str) -> Option<&Use> {
        let module = self.modules.get(module).filter(|module| !module.items.contains(name))?;
        module.uses.iter().find(|found| found.name == name)
    }

    /// The file that holds a resolved name; none for a module itself and for another crate's name.
    fn holder(&self, name: &[String]) -> Option<&str> {
        let path = name.strip_prefix(&["crate".to_owned()])?;
        let module = (0..path.len()).rev().find_map(|end| self.modules.get(&path[..end]))?;
        (!self.modules.contains_key(path)).then_some(&module.file)
    }

    /// Each file and the names that it uses, resolved.
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, Path)> {
        self.modules.iter().flat_map(move |(path, module)| {
            let uses = module
                .uses
                .iter()
                .filter(|found| found.visibility.is_empty() || module.mentions(&found.name));
            let paths = module.code.iter().filter(|piece| piece.contains("::")).map(|piece| {
                piece
                    .split("::")
                    .take_while(|part| part.starts_with(is_word))
                    .map(str::to_owned)
                    .collect()
            });
            let written = uses.map(|found| found.path.clone()).chain(paths);
            written.map(move |name| (&*module.file, self.resolve(path, &name, 16)))
        })
    }

    /// Each name that others can reach by `pub use` of this module, resolved.
    pub(super) fn exports(&self, module: &[&str]) -> impl Iterator<Item = (&str, Path)> {
        let path: Path = module.iter().map(|part| (*part).to_owned()).collect();
        let uses = self.modules[&path].uses.iter().filter(|found| found.visibility == "pub");
        uses.map(move |found| (&*found.name, self.resolve(&path, &found.path, 16)))
    }

    fn edges(&self) -> Edges<'_> {
        let mut edges = Edges::new();
        for (file, name) in self.names() {
            if let Some(holder) = self.holder(&name).filter(|holder| *holder != file) {
                edges.entry(file).or_default().insert(holder);
            }
        }
        edges
    }

    /// One ring of each knot of files that use one another, with the size of the knot.
    fn rings(&self) -> Vec<(Vec<&str>, usize)> {
        let (edges, mut rings) = (self.edges(), Vec::new());
        for (scope, parent) in &self.modules {
            // Backwards, so that a file's own module comes last, after those that stand within it.
            let below = self.modules.iter().rev().filter(|(path, module)| {
                path.len() > scope.len() && path.starts_with(scope) && module.file != parent.file
            });
            let mut branches: Branches =
                below.map(|(path, module)| (&*module.file, &*path[scope.len()])).collect();
            while let Some(ring) = shortest_ring(&edges, &branches) {
                let reached: Vec<_> = ways(&edges, &branches, ring[0]).into_keys().collect();
                let knot: BTreeSet<_> = reached
                    .into_iter()
                    .filter(|file| ways(&edges, &branches, file).contains_key(ring[0]))
                    .collect();
                branches.retain(|file, _| !knot.contains(file));
                rings.push((ring, knot.len()));
            }
        }
        rings
    }
}

impl Module {
    fn mentions(&self, name: &str) -> bool {
        self.code.iter().any(|piece| piece.split("::").next() == Some(name))
    }
}

/// The files below a module, each with the child module that it belongs to.
type Branches<'c> = BTreeMap<&'c str, &'c str>;

/// The shortest ring that leads from one child module to another.
fn shortest_ring<'c>(edges: &Edges<'c>, branches: &Branches<'c>) -> Option<Vec<&'c str>> {
    let crossings = branches.iter().flat_map(|(file, branch)| {
        let used = edges.get(file).into_iter().flatten();
        let used =
            used.filter(move |used| branches.get(**used).is_some_and(|other| other != branch));
        used.map(move |used| (*file, *used))
    });
    let rings = crossings.filter_map(|(last, first)| {
        let ways = ways(edges, branches, first);
        let mut ring = vec![last];
        while ring[ring.len() - 1] != first {
            ring.push(ways.get(ring[ring.len() - 1])?);
        }
        // From `last` on, in the order of uses.
        ring[1..].reverse();
        Some(ring)
    });
    rings.min_by_key(Vec::len)
}

/// The files that a file leads to, each with the one before it on a shortest way.
fn ways<'c>(edges: &Edges<'c>, within: &Branches<'c>, from: &'c str) -> BTreeMap<&'c str, &'c str> {
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

fn without_tests_and_attributes<'c>(code: &[&'c str]) -> Vec<&'c str> {
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < code.len() {
        match &code[at..] {
            ["#", "!", "[", ..] => at = group_end(code, at + 2),
            ["#", "[", attribute @ ..] => {
                at = group_end(code, at + 1);
                if attribute.starts_with(&["cfg", "(", "test", ")"]) {
                    while code.get(at) == Some(&"#") {
                        at = group_end(code, at + 1);
                    }
                    let mut is_within = true;
                    while is_within && at < code.len() {
                        is_within = !matches!(code[at], ";" | "{" | ",");
                        at = group_end(code, at);
                    }
                }
            }
            _ => {
                kept.push(code[at]);
                at += 1;
            }
        }
    }
    kept
}

/// The place after the group that opens here, or after this token if none does.
fn group_end(code: &[&str], start: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in code.iter().enumerate().skip(start) {
        depth += usize::from(matches!(*token, "(" | "[" | "{"));
        depth = depth.saturating_sub(usize::from(matches!(*token, ")" | "]" | "}")));
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

fn is_item(token: &str) -> bool {
    matches!(token, "struct" | "enum" | "union" | "fn" | "trait" | "type" | "const" | "static")
}

/// Joins the parts of a path into one piece.
fn push_code(code: &mut Vec<String>, token: &str) {
    match code.last_mut() {
        Some(last) if token == "::" || last.ends_with("::") => last.push_str(token),
        _ => code.push(token.to_owned()),
    }
}

/// The names of `a::{self, b::C as D}`.
fn uses(tree: &[&str], visibility: &str) -> Vec<Use> {
    let tree: Vec<_> = tree.iter().map(|part| if *part == "as" { " as " } else { part }).collect();
    let mut leaves = Vec::new();
    collect_leaves("", &tree.concat(), &mut leaves);
    let leaves = leaves.iter().map(|leaf| {
        let (path, alias) =
            leaf.split_once(" as ").map_or((&**leaf, None), |(path, alias)| (path, Some(alias)));
        let path: Path = path.trim_end_matches("::self").split("::").map(str::to_owned).collect();
        let name = alias.map_or_else(|| path[path.len() - 1].clone(), str::to_owned);
        Use { name, path, visibility: visibility.to_owned() }
    });
    leaves.collect()
}

fn collect_leaves(before: &str, tree: &str, leaves: &mut Vec<String>) {
    let Some((head, group)) = tree.split_once('{') else {
        return leaves.extend((!tree.is_empty()).then(|| format!("{before}{tree}")));
    };
    let mut depth = 0;
    let parts = group.strip_suffix('}').unwrap_or(group).split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    for part in parts {
        collect_leaves(&format!("{before}{head}"), part, leaves);
    }
}

/// A crate of made-up files: `mod` lines are added for those in `src`.
fn rings_of(files: &[(&str, &str)]) -> Vec<String> {
    let files: Files =
        files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    let made = Crate::new("src/lib.rs", &files);
    made.rings().into_iter().map(|(ring, _)| ring.join(" ")).collect()
}

#[test]
fn a_ring_is_found_however_it_is_written() {
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
        assert_eq!(rings_of(&files), ["src/a.rs src/b.rs"], "{a} {b}");
    }
}

#[test]
fn what_is_no_ring_is_not_taken_for_one() {
    let parent = ("src/lib.rs", "mod a; mod b; pub use b::B; pub struct P; fn f() { a::A; }");
    let table = [
        // One direction; the other in a test, a comment, a text, an attribute or a macro's body.
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
        // A child and its parent, and two children through it.
        ("use crate::P; pub struct A;", "pub struct B;"),
        ("use super::P; pub struct A;", "use crate::a::A; pub struct B;"),
        // The names of other crates.
        ("use b::B; pub struct A;", "use ::a::A; pub struct B;"),
    ];
    for (a, b) in table {
        assert_eq!(rings_of(&[parent, ("src/a.rs", a), ("src/b.rs", b)]), [""; 0], "{a} {b}");
    }
}

#[test]
fn a_ring_between_folders_is_found_through_a_parent_of_one() {
    let rings = rings_of(&[
        ("src/lib.rs", "mod a; mod b;"),
        ("src/a/mod.rs", "mod c; pub struct A; use crate::b::B;"),
        ("src/a/c.rs", "use super::A; pub struct C;"),
        ("src/b.rs", "pub struct B; use crate::a::c::C;"),
    ]);
    assert_eq!(rings, ["src/a/mod.rs src/b.rs src/a/c.rs"]);
}
