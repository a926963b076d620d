//! The format of postal codes by country (data: sdk/types/data/README.md). A mismatch is only a warning, since the patterns
//! are not the countries' own; EC, MX and CO, for which the spec states a format, have rules in `countries`.

use std::sync::OnceLock;

use regex_lite::Regex;

use super::{reader::FieldValue, texts::warnings};
use crate::model::CountryCode;

const DATA: &str = include_str!("../../data/postal_patterns.tsv");

struct Pattern {
    country: &'static str,
    text: &'static str,
    /// Compiled for the first order to the country: compiling all 178 would slow down the first request.
    regex: OnceLock<Option<Regex>>,
}

/// Warns if the code does not match its country's pattern; a country without a pattern accepts any code.
pub(crate) fn check_form(zip: &FieldValue<'_, &str>, country: CountryCode) {
    if zip.value().is_some_and(|zip| matches_pattern(zip, country) == Some(false)) {
        zip.warn(warnings::postal_code_format(country));
    }
}

/// Returns `Some(true)` if a code, in upper case, matches the pattern of its country; `None` if the country has none.
fn matches_pattern(zip: &str, country: CountryCode) -> Option<bool> {
    static PATTERNS: OnceLock<Vec<Pattern>> = OnceLock::new();
    let patterns = PATTERNS.get_or_init(parse_patterns);
    let index = patterns.binary_search_by(|row| row.country.cmp(country.as_str())).ok()?;
    let pattern = patterns.get(index)?;
    let regex = pattern.regex.get_or_init(|| Regex::new(&format!("^(?:{})$", pattern.text)).ok());
    Some(regex.as_ref()?.is_match(&zip.to_uppercase()))
}

fn parse_patterns() -> Vec<Pattern> {
    let rows = DATA.lines().skip(1).filter_map(|line| line.split_once('\t'));
    rows.map(|(country, text)| Pattern { country, text, regex: OnceLock::new() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_a_country_and_a_pattern_in_order() {
        let patterns = parse_patterns();
        assert_eq!(patterns.len(), 178);
        assert!(patterns.is_sorted_by(|a, b| a.country < b.country));
        for row in patterns {
            assert!(CountryCode::parse(row.country).is_ok(), "{}", row.country);
            assert!(Regex::new(&format!("^(?:{})$", row.text)).is_ok(), "{}", row.country);
        }
    }

    #[test]
    fn postal_codes_have_the_form_of_their_country() {
        let table = [
            ("US", "33101", Some(true)),
            ("US", "33101-1234", Some(true)),
            ("US", "3310", Some(false)),
            ("US", "３３１０１", Some(false)),
            ("CA", "k1a 0b1", Some(true)),
            ("CA", "K1A-0B1", Some(false)),
            ("GB", "SW1A 1AA", Some(true)),
            ("BH", "317", Some(true)),
            ("AE", "anything", None),
        ];
        for (country, zip, expected) in table {
            assert_eq!(
                matches_pattern(zip, CountryCode::parse(country).unwrap()),
                expected,
                "{country} {zip}"
            );
        }
    }
}
