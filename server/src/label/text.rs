//! What a field's text becomes on paper: one line, composed, without characters that leave no mark.

use unicode_normalization::UnicodeNormalization;

/// One line: white space and controls as single spaces, invisible characters left out.
pub(super) fn clean(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.nfc().filter(|c| !is_invisible(*c)) {
        if !character.is_whitespace() && !character.is_control() {
            line.push(character);
        } else if !line.is_empty() && !line.ends_with(' ') {
            line.push(' ');
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// The parts that say something, with `separator` between them.
pub(super) fn join<'a>(parts: impl IntoIterator<Item = &'a str>, separator: &str) -> String {
    let parts: Vec<String> = parts.into_iter().map(clean).filter(|p| !p.is_empty()).collect();
    parts.join(separator)
}

/// Characters that only steer a screen: a label in dots has no use for them.
fn is_invisible(character: char) -> bool {
    INVISIBLE.iter().any(|(first, last)| (*first..=*last).contains(&character))
}

/// Unicode's format characters and variation selectors.
const INVISIBLE: [(char, char); 15] = [
    ('\u{00AD}', '\u{00AD}'),
    ('\u{034F}', '\u{034F}'),
    ('\u{0600}', '\u{0605}'),
    ('\u{061C}', '\u{061C}'),
    ('\u{06DD}', '\u{06DD}'),
    ('\u{070F}', '\u{070F}'),
    ('\u{180B}', '\u{180F}'),
    ('\u{200B}', '\u{200F}'),
    ('\u{202A}', '\u{202E}'),
    ('\u{2060}', '\u{206F}'),
    ('\u{FE00}', '\u{FE0F}'),
    ('\u{FEFF}', '\u{FEFF}'),
    ('\u{FFF9}', '\u{FFFB}'),
    ('\u{1D173}', '\u{1D17A}'),
    ('\u{E0000}', '\u{E0FFF}'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_of_visible_characters() {
        let rows = [
            ("  a\r\n\tb \u{a0} c  ", "a b c"),
            ("Mun\u{303}oz", "Muñoz"),
            ("a\u{200B}b\u{202E}c\u{FEFF}", "abc"),
            ("\u{0}\u{1b}[31m", "[31m"),
            ("\u{200B} \u{200B}", ""),
        ];
        for (given, line) in rows {
            assert_eq!(clean(given), line, "{given:?}");
        }
    }

    #[test]
    fn empty_parts_leave_no_separator() {
        assert_eq!(join(["Quito", " ", "", "Pichincha"], ", "), "Quito, Pichincha");
    }
}
