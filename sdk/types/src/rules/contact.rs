//! Rules that sender and receiver share: country and e-mail address.

use email_address::{EmailAddress, Options};

use super::{
    field_types::Text,
    normalize::fold,
    texts::{FaultText, faults},
};
use crate::model::{CountryCode, Language};

/// 254 characters: the longest address that mail servers accept (RFC 5321).
pub(crate) const EMAIL: Text = Text::DATA.with_max(254);

/// Parses an e-mail address without display name. Its domain must have a dot: `ana@localhost` is valid, but never
/// reaches a receiver.
pub fn parse_email(address: &str) -> Result<&str, FaultText> {
    let strict =
        Options::default().with_required_tld().without_domain_literal().without_display_text();
    match EmailAddress::parse_with_options(address, strict) {
        Ok(_) => Ok(address),
        Err(_) => Err(faults::EMAIL),
    }
}

/// Parses an assigned ISO 3166-1 code in upper case (spec: 2-letter ISO country code).
pub fn parse_country(code: &str) -> Result<CountryCode, FaultText> {
    CountryCode::parse(code)
        .map_err(|_| faults::COUNTRY.suggest(meant_country(code).map(|meant| meant.as_str())))
}

/// Returns the country that a text other than a code probably means: `ec`, `UK`, `Ecuador`.
pub fn meant_country(text: &str) -> Option<CountryCode> {
    CountryCode::parse(&text.trim().to_uppercase()).ok().or_else(|| find_by_name(text))
}

/// Common names that the table of `CountryCode::name` does not have.
const USUAL_NAMES: [(&str, &str); 8] = [
    ("uk", "GB"),
    ("usa", "US"),
    ("u s a", "US"),
    ("united states of america", "US"),
    ("estados unidos de america", "US"),
    ("ee uu", "US"),
    ("great britain", "GB"),
    ("holland", "NL"),
];

/// Returns the country with this name in English or Spanish, with or without accents.
fn find_by_name(name: &str) -> Option<CountryCode> {
    let name = fold(name);
    let is_named = |country: &CountryCode| {
        [Language::En, Language::Es].iter().any(|language| fold(country.name(*language)) == name)
    };
    let usual = || USUAL_NAMES.iter().find(|(usual, _)| *usual == name);
    CountryCode::all()
        .find(is_named)
        .or_else(|| usual().and_then(|(_, code)| CountryCode::parse(code).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_common_name_belongs_to_a_country() {
        for (_, code) in USUAL_NAMES {
            assert!(CountryCode::parse(code).is_ok(), "{code}");
        }
    }
}
