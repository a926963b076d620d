//! What single countries ask of a receiver beyond the common rules: a file for each country that has rules of
//! its own (docs/api.md, Country rules).

mod colombia;
mod ecuador;
mod mexico;

use super::{postal, reader::FieldValue};
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

/// Checks the receiver by the rules of the destination; a country without rules of its own has only the form
/// of its postal codes checked.
pub(crate) fn check(receiver: &ReceiverFields<'_>, country: CountryCode) {
    match country {
        CountryCode::EC => ecuador::check(receiver),
        CountryCode::MX => mexico::check(receiver),
        CountryCode::CO => colombia::check(receiver),
        _ => postal::check_form(&receiver.zip, country),
    }
}
