//! The rules of single countries for a receiver beyond the common rules: a file for each country with special rules
//! (docs/api.md, Country rules).

mod colombia;
mod ecuador;
mod mexico;

use super::{address_formats::AddressFormat, postal, reader::FieldValue, texts::warnings};
use crate::model::{CountryCode, IdType};

/// The receiver's fields that a country's rules look at.
pub(crate) struct ReceiverFields<'a> {
    pub(crate) national_id: FieldValue<'a, &'a str>,
    pub(crate) id_type: FieldValue<'a, IdType>,
    pub(crate) city: FieldValue<'a, &'a str>,
    pub(crate) province: FieldValue<'a, &'a str>,
    /// Mexico's other name for `province`, and absent for every other country; its faults name `province`.
    pub(crate) state: FieldValue<'a, &'a str>,
    pub(crate) zip: FieldValue<'a, &'a str>,
}

/// Checks the receiver by the rules of the destination. In a country without special rules, an incomplete address or an
/// unusual postal code is only a warning.
pub(crate) fn check(receiver: &ReceiverFields<'_>, country: CountryCode) {
    match country {
        CountryCode::EC => ecuador::check(receiver),
        CountryCode::MX => mexico::check(receiver),
        CountryCode::CO => colombia::check(receiver),
        _ => {
            postal::check_form(&receiver.zip, country);
            check_present(receiver, country);
        }
    }
}

/// Warns if the address lacks a part that the country's post requires.
fn check_present(receiver: &ReceiverFields<'_>, country: CountryCode) {
    let format = AddressFormat::for_country(country);
    if format.requires_zip && receiver.zip.is_absent() {
        receiver.zip.warn(warnings::POSTAL_CODE_MISSING);
    }
    if format.requires_state && receiver.province.is_absent() {
        receiver.province.warn(warnings::STATE_MISSING);
    }
}
