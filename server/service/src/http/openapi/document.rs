//! The OpenAPI document of the API, assembled from the `description` modules of the handlers and the tables of
//! operations and errors. Only tests assemble it; the server sends the [file that they check](super).

use parcelo_types::{
    ErrorCode, IdempotencyKey, Operation,
    internal::{Auth, ErrorEnvelope, Idempotency, Meta, header},
};
use utoipa::{
    PartialSchema,
    openapi::{
        ComponentsBuilder, OpenApi, OpenApiBuilder, RefOr,
        path::Parameter,
        schema::{Schema, Type},
        security::{ApiKey, ApiKeyValue, SecurityScheme},
    },
};

use super::{
    call::{self, Call},
    operation_doc::{self, add_schema, header_parameter, type_schema},
    operation_group, webhooks,
};
use crate::http::{
    carriers, health, labels, legacy, manifests, orders, parcels, public, sandbox, tracking,
};

const KEY: &str = "apiKey";
const CARRIER_KEY: &str = "carrierKey";

const ABOUT: &str = "Parcel orders with labels, from their creation to their delivery. A key for the \
    sandbox (`pk_test_…`) works on the sandbox's address, a live key (`pk_live_…`) on production's. \
    Every refusal has a code, an English and a Spanish text, and the id of its request.";

/// The groups of calls, with their descriptions.
const TAGS: &[(&str, &str)] = &[
    ("orders", "Orders: created with their labels, and voided."),
    ("manifests", "Manifests: the parcels that travel under an air waybill."),
    ("tracking", "Where parcels are."),
    ("track", "Where a parcel is, for anyone who has its number."),
    ("labels", "Labels: what is known about them, their files, reprints."),
    ("health", "What an API key is and may do."),
    ("parcels", "The list of parcels."),
    ("sandbox", "What only a sandbox can do."),
    ("carrier", "What carriers report."),
    ("legacy", "The API before `/api/v1`, for programs that still use it."),
    ("webhooks", "What is sent to an account's webhook."),
];

/// Returns the descriptions of all operations.
fn calls() -> Vec<Call> {
    let all = [
        orders::description::calls(),
        manifests::description::calls(),
        tracking::description::calls(),
        labels::description::calls(),
        parcels::description::calls(),
        health::description::calls(),
        sandbox::description::calls(),
        public::description::calls(),
        carriers::description::calls(),
        legacy::description::calls(),
    ];
    all.into_iter().flatten().collect()
}

fn service() -> OpenApi {
    let mut schemas = webhooks::schemas();
    add_schema::<Meta>(&mut schemas);
    add_schema::<ErrorEnvelope>(&mut schemas);
    add_schema::<IdempotencyKey>(&mut schemas);
    let paths = call::paths(calls().into_iter().map(complete), "", &mut schemas);
    let legacy = legacy::description::schemas(&schemas);
    schemas.extend(legacy);
    let key = |header| SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new(header)));
    let components = ComponentsBuilder::new()
        .schemas_from_iter(schemas)
        .security_scheme(KEY, key(header::API_KEY))
        .security_scheme(CARRIER_KEY, key(header::CARRIER_KEY));
    OpenApiBuilder::new()
        .info(operation_doc::document_info("Parcelo", ABOUT))
        .servers(Some([operation_doc::server_entry("/")]))
        .tags(Some(operation_doc::tag_entries(TAGS)))
        .paths(paths)
        .webhooks(Some(webhooks::webhooks()))
        .components(Some(components.build()))
        .build()
}

/// Adds everything that follows from the table of operations.
fn complete(mut call: Call) -> Call {
    let Some(operation) = call.operation else { return call };
    if operation.is_legacy() {
        legacy::description::REFUSED.clone_into(&mut call.envelope);
    }
    call.security = match operation.auth() {
        Auth::ApiKey => Some(KEY),
        Auth::CarrierKey => Some(CARRIER_KEY),
        Auth::Public => None,
    };
    (call.tag, call.about) = (operation_group(operation), idempotency_text(operation));
    (call.headers, call.refusals) =
        (request_headers(&call, operation), all_refusals(&call, operation));
    call
}

/// Returns the rule of an operation's idempotency key.
fn idempotency_text(operation: Operation) -> &'static str {
    match operation.idempotency() {
        Idempotency::Required => {
            "Needs an idempotency key, in the body or in the header. Sent again with the same key, it \
             does nothing and answers as it did before."
        }
        Idempotency::Optional => {
            "May have an idempotency key. Sent again with the same key, it does nothing and answers as \
             it did before."
        }
        Idempotency::Reads => "Changes nothing.",
        Idempotency::None => "Takes no idempotency key.",
    }
}

/// Returns the headers that a request may have.
fn request_headers(call: &Call, operation: Operation) -> Vec<Parameter> {
    let about = "The language of texts: `en`, the default, or `es`; texts of errors come in both.";
    let text = || type_schema(Type::String);
    let mut all = vec![header_parameter("Accept-Language", about, text().examples(["es"]))];
    if call.refusals.contains(&ErrorCode::PreconditionFailed) {
        let about = "Tags of files that need not be sent again: 304.";
        all.push(header_parameter("If-None-Match", about, text()));
        let about = "Tags of the only files that are wanted: else 412.";
        all.push(header_parameter("If-Match", about, text()));
    }
    if has_key(operation) {
        let about = "The idempotency key, where the body has none; the same one where it has.";
        all.push(header_parameter("X-Idempotency-Key", about, IdempotencyKey::schema()));
        let about = "The same, in quotes or without, as the draft standard of the IETF has it.";
        all.push(header_parameter("Idempotency-Key", about, quoted_key()));
    }
    all
}

/// Returns `true` if a request may have an idempotency key.
fn has_key(operation: Operation) -> bool {
    matches!(operation.idempotency(), Idempotency::Required | Idempotency::Optional)
}

/// Returns the schema of an idempotency key, with or without quotes.
fn quoted_key() -> RefOr<Schema> {
    let mut key = IdempotencyKey::schema();
    if let RefOr::T(Schema::Object(key)) = &mut key {
        let quoted = |pattern: String| pattern.replace("^[", "^\"?[").replace("}$", "}\"?$");
        key.pattern = key.pattern.take().map(quoted);
    }
    key
}

/// Returns the refusals of any operation with this authentication and body, and the operation's own.
fn all_refusals(call: &Call, operation: Operation) -> Vec<ErrorCode> {
    let mut codes = vec![
        ErrorCode::RateLimitExceeded,
        ErrorCode::MethodNotAllowed,
        ErrorCode::InternalError,
        ErrorCode::ServiceUnavailable,
    ];
    match operation.auth() {
        Auth::ApiKey => codes.extend([
            ErrorCode::AuthMissingApiKey,
            ErrorCode::AuthInvalidApiKey,
            ErrorCode::AuthIpNotAllowed,
        ]),
        Auth::CarrierKey => codes.push(ErrorCode::CarrierAuthFailed),
        Auth::Public => {}
    }
    if call.request.is_some() {
        codes.extend([
            ErrorCode::ValidationFailed,
            ErrorCode::PayloadTooLarge,
            ErrorCode::RequestTimeout,
            ErrorCode::UnsupportedMediaType,
        ]);
    }
    codes.extend(&call.refusals);
    if has_key(operation) {
        codes.extend([ErrorCode::IdempotencyConflict, ErrorCode::IdempotencyInProgress]);
    }
    if operation.is_legacy() {
        codes.push(ErrorCode::LegacySunset);
    }
    codes
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        super::{CONTROLS, SERVICE, with_controls},
        *,
    };
    use crate::mock::controls;

    #[test]
    fn every_operation_has_one_description() {
        let mut described: Vec<_> = calls().iter().map(|call| call.id).collect();
        let mut all: Vec<_> = Operation::ALL.iter().map(|operation| operation.name()).collect();
        described.sort_unstable();
        all.sort_unstable();
        assert_eq!(described, all);
    }

    /// Returns what the mock server's document has and the service's lacks.
    fn controls_alone(service: &Value, mock_document: &Value) -> Value {
        let added = |part: &str| -> Value {
            let [known, all] = [service, mock_document].map(|of| of.pointer(part).unwrap());
            let all = all.as_object().unwrap().iter();
            all.filter(|(name, _)| known.get(name).is_none())
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect()
        };
        let known = service["tags"].as_array().unwrap().len();
        json!({
            "components": { "schemas": added("/components/schemas") },
            "paths": added("/paths"),
            "tags": mock_document["tags"].as_array().unwrap()[known..],
        })
    }

    /// `PARCELO_BLESS=1` writes the documents that the code describes.
    #[test]
    fn the_checked_in_documents_match_the_code() {
        // As JSON values, because their members are sorted by name.
        let value = |document: OpenApi| serde_json::to_value(&document).unwrap();
        let mut mock_document = service();
        mock_document.merge(controls());
        let [service_document, mock_document] = [service(), mock_document].map(value);
        let alone = controls_alone(&service_document, &mock_document);
        assert_eq!(with_controls(service_document.clone(), alone.clone()), mock_document);
        operation_doc::assert_checked_in("docs/openapi.json", &service_document, SERVICE);
        operation_doc::assert_checked_in("server/service/openapi/controls.json", &alone, CONTROLS);
    }
}
