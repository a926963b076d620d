//! Dependencies between files. A file depends on each file that defines a name in its `use` items and paths. Re-exports
//! are followed; a `pub use` alone is no dependency. `mod` lines, attributes, test code and the bodies of
//! `macro_rules!` are ignored.

use std::collections::{BTreeMap, BTreeSet};

use syn::{
    Attribute, Ident, ImplItemFn, Item, ItemMacro, ItemMod, ItemUse, Macro, UseTree, Visibility,
    visit::{self, Visit},
};

use super::sources::{all_files, is_word};

/// The path of a module in its crate, such as `["store", "group"]`; that of the root is empty.
pub(super) type Path = Vec<String>;
/// The contents of files by path.
pub(super) type Files = BTreeMap<String, String>;
/// The files that each file depends on.
pub(super) type Edges<'c> = BTreeMap<&'c str, BTreeSet<&'c str>>;

/// The modules of a crate, with the names that each defines, imports and uses.
pub(super) struct Crate {
    modules: BTreeMap<Path, Module>,
}

#[derive(Default)]
struct Module {
    file: String,
    items: BTreeSet<String>,
    uses: Vec<Use>,
    /// The paths outside `use` items.
    paths: Vec<Path>,
    children: Vec<ItemMod>,
}

struct Use {
    name: String,
    path: Path,
    visibility: Visibility,
}

impl Crate {
    /// Reads the crate in the working tree whose root file is `root`.
    pub(super) fn in_repository(root: &str) -> Self {
        let files = all_files().into_iter().filter(|file| file.has_extension("rs"));
        Self::new(root, &files.map(|file| (file.path, file.text)).collect())
    }

    pub(super) fn new(root: &str, files: &Files) -> Self {
        let mut this = Self { modules: BTreeMap::new() };
        this.read_file(&[], root, root.rsplit_once('/').unwrap().0, files);
        this
    }

    fn read_file(&mut self, path: &[String], file: &str, folder: &str, files: &Files) {
        let code = syn::parse_file(&files[file]).unwrap_or_else(|error| panic!("{file}: {error}"));
        self.read_module(path, file, (folder, files), &code.items);
    }

    fn read_module(
        &mut self,
        path: &[String],
        file: &str,
        (folder, files): (&str, &Files),
        items: &[Item],
    ) {
        let mut module = Module { file: file.to_owned(), ..Module::default() };
        for item in items {
            module.items.extend(attributes_and_name(item).1.map(ToString::to_string));
            module.visit_item(item);
        }
        for child in std::mem::take(&mut module.children) {
            let inner = [path, &[child.ident.to_string()]].concat();
            let child_folder = format!("{folder}/{}", child.ident);
            if let Some((_, items)) = child.content {
                self.read_module(&inner, file, (&child_folder, files), &items);
                continue;
            }
            let candidates = [format!("{child_folder}.rs"), format!("{child_folder}/mod.rs")];
            if let Some(file) = candidates.iter().find(|file| files.contains_key(*file)) {
                self.read_file(&inner, file, &child_folder, files);
            }
        }
        self.modules.insert(path.to_vec(), module);
    }

    /// Resolves a path to the full path of the item in the module that defines it, such as `crate::a::Item`. A path
    /// into another crate is returned unchanged. `steps` limits the re-exports that are followed.
    fn resolve(&self, from: &[String], path: &[String], steps: u8) -> Path {
        let head = path.first().map_or("", String::as_str);
        let known = matches!(head, "crate" | "self" | "super") || self.is_known(from, head);
        let Some(steps) = steps.checked_sub(1).filter(|_| known) else { return path.to_vec() };
        let mut at = if head == "crate" { Path::new() } else { from.to_vec() };
        let mut rest = &path[usize::from(matches!(head, "crate" | "self"))..];
        while let [name, more @ ..] = rest {
            if name == "super" {
                at.pop();
            } else if self.child(&at, name).is_some() {
                at.push(name.clone());
            } else if let Some(found) = self.find_use(&at, name) {
                return self.resolve(&at, &[&found.path, more].concat(), steps);
            } else {
                break;
            }
            rest = more;
        }
        [&["crate".to_owned()], &*at, rest].concat()
    }

    /// Returns `true` if a path may start with this name: that of a child module, or one imported by a `use`.
    fn is_known(&self, module: &[String], name: &str) -> bool {
        self.child(module, name).is_some()
            || self.find_use(module, name).is_some_and(|found| found.path != [name])
    }

    fn child(&self, module: &[String], name: &str) -> Option<&Module> {
        self.modules.get(&[module, &[name.to_owned()]].concat())
    }

    fn find_use(&self, module: &[String], name: &str) -> Option<&Use> {
        let module = self.modules.get(module).filter(|module| !module.items.contains(name))?;
        module.uses.iter().find(|found| found.name == name)
    }

    /// Returns the path and file of each module.
    pub(super) fn files(&self) -> impl Iterator<Item = (&[String], &str)> {
        self.modules.iter().map(|(path, module)| (&**path, &*module.file))
    }

    /// Returns the file that defines a resolved name; `None` for a module and for a name from another crate.
    fn defining_file(&self, name: &[String]) -> Option<&str> {
        let path = name.strip_prefix(&["crate".to_owned()])?;
        let module = (0..path.len()).rev().find_map(|end| self.modules.get(&path[..end]))?;
        (!self.modules.contains_key(path)).then_some(&module.file)
    }

    /// Returns each file with each name that it uses, resolved.
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, Path)> {
        self.modules.iter().flat_map(move |(path, module)| {
            let is_private = |found: &&Use| matches!(found.visibility, Visibility::Inherited);
            let uses = module.uses.iter();
            let uses = uses.filter(move |found| is_private(found) || module.mentions(&found.name));
            let paths = module.paths.iter().filter(|path| path.len() > 1);
            let names = uses.map(|found| &found.path).chain(paths);
            names.map(move |name| (&*module.file, self.resolve(path, name, 16)))
        })
    }

    /// Returns each name that this module re-exports with `pub use`, and its resolved path.
    pub(super) fn exports(&self, module: &[&str]) -> impl Iterator<Item = (&str, Path)> {
        let path: Path = module.iter().map(|part| (*part).to_owned()).collect();
        let uses = self.modules[&path].uses.iter();
        let uses = uses.filter(|found| matches!(found.visibility, Visibility::Public(_)));
        uses.map(move |found| (&*found.name, self.resolve(&path, &found.path, 16)))
    }

    pub(super) fn edges(&self) -> Edges<'_> {
        let mut edges = Edges::new();
        for (file, name) in self.names() {
            if let Some(defining_file) =
                self.defining_file(&name).filter(|defining_file| *defining_file != file)
            {
                edges.entry(file).or_default().insert(defining_file);
            }
        }
        edges
    }
}

impl Module {
    fn mentions(&self, name: &str) -> bool {
        self.paths.iter().any(|path| path[0] == name)
    }

    /// Adds the names of a `use` tree such as `a::{self, b::C as D}`.
    fn add_uses(&mut self, tree: &UseTree, prefix: &[String], visibility: &Visibility) {
        let (last, alias) = match tree {
            UseTree::Path(path) => {
                let prefix = [prefix, &[path.ident.to_string()]].concat();
                return self.add_uses(&path.tree, &prefix, visibility);
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.add_uses(tree, prefix, visibility));
            }
            UseTree::Name(name) => (name.ident.to_string(), None),
            UseTree::Rename(name) => (name.ident.to_string(), Some(name.rename.to_string())),
            UseTree::Glob(_) => ("*".to_owned(), None),
        };
        let mut path = prefix.to_vec();
        path.extend((last != "self").then_some(last));
        let name = alias.unwrap_or_else(|| path[path.len() - 1].clone());
        self.uses.push(Use { name, path, visibility: visibility.clone() });
    }
}

impl<'c> Visit<'c> for Module {
    fn visit_item(&mut self, item: &'c Item) {
        if !is_for_tests(attributes_and_name(item).0) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'c ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_mod(&mut self, module: &'c ItemMod) {
        self.children.push(module.clone());
    }

    fn visit_item_use(&mut self, item: &'c ItemUse) {
        let prefix = item.leading_colon.is_some().then(String::new);
        self.add_uses(&item.tree, prefix.as_slice(), &item.vis);
    }

    fn visit_path(&mut self, path: &'c syn::Path) {
        if path.leading_colon.is_none() {
            self.paths.push(path.segments.iter().map(|part| part.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    /// Reads the paths in a macro's arguments, which syn leaves as tokens.
    fn visit_macro(&mut self, macro_call: &'c Macro) {
        self.visit_path(&macro_call.path);
        let tokens = macro_call.tokens.to_string().replace(" :: ", "::");
        for piece in
            tokens.split(|c| !is_word(c) && c != ':').filter(|piece| piece.starts_with(is_word))
        {
            self.paths.push(piece.split("::").map(str::to_owned).collect());
        }
    }

    fn visit_item_macro(&mut self, item: &'c ItemMacro) {
        if item.ident.is_none() {
            self.visit_macro(&item.mac);
        }
    }

    fn visit_attribute(&mut self, _: &'c Attribute) {}
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<Ident>().is_ok_and(|condition| condition == "test")
    })
}

/// Returns the attributes of an item, and its name if a `use` can import it.
fn attributes_and_name(item: &Item) -> (&[Attribute], Option<&Ident>) {
    match item {
        Item::Const(item) => (&item.attrs, Some(&item.ident)),
        Item::Enum(item) => (&item.attrs, Some(&item.ident)),
        Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
        Item::Impl(item) => (&item.attrs, None),
        Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
        Item::Mod(item) => (&item.attrs, None),
        Item::Static(item) => (&item.attrs, Some(&item.ident)),
        Item::Struct(item) => (&item.attrs, Some(&item.ident)),
        Item::Trait(item) => (&item.attrs, Some(&item.ident)),
        Item::Type(item) => (&item.attrs, Some(&item.ident)),
        Item::Use(item) => (&item.attrs, None),
        _ => (&[], None),
    }
}
