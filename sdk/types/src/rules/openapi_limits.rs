//! Writes the validator's limits into the schemas of the OpenAPI document, each from the validator's own constant,
//! so that the two cannot differ.

use rust_decimal::{Decimal, prelude::ToPrimitive};
use utoipa::{
    Number,
    openapi::{
        RefOr,
        schema::{Array, ArrayItems, Object, Schema},
    },
};

use super::{
    contact,
    field_types::{Bounds, Text},
    goods, phone, receiver, requests,
};

/// The limit of a field.
#[derive(Debug)]
pub enum Limit {
    /// A text.
    Characters(Text),
    /// A telephone number.
    Phone,
    /// A number.
    Within(Bounds),
    /// A list with a maximum number of elements.
    MaxItems(usize),
    /// A list with at least one element and a maximum.
    ItemsOneTo(usize),
}

use Limit::{Characters, ItemsOneTo, MaxItems, Phone, Within};

const QUANTITY_BOUNDS: Bounds =
    Bounds::Between(Decimal::ONE, Decimal::from_parts(goods::MAX_QUANTITY, 0, 0, false, 0));

/// The limits of fields by the name of their type.
pub type TypeLimits = &'static [(&'static str, &'static [(&'static str, Limit)])];

/// The fields of requests by type; fields of checked types, such as tracking numbers, have a pattern already.
#[rustfmt::skip]
pub const LIMITS: TypeLimits = &[
    ("OrderRequest", &[
        ("externalOrderId", Characters(Text::REFERENCE)),
        ("customerReference", Characters(Text::REFERENCE)),
        ("products", MaxItems(goods::MAX_PRODUCTS)),
    ]),
    ("Sender", &[
        ("fullName", Characters(Text::LINE)),
        ("companyName", Characters(Text::LINE)),
        ("phone", Phone),
        ("email", Characters(contact::EMAIL)),
    ]),
    ("SenderAddress", &[
        ("line1", Characters(Text::LINE)),
        ("line2", Characters(Text::LINE)),
        ("city", Characters(Text::LINE)),
        ("state", Characters(Text::LINE)),
        ("zipCode", Characters(Text::LINE)),
    ]),
    ("Receiver", &[
        ("fullName", Characters(Text::LINE)),
        ("companyName", Characters(Text::LINE)),
        ("phone", Phone),
        ("email", Characters(contact::EMAIL)),
        ("nationalId", Characters(Text::DATA)),
    ]),
    ("ReceiverAddress", &[
        ("line1", Characters(Text::LINE)),
        ("line2", Characters(Text::LINE)),
        ("city", Characters(Text::LINE)),
        ("province", Characters(Text::LINE)),
        ("zipCode", Characters(Text::LINE)),
        ("deliveryInstructions", Characters(receiver::INSTRUCTIONS)),
    ]),
    ("ParcelDetails", &[
        ("weightLbs", Within(goods::WEIGHT_LBS_BOUNDS)),
        ("weightKg", Within(goods::WEIGHT_KG_BOUNDS)),
        ("lengthCm", Within(goods::LENGTH_CM_BOUNDS)),
        ("widthCm", Within(goods::LENGTH_CM_BOUNDS)),
        ("heightCm", Within(goods::LENGTH_CM_BOUNDS)),
        ("declaredValue", Within(goods::MONEY_BOUNDS)),
    ]),
    ("CustomsInfo", &[
        ("description", Characters(Text::NOTE)),
        ("hsCode", Characters(Text::DATA)),
    ]),
    ("Product", &[
        ("description", Characters(Text::NOTE)),
        ("quantity", Within(QUANTITY_BOUNDS)),
        ("unitFobValue", Within(goods::MONEY_BOUNDS)),
        ("unitNetWeightKg", Within(goods::WEIGHT_KG_BOUNDS)),
        ("hsCode", Characters(Text::DATA)),
        ("sku", Characters(Text::DATA)),
    ]),
    ("VoidRequest", &[
        ("trackingNumbers", ItemsOneTo(requests::MAX_TRACKING_NUMBERS)),
        ("trackingNumbers", Characters(Text::LOOKUP_NUMBER)),
        ("reason", Characters(Text::NOTE)),
    ]),
    ("ReprintRequest", &[("reason", Characters(Text::NOTE))]),
    ("LabelBatchRequest", &[
        ("trackingNumbers", ItemsOneTo(requests::MAX_TRACKING_NUMBERS)),
        ("trackingNumbers", Characters(Text::LOOKUP_NUMBER)),
    ]),
    ("BatchTrackingRequest", &[
        ("trackingNumbers", ItemsOneTo(requests::MAX_TRACKING_NUMBERS)),
        ("trackingNumbers", Characters(Text::LOOKUP_NUMBER)),
    ]),
    ("ManifestRequest", &[
        ("trackingNumbers", ItemsOneTo(requests::MAX_MANIFEST_PARCELS)),
        ("trackingNumbers", Characters(Text::LOOKUP_NUMBER)),
        ("flightNumber", Characters(Text::DATA)),
        ("originAirport", Characters(Text::DATA)),
        ("destinationAirport", Characters(Text::DATA)),
        ("reference", Characters(Text::REFERENCE)),
    ]),
];

/// Writes some of `limits` into the schema of the type `name`; any other schema is unchanged.
pub fn write_limits(limits: TypeLimits, name: &str, schema: &mut RefOr<Schema>) {
    let RefOr::T(Schema::Object(object)) = schema else { return };
    for (field, limit) in limits.iter().filter(|(of, _)| *of == name).flat_map(|(_, all)| *all) {
        let min_length = usize::from(object.required.iter().any(|required| required == field));
        if let Some(RefOr::T(property)) = object.properties.get_mut(*field) {
            limit.write(property, min_length);
        }
    }
}

impl Limit {
    /// Writes the limit into a property, or into its elements if it is a list of texts. A required text has
    /// `min_length` 1.
    fn write(&self, property: &mut Schema, min_length: usize) {
        match (property, self) {
            (Schema::Object(text), Characters(bound)) => write_characters(text, *bound, min_length),
            (Schema::Object(text), Phone) => {
                write_characters(text, Text::DATA, min_length);
                text.pattern = Some(phone::pattern());
            }
            (Schema::Object(number), Within(bounds)) => write_bounds(number, *bounds),
            (Schema::Array(list), MaxItems(max)) => list.max_items = Some(*max),
            (Schema::Array(list), ItemsOneTo(max)) => {
                (list.min_items, list.max_items) = (Some(1), Some(*max));
            }
            (Schema::Array(list), Characters(bound)) => write_item_characters(list, *bound),
            _ => {}
        }
    }
}

fn write_characters(text: &mut Object, bound: Text, min_length: usize) {
    text.min_length = Some(min_length).filter(|min_length| *min_length > 0);
    text.max_length = Some(bound.max_characters());
}

fn write_item_characters(list: &mut Array, bound: Text) {
    if let ArrayItems::RefOrSchema(each) = &mut list.items
        && let RefOr::T(Schema::Object(text)) = each.as_mut()
    {
        write_characters(text, bound, 0);
    }
}

fn write_bounds(number: &mut Object, bounds: Bounds) {
    match bounds {
        Bounds::AboveZero(max, _) => {
            number.exclusive_minimum = Some(Number::Int(0));
            number.maximum = json_number(max);
        }
        Bounds::Between(min, max) => {
            (number.minimum, number.maximum) = (json_number(min), json_number(max));
        }
    }
}

fn json_number(bound: Decimal) -> Option<Number> {
    let whole = bound.to_isize().filter(|_| bound.is_integer()).map(Number::Int);
    whole.or_else(|| bound.to_f64().map(Number::Float))
}
