//! The sender of an order (spec: Sender).

use super::{
    contact,
    field_types::Text,
    fields::{
        Fields,
        Kind::{Leaf, Nested},
    },
    phone, postal,
    reader::{FieldValue, Object},
    regions::Regions,
    texts::warnings,
};
use crate::model::{CountryCode, Sender, SenderAddress};

pub(crate) const FIELDS: Fields = Fields(&[
    ("fullName", Leaf),
    ("companyName", Leaf),
    ("phone", Leaf),
    ("email", Leaf),
    ("address", Nested(&ADDRESS)),
]);

const ADDRESS: Fields = Fields(&[
    ("line1", Leaf),
    ("line2", Leaf),
    ("city", Leaf),
    ("state", Leaf),
    ("zipCode", Leaf),
    ("country", Leaf),
]);

/// Reads the sender; `None` if a required field is missing or a field is invalid. Faults that a rule adds to valid
/// fields are only in the report.
pub(crate) fn read_sender(sender: &Object<'_>) -> Option<Sender> {
    let full_name = sender.text("fullName", Text::PERSON).required();
    let company_name = sender.text("companyName", Text::PERSON).optional();
    let phone = sender.text("phone", Text::DATA).and_then(phone::check).check_present();
    let email = sender.text("email", contact::EMAIL).and_then(contact::parse_email).optional();
    let address = sender.object("address").required();
    let address = address.as_ref().and_then(|at| read_address(at, &phone));
    Some(Sender {
        phone: phone.optional()?.to_owned(),
        full_name: full_name?.to_owned(),
        company_name: company_name.map(str::to_owned),
        email: email.map(str::to_owned),
        address: address?,
    })
}

/// Reads the address; `None` if a required field is missing or a field is invalid.
fn read_address(address: &Object<'_>, phone: &FieldValue<'_, &str>) -> Option<SenderAddress> {
    let line1 = address.text("line1", Text::LINE).required();
    let line2 = address.text("line2", Text::LINE).optional();
    let city = address.text("city", Text::LINE).required();
    let state = address.text("state", Text::LINE);
    let zip = address.text("zipCode", Text::LINE);
    let country = address.text("country", Text::CODE).and_then(contact::parse_country).required();
    if let Some(country) = country {
        phone::check_country(phone, country);
        postal::check_form(&zip, country);
        check_state(&state, country);
    }
    Some(SenderAddress {
        line1: line1?.to_owned(),
        line2: line2.map(str::to_owned),
        city: city?.to_owned(),
        state: state.optional().map(str::to_owned),
        zip_code: zip.optional().map(str::to_owned),
        country: country?,
    })
}

/// Warns of an unknown state (spec: state/province for US and CA; optional, so never a fault).
fn check_state(state: &FieldValue<'_, &str>, country: CountryCode) {
    if !matches!(country.as_str(), "US" | "CA") {
        return;
    }
    if state.value().is_some_and(|name| Regions::for_country(country).find(name).is_none()) {
        state.warn(warnings::state_unknown(country));
    }
}
