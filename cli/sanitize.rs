//! Makes text safe to print: without terminal control characters, and without API keys.

use parcelo::Environment;

/// Returns a text without terminal control characters.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if is_terminal_control(c) { ' ' } else { c }).collect()
}

/// Returns `true` if a character controls a terminal, or reorders or breaks the line (`Bidi_Control` of Unicode;
/// U+2028, U+2029). With such a character a name could make a line seem to say something else.
pub(crate) fn is_terminal_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Maximum number of quoted characters, since a cell may contain a page of text.
const MAX_QUOTED_CHARS: usize = 60;

/// Returns a text in quotation marks, shortened, on one line, with visible control characters and without API keys. The
/// quotation marks also keep a spreadsheet from treating it as a formula.
pub(crate) fn quoted(text: &str) -> String {
    let masked = without_keys(text);
    // A mask has no characters of the text, and so no control characters.
    let text = if masked.ends_with("***") { &masked } else { text };
    let mut quoted = String::from("\"");
    for c in text.chars().take(MAX_QUOTED_CHARS) {
        match c {
            c if is_terminal_control(c) => quoted.extend(c.escape_default()),
            c => quoted.push(c),
        }
    }
    if text.chars().nth(MAX_QUOTED_CHARS).is_some() {
        quoted.push('…');
    }
    quoted + "\""
}

/// Returns a text unchanged, or a mask if it contains an API key.
pub(crate) fn without_keys(text: &str) -> String {
    let mut prefixes = Environment::ALL.into_iter().map(Environment::key_prefix);
    match prefixes.find(|prefix| text.contains(prefix)) {
        Some(prefix) => format!("{prefix}***"),
        None => plain(text),
    }
}

/// Returns a URL without its user name and password.
pub(crate) fn without_credentials(address: &str) -> String {
    let host = address.rsplit('@').next().unwrap_or_default();
    let address =
        if host.len() < address.len() { format!("***@{host}") } else { address.to_owned() };
    without_keys(&address)
}

/// Masks an API key except for the prefix, which shows its environment.
pub(crate) fn mask_key(key: &str) -> String {
    let mut prefixes = Environment::ALL.into_iter().map(Environment::key_prefix);
    let prefix = prefixes.find(|prefix| key.starts_with(prefix)).unwrap_or_default();
    format!("{prefix}***")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_is_short_one_line_and_without_keys() {
        let long = "x".repeat(61);
        let table = [
            ("99", "\"99\"".to_owned()),
            ("=1+1", "\"=1+1\"".to_owned()),
            ("a\tb\n\u{1b}[31m", "\"a\\tb\\n\\u{1b}[31m\"".to_owned()),
            ("\u{202e}x", "\"\\u{202e}x\"".to_owned()),
            ("pk_live_abc", "\"pk_live_***\"".to_owned()),
            (&long, format!("\"{}…\"", "x".repeat(60))),
        ];
        for (text, expected) in table {
            assert_eq!(quoted(text), expected);
        }
    }

    #[test]
    fn a_masked_key_shows_only_its_environment() {
        for (key, shown) in
            [("pk_live_abc", "pk_live_***"), ("pk_test_", "pk_test_***"), ("x", "***")]
        {
            assert_eq!(mask_key(key), shown);
        }
    }
}
