//! Which of the two languages people of a country are written to in: on the papers of a parcel and in e-mails.

use parcelo::{CountryCode, Language};

/// Where Spanish is the language of customs and of daily life, in the order of their codes; elsewhere it is English.
const SPANISH_SPEAKING: [&str; 21] = [
    "AR", "BO", "CL", "CO", "CR", "CU", "DO", "EC", "ES", "GQ", "GT", "HN", "MX", "NI", "PA", "PE",
    "PR", "PY", "SV", "UY", "VE",
];

/// The language of a country.
pub(crate) fn country_language(country: CountryCode) -> Language {
    let is_spanish = SPANISH_SPEAKING.contains(&country.as_str());
    if is_spanish { Language::Es } else { Language::En }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spanish_is_for_countries_that_speak_it_and_english_for_all_others() {
        for code in SPANISH_SPEAKING {
            assert_eq!(country_language(CountryCode::parse(code).unwrap()), Language::Es, "{code}");
        }
        for code in ["US", "CA", "BR", "DE", "JP"] {
            assert_eq!(country_language(CountryCode::parse(code).unwrap()), Language::En, "{code}");
        }
        assert!(SPANISH_SPEAKING.is_sorted());
    }
}
