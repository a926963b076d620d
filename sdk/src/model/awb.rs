//! Air waybill numbers.

use super::{InvalidValue, macros::checked_text};

/// An air waybill number: an airline's three digits, and an eight-digit serial number whose last digit is the first
/// seven modulo 7. It is the same number with and without its hyphen, and is displayed with it.
///
/// ```
/// # use parcelo::Awb;
/// assert_eq!(Awb::parse("17612345675")?.as_str(), "176-12345675");
/// assert!(Awb::parse("176-12345676").is_err());
/// # Ok::<(), parcelo::InvalidValue>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Awb(Box<str>);

impl Awb {
    /// Parses an air waybill number, with or without its hyphen, and checks its last digit.
    ///
    /// Errors: [`InvalidValue::Awb`].
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        let (airline, serial) = text.split_at_checked(3).ok_or(InvalidValue::Awb)?;
        let serial = serial.strip_prefix('-').unwrap_or(serial);
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if serial.len() != 8 || !digits(airline) || !digits(serial) {
            return Err(InvalidValue::Awb);
        }
        let number: u32 = serial.parse().map_err(|_| InvalidValue::Awb)?;
        if number / 10 % 7 != number % 10 {
            return Err(InvalidValue::Awb);
        }
        Ok(Self(format!("{airline}-{serial}").into()))
    }

    /// Returns the number with its hyphen.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

checked_text!(Awb, r"^\d{3}-?\d{8}$", "176-12345675");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_digit_is_the_serial_modulo_seven() {
        for good in ["176-12345675", "020-81140743", "17612345675"] {
            assert!(Awb::parse(good).is_ok(), "{good}");
        }
        for bad in
            ["176-12345674", "176--12345675", "17-612345675", "", "ABC-12345675", "１76-12345675"]
        {
            assert!(Awb::parse(bad).is_err(), "{bad}");
        }
    }
}
