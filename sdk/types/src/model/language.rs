//! The two languages of all texts for people.

use serde::{Deserialize, Serialize};

/// The language of a text, English by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// English.
    #[default]
    En,
    /// Spanish.
    Es,
}

impl Language {
    const ALL: [Self; 2] = [Self::En, Self::Es];

    /// Returns the code in `Accept-Language`: `en` or `es`.
    pub const fn code(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Es => "es",
        }
    }

    /// Returns the text in this language, of the two.
    #[doc(hidden)]
    pub fn pick<T>(self, en: T, es: T) -> T {
        match self {
            Self::En => en,
            Self::Es => es,
        }
    }

    /// Parses an `Accept-Language` header. Returns the language with the higher weight; with equal weights, the one
    /// that is named first; English if neither is accepted. `*` stands for each that is not named.
    ///
    /// ```
    /// # use parcelo::Language;
    /// assert_eq!(Language::from_header("fr, es-EC;q=0.8, en;q=0.5"), Language::Es);
    /// assert_eq!(Language::from_header("*, es;q=0.1"), Language::En);
    /// assert_eq!(Language::from_header("de"), Language::En);
    /// ```
    #[doc(hidden)]
    pub fn from_header(header: &str) -> Self {
        let entries = || header.split(',').filter_map(weighted);
        let named = || entries().filter_map(|(language, weight)| Some((language?, weight)));
        let others = entries().filter(|(language, _)| language.is_none());
        let others = others.map(|(_, weight)| weight).max().unwrap_or(0);
        let unnamed = Self::ALL
            .into_iter()
            .filter(|language| named().all(|(named, _)| named != *language))
            .map(|language| (language, others));
        let mut best = (Self::En, 0);
        for (language, weight) in named().chain(unnamed) {
            if weight > best.1 {
                best = (language, weight);
            }
        }
        best.0
    }
}

impl std::fmt::Display for Language {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.code())
    }
}

/// Parses an entry of the header, with its weight in thousandths; `None` as the language stands for `*`.
fn weighted(entry: &str) -> Option<(Option<Language>, u16)> {
    let mut parts = entry.split(';').map(str::trim);
    let tag = parts.next()?.split('-').next()?;
    let language =
        Language::ALL.into_iter().find(|language| tag.eq_ignore_ascii_case(language.code()));
    if language.is_none() && tag != "*" {
        return None;
    }
    let weight = parts
        .find_map(|part| part.strip_prefix(['q', 'Q'])?.strip_prefix('='))
        .map_or(Some(1000), thousandths)?;
    Some((language, weight))
}

/// Parses `0.85` as 850. A weight has at most three decimals, and is at most 1.
fn thousandths(weight: &str) -> Option<u16> {
    let (whole, decimals) = weight.split_once('.').unwrap_or((weight, ""));
    let decimals = format!("{decimals:0<3}").get(..3)?.parse::<u16>().ok()?;
    let whole = whole.parse::<u16>().ok().filter(|whole| *whole <= 1)?;
    Some((whole * 1000 + decimals).min(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_language_wins_and_the_default_is_english() {
        let table = [
            ("", Language::En),
            ("es", Language::Es),
            ("ES-mx", Language::Es),
            ("en, es", Language::En),
            ("en;q=0.1, es;q=0.2", Language::Es),
            ("es;q=0", Language::En),
            ("es;q=zzz", Language::En),
            ("es;Q=0", Language::En),
            ("es;Q=0.5, en", Language::En),
            ("*", Language::En),
            ("*;q=0.5, es;q=0.4", Language::En),
            ("fr;q=1, *;q=0.5, es;q=0.4", Language::En),
            ("*, es;q=0.1", Language::En),
            ("*;q=0.1, es;q=0.5", Language::Es),
            ("*, es", Language::Es),
            ("es;q=0.5, en;q=0.5, *", Language::Es),
            ("en;q=0, *;q=0.1", Language::Es),
            ("es;q=0, *", Language::En),
            ("*;q=0, es;q=0.1", Language::Es),
            ("en;q=0, *;q=0", Language::En),
            (";;;,,,=", Language::En),
            ("es;q=0.ñ", Language::En),
        ];
        for (header, language) in table {
            assert_eq!(Language::from_header(header), language, "{header}");
        }
    }
}
