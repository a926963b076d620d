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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Awb(Box<str>);

impl Awb {
    /// Parses an air waybill number, with or without its hyphen, and checks its last digit.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        let (airline, serial, number) = parts(text).ok_or(InvalidValue::AWB)?;
        if check_digit(number) != number % 10 {
            return Err(InvalidValue::AWB);
        }
        Ok(Self(format!("{airline}-{serial}").into()))
    }

    /// Returns the check digit that a number should have; `None` if the rest of the number is malformed.
    pub(crate) fn expected_check_digit(text: &str) -> Option<u32> {
        parts(text).map(|(_, _, number)| check_digit(number))
    }

    /// Returns the number with its hyphen.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the digits of the airline, those of the serial number, and the value of the latter.
fn parts(text: &str) -> Option<(&str, &str, u32)> {
    let (airline, serial) = text.split_at_checked(3)?;
    let serial = serial.strip_prefix('-').unwrap_or(serial);
    let is_whole =
        serial.len() == 8 && airline.bytes().chain(serial.bytes()).all(|b| b.is_ascii_digit());
    Some((airline, serial, serial.parse().ok().filter(|_| is_whole)?))
}

/// Returns the first seven digits of a serial number modulo 7.
fn check_digit(serial: u32) -> u32 {
    serial / 10 % 7
}

checked_text!(Awb, r"^\d{3}-?\d{8}$", "176-12345675");
