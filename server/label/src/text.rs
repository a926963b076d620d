//! Prepares a field's text for the label: a single line, composed (NFC), without invisible characters.

use parcelo_types::internal::is_invisible;
use unicode_normalization::UnicodeNormalization;

/// Converts a text to a single line: runs of white space and control characters become one space, and invisible
/// characters are removed.
pub(super) fn to_single_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let add = |character: char| {
        if !character.is_whitespace() && !character.is_control() {
            line.push(character);
        } else if !line.is_empty() && !line.ends_with(' ') {
            line.push(' ');
        }
    };
    // ASCII characters, of which most texts consist, are composed and none is invisible.
    if text.is_ascii() {
        text.chars().for_each(add);
    } else {
        text.nfc().filter(|c| !is_invisible(*c)).for_each(add);
    }
    line.truncate(line.trim_end().len());
    line
}

/// Joins the parts that are not empty with `separator`.
pub(super) fn join<'a>(parts: impl IntoIterator<Item = &'a str>, separator: &str) -> String {
    let parts: Vec<String> =
        parts.into_iter().map(to_single_line).filter(|p| !p.is_empty()).collect();
    parts.join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_one_line_of_visible_characters() {
        let rows = [
            ("  a\r\n\tb \u{a0} c  ", "a b c"),
            ("  a\r\n\tb \u{7f} c  ", "a b c"),
            ("Mun\u{303}oz", "Muñoz"),
            ("a\u{200B}b\u{202E}c\u{FEFF}", "abc"),
            ("\u{0}\u{1b}[31m", "[31m"),
            ("\u{200B} \u{200B}", ""),
        ];
        for (given, line) in rows {
            assert_eq!(to_single_line(given), line, "{given:?}");
        }
    }

    #[test]
    fn empty_parts_leave_no_separator() {
        assert_eq!(join(["Quito", " ", "", "Pichincha"], ", "), "Quito, Pichincha");
    }
}
