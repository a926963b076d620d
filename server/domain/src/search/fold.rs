//! Folds texts for comparison: removes accents, case and punctuation.

use parcelo_types::internal::is_invisible;
use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

/// Removes accents and case, and replaces each run of characters that are not letters or digits by a space. Apostrophes
/// are removed, so that `O'Brien` and `OBrien` are one word.
pub(super) fn fold(text: &str) -> String {
    // Some characters are apostrophes only before they are decomposed, some only after.
    let characters = text.chars().filter(|c| !is_apostrophe(*c));
    // ASCII characters, of which most texts consist, do not decompose.
    let capacity = text.len();
    if text.is_ascii() {
        fold_decomposed(characters, capacity)
    } else {
        fold_decomposed(characters.nfkd(), capacity)
    }
}

fn fold_decomposed(characters: impl Iterator<Item = char>, capacity: usize) -> String {
    let mut folded = String::with_capacity(capacity);
    let mut needs_space = false;
    for c in characters {
        if is_combining_mark(c) || is_invisible(c) || is_apostrophe(c) {
            continue;
        }
        if !c.is_alphanumeric() {
            needs_space = true;
            continue;
        }
        if needs_space && !folded.is_empty() {
            folded.push(' ');
        }
        needs_space = false;
        if c.is_ascii() {
            folded.push(c.to_ascii_lowercase());
        } else if let Some(letters) = base_letters(c) {
            folded.push_str(letters);
        } else {
            // Fold through upper case, so that ß becomes SS and all sigmas agree; ẞ needs lower case first.
            let capitals = c.to_lowercase().flat_map(char::to_uppercase);
            folded.extend(capitals.flat_map(char::to_lowercase));
        }
    }
    folded
}

const fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '’' | '‘' | 'ʼ' | 'ʻ' | '`' | '´')
}

/// Returns the base letters of a character that Unicode does not decompose, such as `ø`; `None` for any other.
const fn base_letters(c: char) -> Option<&'static str> {
    Some(match c {
        'ø' | 'Ø' => "o",
        'ł' | 'Ł' => "l",
        'đ' | 'Đ' | 'ð' | 'Ð' => "d",
        'ı' => "i",
        'æ' | 'Æ' => "ae",
        'œ' | 'Œ' => "oe",
        'þ' | 'Þ' => "th",
        _ => return None,
    })
}

/// Folds a number or a reference, without the separators between its parts.
pub(super) fn fold_code(text: &str) -> String {
    let mut folded = fold(text);
    folded.retain(|c| c != ' ');
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_folded_as_people_type_them_without_accents() {
        let table = [
            ("María José Núñez", "maria jose nunez"),
            ("Ana O'BRIEN-Ruiz `7/b`\t", "ana obrien ruiz 7 b"),
            ("MARI\u{301}A", "maria"),
            ("Müller-Lüdenscheidt", "muller ludenscheidt"),
            ("Straße", "strasse"),
            ("STRASSE STRAẞE", "strasse strasse"),
            ("Łódź Søren Đặng", "lodz soren dang"),
            ("Œuvre Ægir Þór", "oeuvre aegir thor"),
            ("O’Brien D'Angelo O´Hara N`Diaye ‘Okusi", "obrien dangelo ohara ndiaye okusi"),
            ("İstanbul ışık", "istanbul isik"),
            ("Hawaiʻi", "hawaii"),
            ("ΣΟΦΟΣ σοφος", "σοφοσ σοφοσ"),
            ("王小明", "王小明"),
            ("ＡＢＣ１２", "abc12"),
            ("محمد علي", "محمد علي"),
            ("\u{202e}Ana\u{200b}Ruiz\u{202c}", "anaruiz"),
            ("  a , b  ", "a b"),
            ("%_\\'\"\0", ""),
            ("", ""),
        ];
        for (text, folded) in table {
            assert_eq!(fold(text), folded, "{text}");
            assert_eq!(fold(folded), folded, "folded again: {text}");
        }
        assert_eq!(fold_code("176-1234 5675/#A.b"), "17612345675ab");
    }

    #[test]
    #[ignore = "every character there is: `.ci/prove proofs` runs it"]
    fn folding_twice_changes_nothing() {
        for c in '\0'..=char::MAX {
            let folded = fold(&c.to_string());
            assert_eq!(fold(&folded), folded, "{c:?}");
            assert!(!folded.contains(crate::search::TERM_END), "{c:?}");
        }
    }
}
