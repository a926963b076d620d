//! Character classes: those that the label can print, and invisible ones.
//!
//! The fonts of the label (spec: Label) have all printable ones, so that the validator can warn before a label is
//! printed. Invisible characters matter in names: with one, two different names look the same.

use std::sync::LazyLock;

use unicode_normalization::{UnicodeNormalization, is_nfc};

/// The characters of the label's fonts, both ends included: Latin with its extensions, Greek,
/// Cyrillic, general punctuation, currency signs.
#[rustfmt::skip]
pub const PRINTABLE: &[(char, char)] = &[
    (' ', '~'), ('\u{A0}', '\u{AC}'), ('\u{AE}', '\u{24F}'),
    ('\u{370}', '\u{377}'), ('\u{37A}', '\u{37F}'), ('\u{384}', '\u{38A}'), ('\u{38C}', '\u{38C}'),
    ('\u{38E}', '\u{3A1}'), ('\u{3A3}', '\u{3E1}'), ('\u{3F0}', '\u{3FF}'),
    ('\u{400}', '\u{52F}'),
    ('\u{1E00}', '\u{1EFF}'),
    ('\u{2000}', '\u{200A}'), ('\u{2010}', '\u{2027}'), ('\u{202F}', '\u{205F}'),
    ('\u{20A0}', '\u{20BE}'),
];

/// Format characters, which have no glyph: they are accepted and not drawn.
#[rustfmt::skip]
const INVISIBLE: &[(char, char)] = &[
    ('\u{AD}', '\u{AD}'), ('\u{34F}', '\u{34F}'), ('\u{61C}', '\u{61C}'), ('\u{180B}', '\u{180F}'),
    ('\u{200B}', '\u{200F}'), ('\u{202A}', '\u{202E}'), ('\u{2060}', '\u{206F}'),
    ('\u{FE00}', '\u{FE0F}'), ('\u{FEFF}', '\u{FEFF}'), ('\u{FFF9}', '\u{FFFB}'),
    ('\u{E0000}', '\u{E007F}'), ('\u{E0100}', '\u{E01EF}'),
];

/// Further invisible characters: fillers that Unicode counts as letters, and line breaks that it does not count as
/// control characters.
#[rustfmt::skip]
const HIDDEN: &[(char, char)] = &[
    ('\u{115F}', '\u{1160}'), ('\u{17B4}', '\u{17B5}'), ('\u{2028}', '\u{2029}'),
    ('\u{2800}', '\u{2800}'), ('\u{3164}', '\u{3164}'), ('\u{FFA0}', '\u{FFA0}'),
    ('\u{1BCA0}', '\u{1BCA3}'), ('\u{1D173}', '\u{1D17A}'),
];

/// Returns `true` if every label can print the character. Only some services' labels have Chinese too
/// ([`OrderContext::with_chinese_labels`](super::OrderContext::with_chinese_labels)).
///
/// ```
/// use parcelo_types::internal::is_printable;
/// assert!(is_printable('Ñ') && is_printable('ж') && !is_printable('ก'));
/// ```
pub fn is_printable(c: char) -> bool {
    within(PRINTABLE, c)
}

/// Chinese punctuation, and full-width ASCII without the tilde, which the font lacks.
const CHINESE_SIGNS: &[(char, char)] = &[('\u{3000}', '\u{301F}'), ('\u{FF01}', '\u{FF5D}')];

/// The ideographs of GB 2312, sorted.
static HAN: LazyLock<Vec<char>> =
    LazyLock::new(|| include_str!("../../data/han.txt").chars().collect());

/// Returns `true` if a label with the Chinese font can print the character, and no other label can.
pub fn is_chinese(c: char) -> bool {
    within(CHINESE_SIGNS, c) || HAN.binary_search(&c).is_ok()
}

/// The fonts of a service's labels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Fonts {
    #[default]
    Usual,
    /// The usual ones and the Chinese one.
    WithChinese,
}

/// Returns `true` for format characters without a shape, such as bidirectional marks and zero-width spaces: they are
/// accepted and not drawn.
///
/// ```
/// use parcelo_types::internal::is_invisible;
/// assert!(is_invisible('\u{200b}') && !is_invisible(' '));
/// ```
pub fn is_invisible(c: char) -> bool {
    !c.is_ascii() && within(INVISIBLE, c)
}

/// Returns `true` for every invisible character: with one, a name can look like another.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control() || is_invisible(c) || within(HIDDEN, c)
}

/// Returns `true` if a name contains an invisible character that its script does not need. Control characters do not
/// count: they have a separate fault.
pub(crate) fn has_suspicious_hidden_character(name: &str) -> bool {
    let is_needed = |c: char| {
        USED_BY_SCRIPTS.iter().any(|(hidden, letters)| {
            within(hidden, c) && name.chars().any(|letter| within(letters, letter))
        })
    };
    name.chars().any(|c| !c.is_control() && is_hidden(c) && !is_needed(c))
}

/// Ranges of characters, both ends included.
type Ranges = &'static [(char, char)];

/// Invisible characters that some scripts are written with, and the letters of those scripts.
#[rustfmt::skip]
const USED_BY_SCRIPTS: &[(Ranges, Ranges)] = &[
    // Joiners: Persian, Urdu and Kurdish in Arabic letters, and the scripts of India and its
    // neighbours, change a letter's form with them.
    (&[('\u{200C}', '\u{200D}')], &[
        ('\u{600}', '\u{6FF}'), ('\u{700}', '\u{77F}'), ('\u{8A0}', '\u{8FF}'),
        ('\u{900}', '\u{DFF}'), ('\u{1000}', '\u{109F}'), ('\u{1780}', '\u{17FF}'),
        ('\u{1820}', '\u{18AA}'),
    ]),
    // Directional marks, which place punctuation between two directions. The overrides, which reverse text, are
    // not among them.
    (&[('\u{61C}', '\u{61C}'), ('\u{200E}', '\u{200F}')], &[
        ('\u{5D0}', '\u{5F2}'), ('\u{620}', '\u{6FF}'), ('\u{710}', '\u{74F}'),
        ('\u{780}', '\u{7BF}'),
    ]),
    // Variation selectors of Mongolian letters.
    (&[('\u{180B}', '\u{180F}')], &[('\u{1820}', '\u{18AA}')]),
    // Variation selectors of ideographs: some Japanese family names are written with them.
    (&[('\u{FE00}', '\u{FE0F}'), ('\u{E0100}', '\u{E01EF}')], &[
        ('\u{3400}', '\u{4DBF}'), ('\u{4E00}', '\u{9FFF}'), ('\u{20000}', '\u{323AF}'),
    ]),
];

/// Returns `true` for a text of visible ASCII and spaces, as most are: all of it is printable and visible, so its
/// characters need no further check.
pub(crate) fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Returns `true` if the label can print every character of a text, once combining accents are joined to their letters.
pub(crate) fn is_all_printable(text: &str, fonts: Fonts) -> bool {
    let fits = |c: char| {
        is_printable(c)
            || is_invisible(c)
            || c.is_control()
            || fonts == Fonts::WithChinese && is_chinese(c)
    };
    if is_nfc(text) { text.chars().all(fits) } else { text.nfc().all(fits) }
}

fn within(ranges: &[(char, char)], c: char) -> bool {
    let after = ranges.partition_point(|(first, _)| *first <= c);
    after.checked_sub(1).and_then(|index| ranges.get(index)).is_some_and(|(_, last)| c <= *last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_character_tables_are_sorted_and_disjoint() {
        assert!(HAN.is_sorted() && HAN.len() == 6763);
        for table in [PRINTABLE, CHINESE_SIGNS, INVISIBLE, HIDDEN] {
            assert!(table.iter().all(|(first, last)| first <= last));
            assert!(table.windows(2).all(|pair| pair[0].1 < pair[1].0), "{table:?}");
        }
        assert!(
            PRINTABLE.iter().all(|(first, last)| !is_invisible(*first) && !is_invisible(*last))
        );
    }

    #[test]
    fn a_label_shows_only_printable_characters() {
        for c in "aZ~ ñÑéßŁőșẞαΩжЇ–—‘“…€₲№".chars().filter(|c| *c != '№')
        {
            assert!(is_printable(c), "{c}");
        }
        assert!(is_chinese('王') && !is_chinese('あ'));
        for c in "王あ한אب😀\u{200B}\u{AD}\u{7F}\n".chars() {
            assert!(!is_printable(c), "{c:?}");
        }
        for c in "\u{200E}\u{200D}\u{202E}\u{2066}\u{FE0F}\u{FEFF}\u{AD}".chars() {
            assert!(is_invisible(c), "{c:?}");
        }
        assert!(!is_invisible('a') && !is_invisible('王') && !is_invisible('\u{202F}'));
    }

    #[test]
    fn a_plain_text_is_printable_and_visible() {
        let plain = |c: &char| is_plain(&c.to_string());
        assert_eq!(('\0'..'\u{3000}').filter(plain).count(), 95);
        assert!(('\0'..'\u{3000}').filter(plain).all(|c| is_printable(c) && !is_hidden(c)));
    }

    #[test]
    fn a_combining_accent_joins_its_letter() {
        assert!(is_all_printable("Mun\u{303}oz\u{200B}\n", Fonts::Usual));
        assert!(!is_all_printable("Mun\u{20DD}oz", Fonts::Usual));
    }
}
