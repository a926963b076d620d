//! Tracking numbers as people type or paste them: with blanks, dots or slashes, in lower case, or as a whole link.

use parcelo_types::{TrackingNumber, internal::is_invisible};

/// Maximum number of typed characters that a page shows again: a link to a number fits.
const MAX_DISPLAYED_CHARS: usize = 200;

/// Characters that mails and documents put around a link or a number.
const BRACKETS: [char; 6] = ['<', '>', '(', ')', '[', ']'];

/// Parses the number that was typed, or returns `None` if the text contains none.
pub(super) fn parse(typed: &str) -> Option<TrackingNumber> {
    let mut number = String::new();
    for c in extract_number(typed.trim()).trim_matches(BRACKETS).chars() {
        match c {
            c if c.is_ascii_alphanumeric() => number.push(c.to_ascii_uppercase()),
            // Phones and word processors replace a hyphen by a dash.
            '-' | '\u{2010}'..='\u{2015}' | '\u{2212}' => number.push('-'),
            '.' | ',' | ':' | ';' | '/' | '\\' | '_' | '#' | '*' | '"' | '\'' => {}
            c if c.is_whitespace() || is_invisible(c) => {}
            _ => return None,
        }
    }
    TrackingNumber::parse(number.trim_matches('-')).ok()
}

/// Returns the typed text in a form that can be shown again.
pub(super) fn displayable(typed: &str) -> String {
    let is_displayable = |c: &char| !c.is_control() && !is_invisible(*c);
    typed.trim().chars().filter(is_displayable).take(MAX_DISPLAYED_CHARS).collect()
}

/// Returns the number in a link to a public page, or the whole text.
fn extract_number(typed: &str) -> &str {
    const PATH_PREFIX: &str = "/track/";
    // ASCII letters keep their length in lower case, so an index of one text is valid in the other.
    let Some(at) = typed.to_ascii_lowercase().rfind(PATH_PREFIX) else { return typed };
    let rest = typed.get(at + PATH_PREFIX.len()..).unwrap_or_default();
    rest.split(['?', '#', '&']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_in_typed_text() {
        let number = "EC7K2M9QX4T8WD0";
        for typed in [
            number,
            " ec7k2m9qx4t8wd0\n",
            "EC7K 2M9Q X4T8 WD0",
            "EC7K.2M9Q.X4T8.WD0.",
            "EC7K/2M9Q/X4T8/WD0/",
            "#EC7K2M9QX4T8WD0",
            "\u{feff}EC7K2M9QX4T8\u{a0}WD0\u{200b}",
            "https://parcelo.example/track/EC7K2M9QX4T8WD0",
            "http://127.0.0.1:8080/base/track/ec7k2m9qx4t8wd0/?lang=es#history",
            "HTTPS://PARCELO.EXAMPLE/TRACK/EC7K2M9QX4T8WD0.",
            "<https://parcelo.example/track/EC7K2M9QX4T8WD0>",
            "<https://parcelo.example/track/EC7K2M9QX4T8WD0?lang=es>",
            "(EC7K2M9QX4T8WD0)\n",
            "[EC7K2M9QX4T8WD0]",
            "See https://parcelo.example/track/X and then https://parcelo.example/track/EC7K2M9QX4T8WD0",
        ] {
            assert_eq!(
                parse(typed).map(|number| number.to_string()).as_deref(),
                Some(number),
                "{typed}"
            );
        }
        for typed in ["sb-success-0001", "SB–SUCCESS—0001", "SB‑SUCCESS−0001", "-SB-SUCCESS-0001-"]
        {
            let found = parse(typed).map(|number| number.to_string());
            assert_eq!(found.as_deref(), Some("SB-SUCCESS-0001"), "{typed}");
        }
    }

    #[test]
    fn text_without_a_number_gives_none() {
        let long = "A".repeat(31);
        for typed in [
            "",
            " ",
            "short",
            &long,
            "<script>alert(1)</script>",
            "EC7K2M9QX4T8WDÑ",
            "----------",
            "https://parcelo.example/track/",
        ] {
            assert_eq!(parse(typed), None, "{typed}");
        }
    }

    #[test]
    fn displayed_text_is_short_and_visible() {
        assert_eq!(displayable(" a\u{202e}b\u{7}c "), "abc");
        assert_eq!(displayable(&"ñ".repeat(1_000)).chars().count(), MAX_DISPLAYED_CHARS);
    }
}
