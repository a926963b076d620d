//! Text that may be printed: nothing in it controls a terminal, and no API key is in it.

use parcelo::Environment;

/// A text without the characters that control a terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if is_terminal_control(c) { ' ' } else { c }).collect()
}

/// True for control characters, and for those that reorder or break the line (`Bidi_Control` of
/// Unicode; U+2028, U+2029): a name could otherwise make a line read differently from what it says.
pub(crate) fn is_terminal_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text as it was typed, or a mask if it contains an API key.
pub(crate) fn without_keys(text: &str) -> String {
    let mut prefixes = Environment::ALL.into_iter().map(Environment::key_prefix);
    match prefixes.find(|prefix| text.contains(prefix)) {
        Some(prefix) => format!("{prefix}***"),
        None => plain(text),
    }
}

/// An API key reduced to the prefix that names its environment.
pub(crate) fn mask_key(key: &str) -> String {
    let mut prefixes = Environment::ALL.into_iter().map(Environment::key_prefix);
    let prefix = prefixes.find(|prefix| key.starts_with(prefix)).unwrap_or_default();
    format!("{prefix}***")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_shows_the_environment_and_no_more() {
        for (key, shown) in
            [("pk_live_abc", "pk_live_***"), ("pk_test_", "pk_test_***"), ("x", "***")]
        {
            assert_eq!(mask_key(key), shown);
        }
    }
}
