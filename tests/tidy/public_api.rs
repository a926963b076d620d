//! The public API of the SDK and its vocabulary must equal the checked-in listings. A change can break programs that
//! use the crates, so a person reviews and accepts the difference. Each name has a single path, and few names are in
//! the crate's root.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::Command,
};

use public_api::Builder;

use super::{
    assert_none,
    imports::Crate,
    sources::{is_word, read, root},
};

/// The packages with a listing, which is not part of the package: its file, and the features for integrators.
const LISTINGS: [(&str, &str, &str); 2] = [
    ("parcelo-types", TYPES_LISTING, "getrandom"),
    ("parcelo", "sdk/public-api.txt", "blocking,gzip,http2,proptest,rustls,webhooks"),
];

const TYPES_LISTING: &str = "sdk/types/public-api.txt";

/// Writes the listings if `PARCELO_BLESS=1` is set.
#[test]
#[ignore = "needs the JSON of one version of rustdoc: `.ci/prove packages` runs it"]
fn the_public_api_matches_the_checked_in_listing() {
    for (package, file, features) in LISTINGS {
        check_listing(build_rustdoc_json(package, features), file);
    }
}

fn check_listing(json: PathBuf, file: &str) {
    let api = Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(false)
        .build();
    let api = api.unwrap_or_else(|error| {
        panic!("this rustdoc needs another version of public-api in Cargo.toml: {error}")
    });
    let items: Vec<_> = api.items().map(|item| format!("{item}\n")).collect();
    let listing = with_public_paths(&without_trait_items(items).concat(), &read(TYPES_LISTING));
    if std::env::var_os("PARCELO_BLESS").is_some() {
        fs::write(root().join(file), listing).unwrap();
        return;
    }
    let checked_in = read(file);
    let (old, new): (Vec<_>, Vec<_>) = (checked_in.lines().collect(), listing.lines().collect());
    let removed = old.iter().filter(|line| !new.contains(line)).map(|line| format!("- {line}"));
    let added = new.iter().filter(|line| !old.contains(line)).map(|line| format!("+ {line}"));
    let changed: Vec<_> = removed.chain(added).collect();
    assert_none(&format!("{file} is old: run `just bless`"), &changed);
}

/// Replaces the private modules in which the vocabulary defines its types by the paths of the vocabulary's listing.
fn with_public_paths(listing: &str, types: &str) -> String {
    const CRATE: &str = "parcelo_types::";
    let path_of = |text: &str| {
        let end = text.find(|c| !is_word(c) && c != ':').unwrap_or(text.len());
        text[..end].to_owned()
    };
    let name = |path: &str| path.rsplit("::").next().unwrap_or_default().to_owned();
    let declared = types.lines().filter_map(|line| {
        let kind = ["pub enum ", "pub struct ", "pub trait ", "pub type "];
        let path =
            kind.iter().find_map(|kind| line.split_once(kind)).map(|(_, rest)| path_of(rest));
        path.map(|path| (name(&path), path))
    });
    let public: BTreeMap<_, _> = declared.collect();
    let mut parts = listing.split(CRATE);
    let mut written = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let path = path_of(part);
        let public = public.get(&name(&path)).filter(|_| path.contains("::"));
        written += &public.cloned().unwrap_or_else(|| format!("{CRATE}{path}"));
        written += &part[path.len()..];
    }
    written
}

#[test]
fn types_of_the_vocabulary_have_their_public_paths() {
    let types = "#[non_exhaustive] pub struct parcelo_types::Parcel\npub type parcelo_types::model::Row<T> = X";
    let listing =
        "pub fn f(parcelo_types::model::order::Parcel) -> parcelo_types::model::lenient::Row<u8>";
    let expected = "pub fn f(parcelo_types::Parcel) -> parcelo_types::model::Row<u8>";
    assert_eq!(with_public_paths(listing, types), expected);
}

/// Reduces each trait implementation to its first line, because the trait determines its items. Free functions, type
/// aliases and constants that follow it in the listing are kept. `StructuralPartialEq` is dropped, because only
/// `derive(PartialEq)` can implement it.
fn without_trait_items(items: Vec<String>) -> Vec<String> {
    let mut last_implementor = None;
    let mut is_listed = |item: &String| {
        if let Some((_, implementor)) =
            item.strip_prefix("impl").and_then(|rest| rest.split_once(" for "))
        {
            last_implementor = Some(type_path(implementor).to_owned());
            return !item.contains("core::marker::StructuralPartialEq for ");
        }
        let part = ["pub fn ", "pub type ", "pub const "]
            .iter()
            .find_map(|prefix| item.strip_prefix(prefix));
        let Some(path) = part else {
            last_implementor = None;
            return true;
        };
        let is_trait_item = |implementor: &String| {
            let rest = path.strip_prefix(implementor.as_str());
            rest.is_some_and(|rest| rest.starts_with("::") || rest.starts_with('<'))
        };
        !last_implementor.as_ref().is_some_and(is_trait_item)
    };
    items.into_iter().filter(|item| is_listed(item)).collect()
}

/// Returns the type without generic parameters and bounds, since its items may omit them.
fn type_path(implementor: &str) -> &str {
    let end =
        if implementor.starts_with("parcelo") { ['<', ' ', '\n'].as_slice() } else { &['\n'] };
    implementor.split(end).next().unwrap_or_default()
}

#[test]
fn items_after_an_implementation_are_listed() {
    let items = [
        "pub struct parcelo::rules::Rejected",
        "pub fn parcelo::rules::Rejected::faults(&self)",
        "impl core::marker::StructuralPartialEq for parcelo::rules::Rejected",
        "impl<T> core::ops::deref::Deref for parcelo::rules::Rejected<T>",
        "pub type parcelo::rules::Rejected<T>::Target = T",
        "pub fn parcelo::rules::Rejected<T>::deref(&self) -> &T",
        "pub const parcelo::rules::PRINTABLE: &str",
        "pub fn parcelo::rules::check_order()",
        "pub type parcelo::rules::Row<T> = T",
    ];
    let listed = without_trait_items(items.map(|item| format!("{item}\n")).into());
    let kept = [0, 1, 3, 6, 7, 8].map(|index| format!("{}\n", items[index]));
    assert_eq!(listed, kept);
}

/// Builds a package's documentation as JSON. Stable rustdoc does this only with `RUSTC_BOOTSTRAP`. The variable is set
/// for rustdoc alone, because setting it for cargo and rustc would recompile everything.
fn build_rustdoc_json(package: &str, features: &str) -> PathBuf {
    let folder = tempfile::tempdir().unwrap();
    let rustdoc = folder.path().join("rustdoc");
    fs::write(&rustdoc, "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n").unwrap();
    fs::set_permissions(&rustdoc, fs::Permissions::from_mode(0o700)).unwrap();
    let target = root().join("target");
    let done = Command::new(env!("CARGO"))
        .args(["rustdoc", "--locked", "--package", package, "--lib", "--features", features])
        .arg("--target-dir")
        .arg(&target)
        .args(["--", "-Z", "unstable-options", "--output-format", "json"])
        .env("RUSTDOC", &rustdoc)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    target.join("doc").join(package.replace('-', "_") + ".json")
}

/// Maximum number of names in the crate's root, so that its documentation has a readable first page.
const MAX_ROOT_NAMES: usize = 50;

#[test]
fn every_sdk_item_has_a_single_path() {
    let sdk = Crate::in_repository("sdk/src/lib.rs");
    let types = Crate::in_repository("sdk/types/src/lib.rs");
    let crates: [(_, &[&[&str]]); 2] = [
        (&sdk, &[&[], &["calls"], &["transport"], &["blocking"], &["webhook"]]),
        (&types, &[&[], &["model"], &["rules"]]),
    ];
    let mut paths = BTreeMap::<_, Vec<_>>::new();
    for (krate, modules) in crates {
        for module in modules {
            for (name, origin) in krate.exports(module) {
                assert_ne!(name, "*", "the SDK exports names one by one: {origin:?}");
                paths.entry(origin).or_default().push(format!("{}::{name}", module.join("::")));
            }
        }
    }
    let twice = paths.into_values().filter(|places| places.len() > 1);
    assert_none(
        "a name of the SDK has two paths",
        &twice.map(|paths| paths.join(", ")).collect::<Vec<_>>(),
    );
    let names: BTreeSet<_> = sdk.exports(&[]).map(|(name, _)| name).collect();
    let count = names.len();
    assert!((20..=MAX_ROOT_NAMES).contains(&count), "{count} names are re-exported at the root");
    let hidden: Vec<_> = types.exports(&[]).filter(|(name, _)| !names.contains(name)).collect();
    assert!(hidden.is_empty(), "the SDK does not re-export {hidden:?} of its vocabulary");
}
