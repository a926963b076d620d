//! The labels in `docs/labels`, byte for byte, so that changes to the drawing show up.
//!
//! `PARCELO_BLESS=1 cargo test -p parcelo-server --lib kept_labels` writes them.

use std::{fs, path::PathBuf};

use parcelo::LabelFormat;

use super::{super::draw, corpus};

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/labels"))
}

/// Labels with Chinese text if the feature `cjk` draws it; the kept files show boxes instead.
const CHINESE: &[&str] = if cfg!(feature = "cjk") { &["chinese", "full"] } else { &[] };

#[test]
fn kept_labels_are_drawn_as_before() {
    let bless = std::env::var_os("PARCELO_BLESS").is_some();
    let mut changed = Vec::new();
    for case in corpus::golden_cases().iter().filter(|case| !CHINESE.contains(&case.name)) {
        for format in LabelFormat::ALL {
            let path = folder().join(case.name).with_extension(format.extension());
            let drawn = draw(&case.data(), format).unwrap();
            if bless {
                fs::write(path, drawn).unwrap();
            } else if fs::read(&path).ok() != Some(drawn) {
                changed.push(format!("{}.{}", case.name, format.extension()));
            }
        }
    }
    assert!(changed.is_empty(), "look at them, then PARCELO_BLESS=1: {changed:?}");
}

#[test]
fn every_kept_label_is_in_the_gallery() {
    let gallery = fs::read_to_string(folder().join("../labels.md")).unwrap();
    for case in corpus::golden_cases() {
        assert!(gallery.contains(&format!("labels/{}.png", case.name)), "{}", case.name);
    }
    let files = fs::read_dir(folder()).unwrap().count();
    assert_eq!(
        files,
        corpus::golden_cases().len() * LabelFormat::ALL.len(),
        "files in docs/labels"
    );
}
