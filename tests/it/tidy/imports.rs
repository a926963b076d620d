//! Which file uses which. A file uses the file that holds the name it writes, in a `use` or in a path:
//! re-exports are followed, and a `pub use` alone is no use. `mod` lines, attributes, test code and the
//! bodies of `macro_rules!` do not count.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::{Kind, all, is_word, tokens};

/// A module of a crate: `["store", "group"]`; the crate's root is empty.
pub(super) type Path = Vec<String>;
/// The texts of files by their paths.
pub(super) type Files = BTreeMap<String, String>;
/// Which files each file uses.
pub(super) type Edges<'c> = BTreeMap<&'c str, BTreeSet<&'c str>>;

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

impl Crate {
    pub(super) fn in_repository(root: &str) -> Self {
        let files = all().into_iter().filter(|file| file.is("rs"));
        Self::new(root, &files.map(|file| (file.path, file.text)).collect())
    }

    pub(super) fn new(root: &str, files: &Files) -> Self {
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

    /// Each module's path and file.
    pub(super) fn files(&self) -> impl Iterator<Item = (&[String], &str)> {
        self.modules.iter().map(|(path, module)| (&**path, &*module.file))
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

    pub(super) fn edges(&self) -> Edges<'_> {
        let mut edges = Edges::new();
        for (file, name) in self.names() {
            if let Some(holder) = self.holder(&name).filter(|holder| *holder != file) {
                edges.entry(file).or_default().insert(holder);
            }
        }
        edges
    }
}

impl Module {
    fn mentions(&self, name: &str) -> bool {
        self.code.iter().any(|piece| piece.split("::").next() == Some(name))
    }
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
