//! A tracking number as people type or paste it: with blanks, dots or slashes, in small letters, or as the whole link.

use parcelo::{TrackingNumber, rules::is_invisible};

/// The most characters of what was typed that a page shows again: a link to a number fits.
const MAX_SHOWN: usize = 200;

/// Characters that mails and documents put around a link or a number.
const BRACKETS: [char; 6] = ['<', '>', '(', ')', '[', ']'];

/// The number that is meant; none when what was typed cannot be one.
pub(super) fn read(typed: &str) -> Option<TrackingNumber> {
    let mut number = String::new();
    for c in number_in(typed.trim()).trim_matches(BRACKETS).chars() {
        match c {
            c if c.is_ascii_alphanumeric() => number.push(c.to_ascii_uppercase()),
            // Phones and word processors put a dash in a hyphen's place.
            '-' | '\u{2010}'..='\u{2015}' | '\u{2212}' => number.push('-'),
            '.' | ',' | ':' | ';' | '/' | '\\' | '_' | '#' | '*' | '"' | '\'' => {}
            c if c.is_whitespace() || is_invisible(c) => {}
            _ => return None,
        }
    }
    TrackingNumber::parse(number.trim_matches('-')).ok()
}

/// What was typed, as it can be shown again.
pub(super) fn shown(typed: &str) -> String {
    let is_shown = |c: &char| !c.is_control() && !is_invisible(*c);
    typed.trim().chars().filter(is_shown).take(MAX_SHOWN).collect()
}

/// The part of a link to a public page that is the number, or everything.
fn number_in(typed: &str) -> &str {
    const FOLDER: &str = "/track/";
    // Small letters have the same length here, so that a place in one text is a place in the other.
    let Some(at) = typed.to_ascii_lowercase().rfind(FOLDER) else { return typed };
    let rest = typed.get(at + FOLDER.len()..).unwrap_or_default();
    rest.split(['?', '#', '&']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_in_what_people_type() {
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
                read(typed).map(|number| number.to_string()).as_deref(),
                Some(number),
                "{typed}"
            );
        }
        for typed in ["sb-success-0001", "SB–SUCCESS—0001", "SB‑SUCCESS−0001", "-SB-SUCCESS-0001-"]
        {
            let found = read(typed).map(|number| number.to_string());
            assert_eq!(found.as_deref(), Some("SB-SUCCESS-0001"), "{typed}");
        }
    }

    #[test]
    fn what_is_no_number_is_not_made_one() {
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
            assert_eq!(read(typed), None, "{typed}");
        }
    }

    #[test]
    fn what_is_shown_again_is_short_and_hides_nothing() {
        assert_eq!(shown(" a\u{202e}b\u{7}c "), "abc");
        assert_eq!(shown(&"ñ".repeat(1_000)).chars().count(), MAX_SHOWN);
    }
}
