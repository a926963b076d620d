//! Results as JSON: one document, or one document per line.

use std::io::{self, Write};

use super::format::Layout;
use crate::{
    results::table::{Document, Documents},
    sanitize::is_terminal_control,
};

pub(super) fn write(
    out: &mut impl Write,
    documents: &Documents<'_>,
    layout: Layout,
) -> io::Result<()> {
    let mut write = |document: &dyn Document| write_one(out, document, layout);
    match layout {
        Layout::Document => documents.whole.iter().try_for_each(|whole| write(&**whole)),
        Layout::Lines => documents.lines.iter().try_for_each(|line| write(&**line)),
    }
}

pub(super) fn write_one(
    out: &mut impl Write,
    document: &dyn Document,
    layout: Layout,
) -> io::Result<()> {
    writeln!(out, "{}", escape_terminal_controls(document.to_json(layout)?))
}

/// The same JSON with the characters escaped that control a terminal.
fn escape_terminal_controls(json: String) -> String {
    if !json.contains(is_terminal_control) {
        return json;
    }
    let escaped = |c: char| match c {
        '\n' => c.to_string(),
        c if is_terminal_control(c) => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    json.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_means_the_same_and_controls_no_terminal() {
        let text = "a\u{9b}2J\u{202e}\u{7f}é\n\u{1b}[2J";
        for layout in [Layout::Document, Layout::Lines] {
            let mut out = Vec::new();
            write_one(&mut out, &[text], layout).unwrap();
            let written = String::from_utf8(out).unwrap();
            assert!(!written.chars().any(|c| is_terminal_control(c) && c != '\n'), "{written:?}");
            assert_eq!(serde_json::from_str::<[String; 1]>(&written).unwrap(), [text]);
        }
    }
}
