//! TOML files: the profiles, a column map, a sender.

use toml_edit::DocumentMut;

/// Parses a file. The error is the number of the invalid line, which is not quoted because it may contain a key.
pub(crate) fn parse(text: &str) -> Result<DocumentMut, usize> {
    text.parse().map_err(|fault: toml_edit::TomlError| {
        let before = fault.span().and_then(|span| text.get(..span.start));
        before.map_or(1, |before| before.matches('\n').count() + 1)
    })
}
