//! Currency codes of ISO 4217.

use super::{InvalidValue, macros::checked_text};

/// An active ISO 4217 currency, in exact upper case; `USD` unless the order says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CurrencyCode(iso_currency::Currency);

impl CurrencyCode {
    /// The default of the spec.
    pub const USD: Self = Self(iso_currency::Currency::USD);

    /// Reads a code.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        iso_currency::Currency::from_code(text).map(Self).ok_or(InvalidValue::CurrencyCode)
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
    fn only_exact_active_codes() {
        for good in ["USD", "EUR", "COP", "MXN", "PEN"] {
            assert_eq!(CurrencyCode::parse(good).map(|c| c.as_str()), Ok(good));
        }
        for bad in ["usd", "US", "ZZZ", "", "DEM"] {
            assert!(CurrencyCode::parse(bad).is_err(), "{bad}");
        }
    }
}
