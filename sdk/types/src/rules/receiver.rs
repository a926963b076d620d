//! The receiver of an order (spec: Receiver); the rules of single countries are in `countries`.

use super::{
    Destinations, contact,
    countries::{self, ReceiverFields},
    field_types::Text,
    fields::{
        Fields,
        Kind::{Leaf, Nested},
    },
    normalize::fold,
    phone,
    reader::{FieldValue, Object},
    texts::{FaultText, faults, warnings},
};
use crate::model::{
    CountryCode, IdType, Receiver, ReceiverAddress,
    json::{Body, Json},
};

pub(crate) const FIELDS: Fields = Fields(&[
    ("fullName", Leaf),
    ("companyName", Leaf),
    ("phone", Leaf),
    ("email", Leaf),
    ("nationalId", Leaf),
    ("idType", Leaf),
    ("address", Nested(&ADDRESS)),
]);

const ADDRESS: Fields = Fields(&[
    ("line1", Leaf),
    ("line2", Leaf),
    ("city", Leaf),
    ("province", Leaf),
    // Mexico's second name for `province`; for any other country it is an unknown field.
    ("state", Leaf),
    ("zipCode", Leaf),
    ("country", Leaf),
    ("deliveryInstructions", Leaf),
]);

/// Notes for the driver (spec: Limits, 500 characters).
pub(crate) const INSTRUCTIONS: Text = Text::NOTE.with_max(500);

/// Returns the destination country of an order, even if the rest of the order is invalid; `None` if it is not an
/// assigned code. It is needed before the order is checked, because the API key may not ship to every country.
///
/// ```
/// use parcelo::CountryCode;
/// use parcelo_types::internal::destination;
/// let body = serde_json::json!({"receiver": {"address": {"country": "EC", "city": 7}}});
/// assert_eq!(destination(&body), Some(CountryCode::EC));
/// ```
pub fn destination<'a>(body: impl Into<Body<'a>>) -> Option<CountryCode> {
    let body = body.into();
    let code = body.member("receiver")?.member("address")?.member("country")?.as_text()?;
    CountryCode::parse(code).ok()
}

/// Reads the receiver; `None` if a required field is missing or a field is invalid. Faults that a rule adds to valid
/// fields, such as those of `countries`, are only in the report.
pub(crate) fn read_receiver(
    receiver: &Object<'_>,
    destinations: &Destinations,
) -> Option<Receiver> {
    let full_name = receiver.text("fullName", Text::PERSON).required();
    let company_name = receiver.lenient_text("companyName", Text::PERSON);
    // Fields that a rule below examines are checked for presence and kept as fields, so that a fault can be added.
    let phone = receiver.text("phone", Text::DATA).and_then(phone::check).check_present();
    let email = receiver.text("email", contact::EMAIL).and_then(contact::parse_email).optional();
    let national_id = receiver.text("nationalId", Text::DATA);
    let id_type = receiver.text("idType", Text::CODE).and_then(parse_id_type);
    let address = receiver.object("address").required()?;
    let supported = |country| check_supported(country, destinations);
    let country =
        address.text("country", Text::CODE).and_then(contact::parse_country).and_then(supported);
    let (country, state) = (country.required(), read_state(&address));
    let to = ReceiverFields {
        national_id,
        id_type,
        city: address.text("city", Text::LINE).check_present(),
        province: address.text("province", Text::LINE),
        state,
        zip: address.text("zipCode", Text::LINE),
    };
    let line1 = address.text("line1", Text::LINE).required();
    let line2 = address.lenient_text("line2", Text::LINE);
    let instructions = address.text("deliveryInstructions", INSTRUCTIONS).optional();
    let country = country?;
    phone::check_country(&phone, country);
    countries::check(&to, country);
    Some(Receiver {
        full_name: full_name?.to_owned(),
        company_name,
        phone: phone.optional()?.to_owned(),
        email: email.map(str::to_owned),
        national_id: to.national_id.optional().map(str::to_owned),
        id_type: to.id_type.optional(),
        address: ReceiverAddress {
            line1: line1?.to_owned(),
            line2,
            city: to.city.optional()?.to_owned(),
            province: to.province.optional().or(to.state.optional()).map(str::to_owned),
            zip_code: to.zip.optional().map(str::to_owned),
            country,
            delivery_instructions: instructions.map(str::to_owned),
        },
    })
}

/// Reads `state`, the second name of `province`: Mexico has states, and the spec calls them that. For any other country the
/// field is not part of the API.
fn read_state<'a>(address: &'a Object<'a>) -> FieldValue<'a, &'a str> {
    let members = address.members();
    let in_mexico = members.get("country").and_then(Json::as_text) == Some("MX");
    if !in_mexico && members.get("state").is_some_and(|state| !matches!(state, Json::Null)) {
        address.field("state").warn(warnings::unknown_field("state", Some("province")));
    }
    if in_mexico {
        address.text_alias("state", "province", Text::LINE)
    } else {
        address.absent("province")
    }
}

/// Returns the country if the service ships to it.
pub fn check_supported(
    country: CountryCode,
    destinations: &Destinations,
) -> Result<CountryCode, FaultText> {
    if destinations.supports(country) { Ok(country) } else { Err(faults::DESTINATION_UNSUPPORTED) }
}

/// Parses a kind of national id; the fault of a misspelt one suggests the right code.
fn parse_id_type(word: &str) -> Result<IdType, FaultText> {
    match IdType::from(word) {
        IdType::Unknown(word) => {
            let word = fold(&word);
            let meant = IdType::KNOWN.iter().find(|known| known.code() == word);
            Err(faults::ID_TYPE.suggest(meant.map(IdType::code)))
        }
        known => Ok(known),
    }
}
