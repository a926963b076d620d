//! What sender and receiver have in common: country and e-mail address.

use email_address::{EmailAddress, Options};

use super::{
    field_types::Text,
    texts::{FaultText, faults},
};
use crate::model::CountryCode;

/// 254 characters: the longest address that mail servers accept (RFC 5321).
pub(crate) const EMAIL: Text = Text::DATA.with_max(254);

/// Accepts an address without display name, with a dot in its domain: `ana@localhost` is valid but never reaches a
/// receiver.
pub(crate) fn email(address: &str) -> Result<&str, FaultText> {
    let strict =
        Options::default().with_required_tld().without_domain_literal().without_display_text();
    match EmailAddress::parse_with_options(address, strict) {
        Ok(_) => Ok(address),
        Err(_) => Err(faults::email()),
    }
}

/// Accepts an assigned ISO 3166-1 code in upper case (spec: 2-letter ISO country code).
pub(crate) fn country(code: &str) -> Result<CountryCode, FaultText> {
    CountryCode::parse(code).map_err(|_| {
        let meant = CountryCode::parse(&code.trim().to_uppercase());
        faults::country().suggest(meant.ok().map(|country| country.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_email_is_an_address_and_nothing_else() {
        for good in ["ana@example.com", "a.b+c@mail.example.ec", "o'neil@example.co"] {
            assert!(email(good).is_ok(), "{good}");
        }
        let bad = [
            "ana",
            "ana@",
            "@example.com",
            "ana@localhost",
            "Ana <ana@example.com>",
            "ana@[10.0.0.1]",
            "ana@example..com",
            "ana@example.com,bob@example.com",
            "ana maria@example.com",
            "ana@.com",
            "ana@example.com.",
        ];
        for bad in bad {
            assert!(email(bad).is_err(), "{bad}");
        }
    }
}
