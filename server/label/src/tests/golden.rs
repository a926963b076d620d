//! Compares labels byte for byte with the golden files in `docs/labels`, so that a change to the drawing is noticed.
//!
//! `PARCELO_BLESS=1 cargo test -p parcelo-label golden_labels` writes them.

use std::{fs, path::PathBuf};

use parcelo_types::LabelFormat;

use super::{super::draw, corpus};

fn docs(folder: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs")).join(folder)
}

/// Compares drawn files with the golden files in a folder of `docs`, or writes them if `PARCELO_BLESS` is set.
pub(super) fn assert_golden(folder: &str, drawn: impl Iterator<Item = (String, Vec<u8>)>) {
    let bless = std::env::var_os("PARCELO_BLESS").is_some();
    let mut changed = Vec::new();
    for (name, drawn) in drawn {
        let path = docs(folder).join(&name);
        if bless {
            fs::write(path, drawn).unwrap();
        } else if fs::read(&path).ok() != Some(drawn) {
            changed.push(name);
        }
    }
    assert!(changed.is_empty(), "review these, then run with PARCELO_BLESS=1: {changed:?}");
}

/// Labels with Chinese text if the feature `cjk` draws it; the golden files show boxes instead.
const CHINESE: &[&str] = if cfg!(feature = "cjk") { &["chinese", "full"] } else { &[] };

#[test]
fn golden_labels_are_unchanged() {
    let cases = corpus::golden_cases();
    let cases = cases.iter().filter(|case| !CHINESE.contains(&&*case.name));
    let draw_all = |case: &corpus::Case| {
        let file = |format: LabelFormat| {
            let name = format!("{}.{}", case.name, format.extension());
            (name, draw(&case.data(), format).unwrap())
        };
        LabelFormat::ALL.map(file)
    };
    assert_golden("labels", cases.flat_map(draw_all));
}

#[test]
fn every_golden_label_is_in_the_gallery() {
    let gallery = fs::read_to_string(docs("labels.md")).unwrap();
    for case in corpus::golden_cases() {
        assert!(gallery.contains(&format!("labels/{}.png", case.name)), "{}", case.name);
    }
    let files = fs::read_dir(docs("labels")).unwrap().count();
    assert_eq!(
        files,
        corpus::golden_cases().len() * LabelFormat::ALL.len(),
        "files in docs/labels"
    );
}
