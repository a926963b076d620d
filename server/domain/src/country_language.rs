//! The language of a country, for the shipping documents of a parcel and for e-mails.

use parcelo_types::{CountryCode, Language};

/// Countries where customs and receivers use Spanish, in the order of their codes. All others get English.
const SPANISH_SPEAKING: [&str; 21] = [
    "AR", "BO", "CL", "CO", "CR", "CU", "DO", "EC", "ES", "GQ", "GT", "HN", "MX", "NI", "PA", "PE",
    "PR", "PY", "SV", "UY", "VE",
];

/// Returns the language of documents and e-mails for a country.
pub fn country_language(country: CountryCode) -> Language {
    let is_spanish = SPANISH_SPEAKING.contains(&country.as_str());
    if is_spanish { Language::Es } else { Language::En }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spanish_speaking_countries_get_spanish_documents() {
        for code in SPANISH_SPEAKING {
            assert_eq!(country_language(CountryCode::parse(code).unwrap()), Language::Es, "{code}");
        }
        for code in ["US", "CA", "BR", "DE", "JP"] {
            assert_eq!(country_language(CountryCode::parse(code).unwrap()), Language::En, "{code}");
        }
        assert!(SPANISH_SPEAKING.is_sorted());
    }
}
