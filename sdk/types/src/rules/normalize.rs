//! Normalization before comparing: names without accents, case and punctuation, numbers without separators.

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// Folds a name: NFKD without combining marks, in lower case, with one space for every run of other characters, and
/// trimmed. `Bogotá, D.C.` and `BOGOTA DC` fold to the same text.
pub(crate) fn fold(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    if name.is_ascii() {
        push_folded(&mut folded, name.chars());
    } else {
        push_folded(&mut folded, name.nfkd().filter(|c| !is_combining_mark(*c)));
    }
    folded
}

fn push_folded(folded: &mut String, chars: impl Iterator<Item = char>) {
    let mut gap = false;
    for c in chars {
        if c.is_alphanumeric() {
            if gap && !folded.is_empty() {
                folded.push(' ');
            }
            folded.extend(c.to_lowercase());
            gap = false;
        } else {
            gap = true;
        }
    }
}

/// Removes white space and the given separators, which people write between digits.
pub(crate) fn strip_separators(text: &str, dropped: &[char]) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !dropped.contains(c)).collect()
}

/// Returns `true` if a text is not empty and consists of `0`-`9`; full-width and Arabic digits do not count.
pub(crate) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Returns the first two digits as a number.
pub(crate) fn first_two(digits: &str) -> Option<u8> {
    digits.get(..2).filter(|two| is_digits(two))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_in_any_spelling() {
        let table = [
            ("  Bogotá, D.C. ", "bogota d c"),
            ("MÉXICO", "mexico"),
            ("Me\u{301}xico", "mexico"),
            ("Nariño", "narino"),
            ("Sto.  Domingo", "sto domingo"),
            ("EC-P", "ec p"),
            ("１７", "17"),
            ("...", ""),
        ];
        for (name, folded) in table {
            assert_eq!(fold(name), folded, "{name}");
        }
    }

    #[test]
    fn only_ascii_digits_are_digits() {
        assert!(is_digits("0123456789"));
        for text in ["", "12a", "１７", "٣", "1 2"] {
            assert!(!is_digits(text), "{text}");
        }
        assert_eq!((first_two("1701"), first_two("1"), first_two("ñ1")), (Some(17), None, None));
    }
}
