//! The corpus as files with the expected content of each, for independent readers
//! (`tests/oracles/labels.py`).

use std::{fs, path::Path};

use parcelo_types::LabelFormat;
use serde_json::{Value, json};

use super::{
    super::{draw, draw_all, element::Element, font::is_drawable, lay_out, layout},
    corpus::{self, Case},
    find_code128, find_qr, texts,
};

#[test]
#[ignore = "writes files for readers that are not ours: `.ci/prove labels` runs it"]
fn write_corpus() {
    let Some(folder) = std::env::var_os("PARCELO_LABELS") else { return };
    let folder = Path::new(&folder);
    fs::create_dir_all(folder).unwrap();
    let more = corpus::cases_of_every_length().into_iter().chain(corpus::max_length_cases());
    let cases: Vec<Case> = corpus::golden_cases().into_iter().chain(more).collect();
    for case in &cases {
        for format in LabelFormat::ALL {
            let path = folder.join(&case.name).with_extension(format.extension());
            fs::write(path, draw(&case.data(), format).unwrap()).unwrap();
        }
    }
    let layouts: Vec<_> = cases.iter().map(|case| lay_out(&case.data()).unwrap()).collect();
    for format in [LabelFormat::Pdf, LabelFormat::Zpl] {
        let path = folder.join("merged").with_extension(format.extension());
        fs::write(path, draw_all(&layouts, format).unwrap()).unwrap();
    }
    let expected: Vec<Value> = cases.iter().map(expected).collect();
    fs::write(folder.join("corpus.json"), serde_json::to_vec_pretty(&expected).unwrap()).unwrap();
}

/// Returns the content that a reader must find on a label, and the areas that must be white.
fn expected(case: &Case) -> Value {
    let data = case.data();
    let elements = layout::lay_out(&data).unwrap();
    let (code, qr) = (find_code128(&elements), find_qr(&elements));
    json!({
        "name": case.name,
        "number": case.number.as_str(),
        "url": data.tracking_url,
        "sandbox": case.sandbox,
        "crowded": case.crowded,
        "bars": {"x": code.x, "y": code.y, "width": code.bars.modules() * code.module,
                 "height": code.height, "module": code.module},
        "qr": {"x": qr.x, "y": qr.y, "side": qr.modules * qr.module, "module": qr.module},
        "lines": lines(&elements),
    })
}

/// Returns the lines of text whose characters all have a glyph.
fn lines(elements: &[Element]) -> Vec<&str> {
    let texts = texts(elements);
    texts.iter().map(|text| &*text.line).filter(|line| line.chars().all(is_drawable)).collect()
}
