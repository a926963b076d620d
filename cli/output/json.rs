//! Results as JSON: one document, or one document per line.

use std::io::{self, Write};

use super::format::Layout;
use crate::{
    results::table::{Document, Report},
    sanitize::is_terminal_control,
};

pub(super) fn write(out: &mut impl Write, report: &dyn Report, layout: Layout) -> io::Result<()> {
    match report.items().filter(|_| layout == Layout::Lines) {
        Some(items) => items.iter().try_for_each(|item| write_one(out, &**item, layout)),
        None => write_one(out, report, layout),
    }
}

pub(super) fn write_one(
    out: &mut impl Write,
    document: &dyn Document,
    layout: Layout,
) -> io::Result<()> {
    writeln!(out, "{}", escape_terminal_controls(document.to_json(layout)?))
}

/// Escapes the characters that control a terminal, which leaves the meaning of the JSON unchanged.
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
    fn json_escapes_terminal_controls_without_a_loss() {
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
