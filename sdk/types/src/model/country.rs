//! Country codes of ISO 3166-1.

use super::{
    InvalidValue, Language,
    countries::{COUNTRIES, Row},
    macros::checked_text,
    same_text::is_same_text,
};

/// An assigned ISO 3166-1 alpha-2 code, in exact upper case: `EC`, `MX`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CountryCode(&'static str);

impl CountryCode {
    /// Ecuador, which has special rules for addresses and ids.
    pub const EC: Self = Self("EC");
    /// Mexico, which has special rules for addresses and ids.
    pub const MX: Self = Self("MX");
    /// Colombia, which has special rules for cities and ids.
    pub const CO: Self = Self("CO");
    /// The United States, where most parcels come from.
    pub const US: Self = Self("US");

    /// Parses a code: two upper-case letters that ISO has assigned.
    ///
    /// ```
    /// # use parcelo::{CountryCode, Language};
    /// let peru = CountryCode::parse("PE")?;
    /// assert_eq!((peru.name(Language::Es), peru.calling_code()), ("Perú", "51"));
    /// assert!(CountryCode::parse("pe").is_err());
    /// # Ok::<(), parcelo::InvalidValue>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        row(text).map(|row| Self(row.0)).ok_or(InvalidValue::COUNTRY_CODE)
    }

    /// Returns a code that stands in a program's text, for a constant: one that ISO has not assigned does not compile.
    ///
    /// # Panics
    ///
    /// Outside a constant, a code that [`parse`](Self::parse) refuses panics.
    ///
    /// ```
    /// # use parcelo::CountryCode;
    /// const PE: CountryCode = CountryCode::from_static("PE");
    /// assert_eq!(PE, CountryCode::parse("PE")?);
    /// # Ok::<(), parcelo::InvalidValue>(())
    /// ```
    ///
    /// ```compile_fail,E0080
    /// # use parcelo::CountryCode;
    /// const UK: CountryCode = CountryCode::from_static("UK"); // the code is GB
    /// ```
    #[expect(clippy::panic, reason = "in a constant it is an error of the compiler, which says so")]
    pub const fn from_static(code: &'static str) -> Self {
        let mut rows = COUNTRIES;
        while let [row, rest @ ..] = rows {
            if is_same_text(row.0, code) {
                return Self(row.0);
            }
            rows = rest;
        }
        panic!("not a country code: use one that ISO 3166-1 has assigned, such as EC")
    }

    /// Returns every assigned code, sorted.
    pub fn all() -> impl Iterator<Item = Self> {
        COUNTRIES.iter().map(|row| Self(row.0))
    }

    /// Returns the code.
    pub fn as_str(&self) -> &'static str {
        self.0
    }

    /// Returns the country's name.
    pub fn name(&self, language: Language) -> &'static str {
        row(self.0).map_or(self.0, |row| language.pick(row.1, row.2))
    }

    /// Returns the telephone calling code without `+`; countries of one numbering plan share theirs.
    pub fn calling_code(&self) -> &'static str {
        row(self.0).map_or("", |row| row.3)
    }
}

impl std::fmt::Debug for CountryCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CountryCode({})", self.0)
    }
}

fn row(code: &str) -> Option<&'static Row> {
    let index = COUNTRIES.binary_search_by(|row| row.0.cmp(code)).ok()?;
    COUNTRIES.get(index)
}

checked_text!(CountryCode, r"^[A-Z]{2}$", "EC");

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn a_constant_is_every_assigned_code_and_no_other() {
        const PERU: CountryCode = CountryCode::from_static("PE");
        assert_eq!(CountryCode::parse("PE"), Ok(PERU));
        for code in CountryCode::all() {
            assert_eq!(CountryCode::from_static(code.as_str()), code);
        }
        for wrong in ["", "P", "pe", "XX", "PER", "PE "] {
            assert!(catch_unwind(|| CountryCode::from_static(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_table_is_sorted_and_complete() {
        assert_eq!(COUNTRIES.len(), 249);
        assert!(COUNTRIES.is_sorted_by(|a, b| a.0 < b.0));
        assert!(
            COUNTRIES.iter().all(|row| !row.1.is_empty() && !row.2.is_empty() && !row.3.is_empty())
        );
    }
}
