//! Currency codes of ISO 4217.

use super::{InvalidValue, macros::checked_text};

/// A currency of ISO 4217, in exact upper case; `USD` unless the order says otherwise. It may have been
/// withdrawn since; then no new order can be in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CurrencyCode(iso_currency::Currency);

impl CurrencyCode {
    /// The default of the spec.
    pub const USD: Self = Self(iso_currency::Currency::USD);

    /// Reads a code.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        iso_currency::Currency::from_code(text).map(Self).ok_or(InvalidValue::CurrencyCode)
    }

    /// Whether it is still in use: the kuna is not, since Croatia has the euro.
    pub fn is_active(self) -> bool {
        // The bolívar has a second code, VED, but ISO 4217 has not withdrawn the first.
        self.0 == iso_currency::Currency::VES || self.0.is_superseded().is_none()
    }

    /// The code.
    pub fn as_str(&self) -> &'static str {
        self.0.code()
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
    use super::*;

    #[test]
    fn only_exact_codes() {
        for good in ["USD", "EUR", "COP", "MXN", "PEN"] {
            assert_eq!(CurrencyCode::parse(good).map(|c| c.as_str()), Ok(good));
        }
        for bad in ["usd", "US", "ZZZ", "", "DEM"] {
            assert!(CurrencyCode::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_withdrawn_currency_is_known_but_not_active() {
        let active = |code| CurrencyCode::parse(code).unwrap().is_active();
        assert_eq!(
            ["USD", "EUR", "VES", "HRK", "ZWL"].map(active),
            [true, true, true, false, false]
        );
    }
}
