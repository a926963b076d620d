//! Shortens the API keys and carrier keys in a text of the request log, which a suite prints when a test fails.

use std::{borrow::Cow, ops::Range};

/// The first characters of keys, each as long as the others.
const PREFIXES: [&str; 4] = ["pk_test_", "pk_live_", "ck_test_", "ck_live_"];
/// The part of a prefix after its first letter up to the underscore, by which it is found.
const PREFIX_MARK: &str = "k_";
/// The length of a prefix from its mark on.
const MARKED_BYTES: usize = "k_test_".len();
/// Number of a key's last characters that are shown: enough to tell keys apart, too few to use one.
const SHOWN_BYTES: usize = 4;

/// Shortens every key in a text to its prefix and last four characters.
pub(super) fn mask_keys(text: &str) -> Cow<'_, str> {
    let (mut masked, mut rest) = (String::new(), text);
    while let Some(secret) = find_secret(rest) {
        masked.extend([rest.get(..secret.start).unwrap_or_default(), "…"]);
        rest = rest.get(secret.end..).unwrap_or_default();
    }
    if masked.is_empty() {
        return Cow::Borrowed(text);
    }
    masked.push_str(rest);
    Cow::Owned(masked)
}

/// Returns the place of what must not be shown of the first key in a text.
fn find_secret(text: &str) -> Option<Range<usize>> {
    text.match_indices(PREFIX_MARK).find_map(|(mark, _)| {
        let start = mark + MARKED_BYTES;
        let prefix = text.get(mark.checked_sub(1)?..start)?;
        let random = text.get(start..)?.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let is_key = PREFIXES.contains(&prefix) && random > SHOWN_BYTES;
        is_key.then(|| start..start + random - SHOWN_BYTES)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_in_a_text_is_shortened() {
        let table = [
            ("pk_test_0123456789", "pk_test_…6789"),
            (
                r#"{"a":"pk_live_0123456789","b":"ck_test_abcdefgh"}"#,
                r#"{"a":"pk_live_…6789","b":"ck_test_…efgh"}"#,
            ),
            ("http://x/?key=ck_live_0123456789&y=ñ", "http://x/?key=ck_live_…6789&y=ñ"),
            ("pk_test_…6789", "pk_test_…6789"),
            ("k_test_0123456789", "k_test_0123456789"),
            ("ask_live_0123456789 pk_test_", "ask_live_0123456789 pk_test_"),
            ("ñk_test_0123456789", "ñk_test_0123456789"),
            ("", ""),
        ];
        for (text, expected) in table {
            assert_eq!(mask_keys(text), expected);
        }
    }
}
