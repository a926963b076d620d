//! The legacy operations' requests and responses, for the OpenAPI document.

use parcelo_domain::legacy;
use parcelo_types::{
    ErrorCode::{
        self, AuthCountryNotAllowed, LabelNotFound, LabelVoided, NotFound, ParcelDuplicateTracking,
        ParcelNotFound, ParcelNotVoidable, PreconditionFailed, ValidationFailed,
    },
    IdType, LabelFormat, Operation, OrderRequest,
};
use serde_json::{Map, Value, json};
use utoipa::openapi::{RefOr, schema::Schema};

use crate::http::openapi::{
    call::Call,
    operation_doc::{QueryParameter, ResponseDoc, Schemas, schema_name, text_schema},
};
const ORDER: &str = "LegacyOrder";
const CREATED: &str = "LegacyCreated";
const CANCELLED: &str = "LegacyCancelled";
const TRACKED: &str = "LegacyTracked";
pub(in crate::http) const REFUSED: &str = "LegacyError";

pub(in crate::http) fn calls() -> Vec<Call> {
    vec![
        Call::new(Operation::LegacyCreateOrder, "Create an order in the legacy spelling")
            .with_body_schema(ORDER.to_owned(), example())
            .with_response(ResponseDoc::with_schema("201", "The order was created.", CREATED))
            .with_response(
                ResponseDoc::with_schema("200", "The first response again.", CREATED)
                    .with_replay_header(),
            )
            .with_refusals(&[AuthCountryNotAllowed, ParcelDuplicateTracking]),
        Call::new(Operation::LegacyCancelOrder, "Void an order in the legacy spelling")
            .with_response(ResponseDoc::with_schema("200", "The order is void.", CANCELLED))
            .with_refusals(&[ValidationFailed, ParcelNotFound, ParcelNotVoidable]),
        Call::new(Operation::LegacyTracking, "Track up to 20 parcels in the legacy spelling")
            .query(&[QueryParameter(
                "number",
                "1-20 tracking numbers, separated by commas.",
                text_schema,
            )])
            .with_response(ResponseDoc::with_schema("200", "A result for each number.", TRACKED))
            .with_refusals(&[ValidationFailed]),
        Call::new(Operation::LegacyLabel, "Download a label file by its name")
            .with_response(ResponseDoc::file("The file.", &LabelFormat::ALL))
            .with_response(ResponseDoc::not_modified())
            .with_refusals(&[
                NotFound,
                ParcelNotFound,
                LabelNotFound,
                LabelVoided,
                PreconditionFailed,
            ]),
    ]
}

/// Returns an example of an order.
fn example() -> Value {
    json!({
        "reference": "PO-77",
        "sender_name": "Ana Ruiz", "sender_phone": "+13055550100",
        "sender_address": "8400 NW 25th St", "sender_city": "Miami", "sender_country": "US",
        "receiver_name": "Luis Paredes", "receiver_phone": "+593991234567",
        "receiver_document": "1714307103", "receiver_document_type": "cedula",
        "receiver_address": "Av. Amazonas N34-451", "receiver_city": "Quito",
        "receiver_province": "Pichincha", "receiver_zip": "170515", "receiver_country": "EC",
        "weight_kg": 1.25, "value": 45.5, "description": "Cotton shirts",
    })
}

/// Returns the schemas of the legacy API's requests and responses. The fields of an order have the limits in `all`.
pub(in crate::http) fn schemas(all: &[(String, RefOr<Schema>)]) -> Schemas {
    let text = || json!({ "type": "string" });
    let event = response_schema(&["status", "date", "location"], &json!({}));
    let record = json!({
        "type": "object",
        "required": ["tracking_number"],
        "properties": {
            "tracking_number": text(), "status": text(), "status_name": text(),
            "estimated_delivery": text(), "error": text(),
            "events": { "type": "array", "items": event },
        },
    });
    let fields = || json!({ "type": "object", "additionalProperties": text() });
    let tracked = json!({ "tracking": { "type": "array", "items": record } });
    let created = ["ok", "id", "tracking_number", "status", "label_url"];
    let code = json!({ "$ref": format!("#/components/schemas/{}", schema_name::<ErrorCode>()) });
    let refused = json!({ "error": code, "fields": fields(), "fields_es": fields() });
    let shapes = [
        (ORDER, order_schema(all)),
        (CREATED, response_schema(&created, &json!({}))),
        (CANCELLED, response_schema(&["ok", "tracking_number", "status"], &json!({}))),
        (TRACKED, response_schema(&["ok"], &tracked)),
        (REFUSED, response_schema(&["ok", "error", "message", "message_es"], &refused)),
    ];
    let read = |(name, shape): (&str, Value)| {
        serde_json::from_value(shape).ok().map(|schema| (name.to_owned(), schema))
    };
    shapes.into_iter().filter_map(read).collect()
}

/// Returns an object whose `required` members are texts, except `ok`, with more members in `further`.
fn response_schema(required: &[&str], further: &Value) -> Value {
    let member = |name: &&str| {
        let kind = if *name == "ok" { "boolean" } else { "string" };
        ((*name).to_owned(), json!({ "type": kind }))
    };
    let mut properties: Map<_, _> = required.iter().map(member).collect();
    properties.extend(further.as_object().cloned().unwrap_or_default());
    json!({ "type": "object", "required": required, "properties": properties })
}

const REQUIRED: [&str; 11] = [
    "sender_name",
    "sender_phone",
    "sender_address",
    "sender_city",
    "sender_country",
    "receiver_name",
    "receiver_phone",
    "receiver_address",
    "receiver_city",
    "receiver_country",
    "value",
];

/// The limits that a field of the legacy order shares with the field it is translated to.
const LIMITS: [&str; 5] = ["maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum"];

/// Returns the schema of an order, made from the table that translates its fields.
fn order_schema(all: &[(String, RefOr<Schema>)]) -> Value {
    let all: Map<_, _> = all.iter().map(|(name, schema)| (name.clone(), json!(schema))).collect();
    let whole = schema_name::<OrderRequest>();
    let field = |(name, stands_for): &(&str, &str)| {
        let kind =
            if ["weight_kg", "weight_lb", "value"].contains(name) { "number" } else { "string" };
        let is_required = REQUIRED.contains(name);
        let kind = if is_required { json!(kind) } else { json!([kind, "null"]) };
        let description = json!(format!("`{stands_for}`"));
        let mut field =
            Map::from_iter([("type".to_owned(), kind), ("description".to_owned(), description)]);
        let ours = find_property(&all, &whole, stands_for);
        for limit in LIMITS.iter().chain(is_required.then_some(&"minLength")) {
            if let Some(bound) = ours.and_then(|ours| ours.get(limit)) {
                field.insert((*limit).to_owned(), bound.clone());
            }
        }
        ((*name).to_owned(), field.into())
    };
    let mut properties: Map<_, _> = legacy::FIELDS.iter().map(field).collect();
    // A reference, so that generated programs define the type only once.
    let id_type = json!({ "$ref": format!("#/components/schemas/{}", schema_name::<IdType>()) });
    properties.insert(
        "receiver_document_type".to_owned(),
        json!({ "oneOf": [id_type, { "type": "null" }], "description": "`receiver.idType`" }),
    );
    json!({ "type": "object", "required": REQUIRED, "properties": properties })
}

/// Returns the property at a path below a type, such as `sender.address.city`.
fn find_property<'s>(all: &'s Map<String, Value>, owner: &str, path: &str) -> Option<&'s Value> {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let property = all.get(owner)?.get("properties")?.get(first)?;
    let referred = property.pointer("/oneOf/0").unwrap_or(property).get("$ref");
    match referred.and_then(Value::as_str).and_then(|path| path.rsplit('/').next()) {
        Some(owner) if rest.is_empty() => all.get(owner),
        Some(owner) => find_property(all, owner, rest),
        None => Some(property),
    }
}
