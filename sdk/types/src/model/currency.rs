//! Currency codes of ISO 4217: a list that is short enough not to need a crate.

use super::{InvalidValue, macros::checked_text, same_text::is_same_text};

/// All codes, sorted. A test compares them with the list of a crate that is kept up to date.
#[rustfmt::skip]
const KNOWN: [&str; 183] = [
    "AED", "AFN", "ALL", "AMD", "AOA", "ARS", "AUD", "AWG", "AZN", "BAM", "BBD", "BDT", "BGN", "BHD",
    "BIF", "BMD", "BND", "BOB", "BOV", "BRL", "BSD", "BTN", "BWP", "BYN", "BZD", "CAD", "CDF", "CHE",
    "CHF", "CHW", "CLF", "CLP", "CNY", "COP", "COU", "CRC", "CUC", "CUP", "CVE", "CZK", "DJF", "DKK",
    "DOP", "DZD", "EGP", "ERN", "ETB", "EUR", "FJD", "FKP", "GBP", "GEL", "GHS", "GIP", "GMD", "GNF",
    "GTQ", "GYD", "HKD", "HNL", "HRK", "HTG", "HUF", "IDR", "ILS", "INR", "IQD", "IRR", "ISK", "JMD",
    "JOD", "JPY", "KES", "KGS", "KHR", "KMF", "KPW", "KRW", "KWD", "KYD", "KZT", "LAK", "LBP", "LKR",
    "LRD", "LSL", "LYD", "MAD", "MDL", "MGA", "MKD", "MMK", "MNT", "MOP", "MRU", "MUR", "MVR", "MWK",
    "MXN", "MXV", "MYR", "MZN", "NAD", "NGN", "NIO", "NOK", "NPR", "NZD", "OMR", "PAB", "PEN", "PGK",
    "PHP", "PKR", "PLN", "PYG", "QAR", "RON", "RSD", "RUB", "RWF", "SAR", "SBD", "SCR", "SDG", "SEK",
    "SGD", "SHP", "SLE", "SLL", "SOS", "SRD", "SSP", "STN", "SVC", "SYP", "SZL", "THB", "TJS", "TMT",
    "TND", "TOP", "TRY", "TTD", "TWD", "TZS", "UAH", "UGX", "USD", "USN", "UYI", "UYU", "UYW", "UZS",
    "VED", "VES", "VND", "VUV", "WST", "XAD", "XAF", "XAG", "XAU", "XBA", "XBB", "XBC", "XBD", "XCD",
    "XCG", "XDR", "XOF", "XPD", "XPF", "XPT", "XSU", "XTS", "XUA", "XXX", "YER", "ZAR", "ZMW", "ZWG",
    "ZWL",
];

/// The codes that ISO 4217 has withdrawn.
const WITHDRAWN: [&str; 5] = ["BGN", "CUC", "HRK", "SLL", "ZWL"];

/// A currency code of ISO 4217, in upper case. A code that has been withdrawn can be parsed, but no new order can use
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CurrencyCode(&'static str);

impl CurrencyCode {
    /// The US dollar, which is the default (spec).
    pub const USD: Self = Self("USD");

    /// Parses a code, also one that was withdrawn.
    ///
    /// ```
    /// # use parcelo::CurrencyCode;
    /// assert!(CurrencyCode::parse("COP")?.is_active());
    /// assert!(!CurrencyCode::parse("HRK")?.is_active()); // Croatia has the euro
    /// # Ok::<(), parcelo::InvalidValue>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        let known = KNOWN.binary_search(&text).ok().and_then(|index| KNOWN.get(index));
        known.copied().map(Self).ok_or(InvalidValue::CURRENCY_CODE)
    }

    /// Returns a code that stands in a program's text, for a constant: one that [`parse`](Self::parse) refuses does not
    /// compile.
    ///
    /// # Panics
    ///
    /// Outside a constant, such a code panics.
    ///
    /// ```
    /// # use parcelo::CurrencyCode;
    /// const PEN: CurrencyCode = CurrencyCode::from_static("PEN");
    /// assert!(PEN.is_active());
    /// ```
    ///
    /// ```compile_fail,E0080
    /// # use parcelo::CurrencyCode;
    /// const PEN: CurrencyCode = CurrencyCode::from_static("PENS");
    /// ```
    #[expect(clippy::panic, reason = "in a constant it is an error of the compiler, which says so")]
    pub const fn from_static(code: &'static str) -> Self {
        let mut codes: &[&'static str] = &KNOWN;
        while let [known, rest @ ..] = codes {
            if is_same_text(known, code) {
                return Self(known);
            }
            codes = rest;
        }
        panic!("not a currency code: use one of ISO 4217, such as USD")
    }

    /// Returns `true` if the currency is still in use. The kuna is not, since Croatia adopted the euro.
    pub fn is_active(self) -> bool {
        !WITHDRAWN.contains(&self.0)
    }

    /// Returns the code.
    pub fn as_str(&self) -> &'static str {
        self.0
    }
}

impl Default for CurrencyCode {
    fn default() -> Self {
        Self::USD
    }
}

impl std::fmt::Debug for CurrencyCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CurrencyCode({})", self.as_str())
    }
}

checked_text!(CurrencyCode, r"^[A-Z]{3}$", "USD");

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn a_constant_is_every_known_code_and_no_other() {
        const SOL: CurrencyCode = CurrencyCode::from_static("PEN");
        assert_eq!(CurrencyCode::parse("PEN"), Ok(SOL));
        for code in KNOWN {
            assert_eq!(CurrencyCode::from_static(code).as_str(), code);
        }
        for wrong in ["", "PE", "pen", "AAA", "PENS"] {
            assert!(catch_unwind(|| CurrencyCode::from_static(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_currency_codes_match_an_independent_list() {
        let letters = || 'A'..='Z';
        for text in letters()
            .flat_map(|a| letters().flat_map(move |b| letters().map(move |c| [a, b, c])))
            .map(String::from_iter)
        {
            let known = iso_currency::Currency::from_code(&text).is_some();
            assert_eq!(CurrencyCode::parse(&text).is_ok(), known, "{text}");
        }
    }

    #[test]
    fn a_withdrawn_currency_is_known_but_not_active() {
        for code in KNOWN {
            let currency = iso_currency::Currency::from_code(code).unwrap();
            // The bolívar has a second code, VED, but ISO 4217 has not withdrawn the first.
            let is_withdrawn = currency.is_superseded().is_some() && code != "VES";
            assert_eq!(CurrencyCode::parse(code).unwrap().is_active(), !is_withdrawn, "{code}");
        }
    }
}
