//! The receiver's part of an order (spec: Receiver); what one country asks stands in its own file.

use serde_json::Value;

use super::{
    Destinations, colombia, ecuador,
    fields::{
        Fields,
        Kind::{Leaf, Nested},
    },
    kinds::Text,
    mexico, phone, places, postal,
    reader::{Entry, Object},
    texts::{Wrong, faults, warnings},
};
use crate::model::{CountryCode, IdType, Receiver, ReceiverAddress};

pub(crate) const FIELDS: Fields = Fields(&[
    ("fullName", Leaf),
    ("phone", Leaf),
    ("email", Leaf),
    ("nationalId", Leaf),
    ("idType", Leaf),
    ("address", Nested(&ADDRESS)),
]);

const ADDRESS: Fields = Fields(&[
    ("line1", Leaf),
    ("city", Leaf),
    ("province", Leaf),
    // Mexico's second spelling of `province`; elsewhere it is unknown.
    ("state", Leaf),
    ("zipCode", Leaf),
    ("country", Leaf),
    ("deliveryInstructions", Leaf),
]);

/// What the driver should know.
pub(crate) const INSTRUCTIONS: Text = Text::NOTE.most(500);

/// What a country's own rules look at.
pub(crate) struct Destination<'a> {
    pub(crate) national_id: Entry<'a, &'a str>,
    pub(crate) id_type: Entry<'a, IdType>,
    pub(crate) city: Entry<'a, &'a str>,
    pub(crate) province: Entry<'a, &'a str>,
    /// Read for Mexico only; it stands where `province` stands.
    pub(crate) state: Entry<'a, &'a str>,
    pub(crate) zip: Entry<'a, &'a str>,
}

/// The country that an order goes to, when it is an assigned code, whatever else is wrong.
///
/// ```
/// use parcelo::CountryCode;
/// use parcelo::rules::destination;
/// let body = serde_json::json!({"receiver": {"address": {"country": "EC", "city": 7}}});
/// assert_eq!(destination(&body), Some(CountryCode::EC));
/// ```
pub fn destination(body: &Value) -> Option<CountryCode> {
    let code = body.get("receiver")?.get("address")?.get("country")?.as_str()?;
    CountryCode::parse(code).ok()
}

/// Reads the receiver; `None` when a fault was found.
pub(crate) fn read(receiver: &Object<'_>, destinations: &Destinations) -> Option<Receiver> {
    let full_name = receiver.text("fullName", Text::PERSON).required();
    let phone = receiver.text("phone", Text::DATA).then(phone::check).needed();
    let email = receiver.text("email", places::EMAIL).then(places::email).optional();
    let national_id = receiver.text("nationalId", Text::DATA);
    let id_type = receiver.text("idType", Text::CODE).then(id_type);
    let address = receiver.object("address").required()?;
    let supported = |country| supported(country, destinations);
    let country = address.text("country", Text::CODE).then(places::country).then(supported);
    let (country, state) = (country.required(), read_state(&address));
    let to = Destination {
        national_id,
        id_type,
        city: address.text("city", Text::LINE).needed(),
        province: address.text("province", Text::LINE),
        state,
        zip: address.text("zipCode", Text::LINE),
    };
    let lines = read_lines(&address);
    let country = country?;
    phone::check_country(&phone, country);
    check(&to, country);
    Some(Receiver {
        full_name: full_name?.to_owned(),
        phone: phone.optional()?.to_owned(),
        email: email.map(str::to_owned),
        national_id: to.national_id.optional().map(str::to_owned),
        id_type: to.id_type.optional(),
        address: ReceiverAddress {
            line1: lines.0?.to_owned(),
            city: to.city.optional()?.to_owned(),
            province: to.province.optional().or(to.state.optional()).map(str::to_owned),
            zip_code: to.zip.optional().map(str::to_owned),
            country,
            delivery_instructions: lines.1.map(str::to_owned),
        },
    })
}

/// The street, and what the driver should know.
fn read_lines<'a>(address: &'a Object<'a>) -> (Option<&'a str>, Option<&'a str>) {
    let instructions = address.text("deliveryInstructions", INSTRUCTIONS);
    (address.text("line1", Text::LINE).required(), instructions.optional())
}

/// The second spelling of `province`: Mexico's; anywhere else the field is not part of the API.
fn read_state<'a>(address: &'a Object<'a>) -> Entry<'a, &'a str> {
    let members = address.members();
    let in_mexico = members.get("country").and_then(Value::as_str) == Some("MX");
    if !in_mexico && members.get("state").is_some_and(|state| !state.is_null()) {
        address.place("state").warn(warnings::unknown_field("state", Some("province")));
    }
    if in_mexico {
        address.respelled("state", "province", Text::LINE)
    } else {
        address.absent("province")
    }
}

fn check(to: &Destination<'_>, country: CountryCode) {
    match country {
        CountryCode::EC => ecuador::check(to),
        CountryCode::MX => mexico::check(to),
        CountryCode::CO => colombia::check(to),
        _ => postal::check_form(&to.zip, country),
    }
}

fn supported(country: CountryCode, destinations: &Destinations) -> Result<CountryCode, Wrong> {
    if destinations.supports(country) {
        Ok(country)
    } else {
        Err(faults::destination_unsupported())
    }
}

fn id_type(word: &str) -> Result<IdType, Wrong> {
    match IdType::from(word) {
        IdType::Unknown(word) => {
            let word = word.trim().to_lowercase();
            let meant = IdType::KNOWN.iter().find(|known| known.code() == word);
            Err(faults::id_type().suggest(meant.map(IdType::code)))
        }
        known => Ok(known),
    }
}
