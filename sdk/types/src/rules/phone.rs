//! Telephone numbers: the international form, and a country code that fits the address.

use super::{
    reader::FieldValue,
    texts::{FaultText, faults, warnings},
};
use crate::model::CountryCode;

/// Permitted numbers of digits, including the country code: at most 15 (ITU-T E.164). A number of fewer than 7 is
/// assumed to be a local one without its country code.
const E164_DIGITS: std::ops::RangeInclusive<usize> = 7..=15;

/// Returns the rule of [`check`] as a pattern for the OpenAPI document, with the white space that is trimmed before it.
#[cfg(feature = "utoipa")]
pub(crate) fn pattern() -> String {
    let (min, max) = (E164_DIGITS.start() - 1, E164_DIGITS.end() - 1);
    format!(r"^\s*\+[ ().-]*[1-9]([ ().-]*[0-9]){{{min},{max}}}[ ().-]*\s*$")
}

/// Accepts a number with `+`, a country code and the usual separators (spec: with country code). It is kept as written,
/// because the driver reads it on the label.
pub(crate) fn check(phone: &str) -> Result<&str, FaultText> {
    let fits = phone.starts_with('+')
        && digits(phone).all(|c| c.is_ascii_digit())
        && E164_DIGITS.contains(&digits(phone).count())
        && digits(phone).next() != Some('0');
    if fits { Ok(phone) } else { Err(faults::PHONE) }
}

/// Warns if the calling code belongs to another country. This is not a fault, because people keep their number when they
/// move.
pub(crate) fn check_country(phone: &FieldValue<'_, &str>, country: CountryCode) {
    let belongs = |phone: &str| {
        let mut digits = digits(phone);
        country.calling_code().chars().all(|expected| digits.next() == Some(expected))
    };
    if phone.value().is_some_and(|phone| !belongs(phone)) {
        phone.warn(warnings::phone_country(country));
    }
}

/// Returns the digits after the `+`, without separators.
fn digits(phone: &str) -> impl Iterator<Item = char> + '_ {
    phone.chars().skip(1).filter(|c| !matches!(c, ' ' | '(' | ')' | '.' | '-'))
}
