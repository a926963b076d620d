//! Writes the rules' limits into the schemas of the OpenAPI document, each from the rule's own constant, so that the
//! two cannot differ.

use parcelo_types::internal::{
    self, LIMITS,
    Limit::{Characters, ItemsOneTo, MaxItems},
    Text, TypeLimits,
};
use utoipa::openapi::{RefOr, schema::Schema};

use crate::{
    admin::{MAX_IP_ADDRESSES, MAX_LIST_ITEMS},
    carrier,
};

/// The fields of operators' and carriers' requests by type.
#[rustfmt::skip]
const OWN_LIMITS: TypeLimits = &[
    ("CarrierEvents", &[("events", ItemsOneTo(carrier::MAX_EVENTS))]),
    ("CarrierEvent", &[
        ("eventId", Characters(carrier::EVENT_ID)),
        ("trackingNumber", Characters(Text::LOOKUP_NUMBER)),
        ("location", Characters(Text::DATA)),
        ("description", Characters(Text::NOTE)),
        ("carrierCode", Characters(carrier::CARRIER_CODE)),
    ]),
    ("KeyRequest", &[
        ("name", Characters(Text::NAME)),
        ("allowedCountries", ItemsOneTo(MAX_LIST_ITEMS)),
        ("allowedCountries", Characters(Text::DATA)),
        ("ipWhitelist", MaxItems(MAX_IP_ADDRESSES)),
        ("ipWhitelist", Characters(Text::DATA)),
        ("account", Characters(Text::NAME)),
    ]),
    ("WebhookRequest", &[("events", MaxItems(MAX_LIST_ITEMS))]),
    ("CarrierKeyRequest", &[("name", Characters(Text::NAME))]),
    ("AccountRequest", &[("name", Characters(Text::NAME))]),
    ("ReplayRequest", &[("eventId", Characters(Text::DATA))]),
];

/// Writes the limits into the schema of a type that requests of shippers, operators or carriers contain. Any other
/// schema is unchanged.
///
/// ```
/// use parcelo_types::Sender;
/// use parcelo_wire::write_limits;
/// use utoipa::PartialSchema;
/// let mut schema = Sender::schema();
/// write_limits("Sender", &mut schema);
/// let schema = serde_json::to_value(schema)?;
/// assert_eq!(schema["properties"]["fullName"]["maxLength"], 255);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn write_limits(name: &str, schema: &mut RefOr<Schema>) {
    for limits in [LIMITS, OWN_LIMITS] {
        internal::write_limits(limits, name, schema);
    }
}

/// Writes the maximum length of a text that is limited outside the rules.
pub fn limit_length(schema: &mut RefOr<Schema>, field: &str, max: usize) {
    let RefOr::T(Schema::Object(object)) = schema else { return };
    if let Some(RefOr::T(Schema::Object(text))) = object.properties.get_mut(field) {
        text.max_length = Some(max);
    }
}
