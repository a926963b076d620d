//! The OpenAPI document: written from the tables of operations and errors, the types of the
//! vocabulary, and what stands here about each operation that is served. Only tests write it; what is
//! served is the [file that they check](super::openapi).

use parcelo::{
    ErrorCode, IdempotencyKey, ManifestRequest, Operation, OrderRequest, ReprintRequest,
    VoidRequest,
    admin::{CarrierEvents, CarrierResults},
    model::{
        Auth, BatchTracking, BatchTrackingRequest, CreatedOrder, ErrorEnvelope, Health,
        Idempotency, LabelMetadata, Manifest, Meta, Method, PageMeta, ParcelSummary, SandboxReset,
        TrackingRecord, VoidedOrders, header,
    },
};
use utoipa::{
    PartialSchema,
    openapi::{
        ComponentsBuilder, HttpMethod, OpenApi, OpenApiBuilder, PathItem, PathsBuilder, RefOr,
        Required,
        path::Parameter,
        schema::{ObjectBuilder, Schema, SchemaType, Type},
        security::{ApiKey, ApiKeyValue, SecurityScheme},
    },
};

use super::{
    described::{self, Described, add, in_header, name},
    legacy,
    pages::{Page, list_meta, pages},
    webhook_pages,
};

const KEY: &str = "apiKey";
const CARRIER_KEY: &str = "carrierKey";

const ABOUT: &str = "Parcel orders with labels, from their creation to their delivery. A key for the \
    sandbox (`pk_test_…`) works on the sandbox's address, a live key (`pk_live_…`) on production's. \
    Every refusal has a code, an English and a Spanish text, and the id of its request.";

/// What calls are grouped by.
const TAGS: &[(&str, &str)] = &[
    ("orders", "Orders: created with their labels, and voided."),
    ("manifests", "Manifests: the parcels that travel under an air waybill."),
    ("tracking", "Where parcels are."),
    ("track", "Where a parcel is, for anybody who has its number."),
    ("labels", "Labels: what is known about them, their files, reprints."),
    ("health", "What an API key is and may do."),
    ("parcels", "The list of parcels."),
    ("sandbox", "What only a sandbox can do."),
    ("carrier", "What carriers report."),
    ("legacy", "The API before `/api/v1`, for programs that still use it."),
    ("webhooks", "What is sent to an account's webhook."),
];

/// The document of the endpoints that are served.
fn service() -> OpenApi {
    let (mut paths, mut schemas) = (PathsBuilder::new(), schemas());
    for page in pages() {
        let method = match page.operation.method() {
            Method::Get => HttpMethod::Get,
            Method::Post => HttpMethod::Post,
        };
        schemas.extend(page.answers.iter().filter_map(|answer| answer.component.clone()));
        let operation = describe(&page).into_operation();
        paths = paths.path(page.operation.path(), PathItem::new(method, operation));
    }
    let key = |header| SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new(header)));
    let components = ComponentsBuilder::new()
        .schemas_from_iter(schemas)
        .security_scheme(KEY, key(header::API_KEY))
        .security_scheme(CARRIER_KEY, key(header::CARRIER_KEY));
    OpenApiBuilder::new()
        .info(described::info("Parcelo", ABOUT))
        .servers(Some([described::server("/")]))
        .tags(Some(described::tags(TAGS)))
        .paths(paths)
        .webhooks(Some(webhook_pages::webhooks()))
        .components(Some(components.build()))
        .build()
}

fn describe(page: &Page) -> Described {
    let operation = page.operation;
    let envelope = if operation.is_legacy() {
        legacy::openapi::REFUSED.to_owned()
    } else {
        name::<ErrorEnvelope>()
    };
    let key = match operation.auth() {
        Auth::ApiKey => Some(KEY),
        Auth::CarrierKey => Some(CARRIER_KEY),
        Auth::Public => None,
    };
    let mut parameters = described::parameters(operation.path(), page.query);
    parameters.extend(headers(page));
    Described {
        id: operation.name(),
        tag: group_of(operation),
        summary: page.summary,
        about: about(operation).to_owned(),
        deprecated: operation.is_legacy(),
        parameters,
        request: page.request.clone().map(|(body, example)| (body, example, Required::True)),
        answers: page.answers.clone(),
        refusals: refusals(page),
        envelope,
        security: key,
        is_counted: true,
    }
}

/// What an operation is about: the first word of its path that is no version.
fn group_of(operation: Operation) -> &'static str {
    if operation.is_legacy() {
        return "legacy";
    }
    let path = operation.path();
    let path = path.strip_prefix("/api/v1").unwrap_or(path);
    path.split('/').nth(1).unwrap_or_default()
}

/// What is to be known about an operation beside what it does.
fn about(operation: Operation) -> &'static str {
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

/// The headers that a request may have.
fn headers(page: &Page) -> Vec<Parameter> {
    let about = "The language of texts: `en`, the default, or `es`; texts of errors come in both.";
    let text = ObjectBuilder::new().schema_type(SchemaType::from(Type::String)).examples(["es"]);
    let language = in_header("Accept-Language", about, text);
    let mut all = vec![language];
    if page.is_conditional() {
        let text = || ObjectBuilder::new().schema_type(SchemaType::from(Type::String));
        let about = "Tags of files that need not be sent again: 304.";
        all.push(in_header("If-None-Match", about, text()));
        all.push(in_header(
            "If-Match",
            "Tags of the only files that are wanted: else 412.",
            text(),
        ));
    }
    match page.operation.idempotency() {
        Idempotency::Required | Idempotency::Optional => {
            let about = "The idempotency key, where the body has none; the same one where it has.";
            all.push(in_header("X-Idempotency-Key", about, IdempotencyKey::schema()));
            let about = "The same, in quotes or without, as the draft standard of the IETF has it.";
            all.push(in_header("Idempotency-Key", about, quoted_key()));
        }
        Idempotency::Reads | Idempotency::None => {}
    }
    all
}

/// An idempotency key, as it is or in quotes.
fn quoted_key() -> RefOr<Schema> {
    let mut key = IdempotencyKey::schema();
    if let RefOr::T(Schema::Object(key)) = &mut key {
        let quoted = |pattern: String| pattern.replace("^[", "^\"?[").replace("}$", "}\"?$");
        key.pattern = key.pattern.take().map(quoted);
    }
    key
}

/// What any operation may answer, by its authentication and its body, and its own refusals.
fn refusals(page: &Page) -> Vec<ErrorCode> {
    let mut codes = vec![
        ErrorCode::RateLimitExceeded,
        ErrorCode::MethodNotAllowed,
        ErrorCode::InternalError,
        ErrorCode::ServiceUnavailable,
    ];
    match page.operation.auth() {
        Auth::ApiKey => codes.extend([
            ErrorCode::AuthMissingApiKey,
            ErrorCode::AuthInvalidApiKey,
            ErrorCode::AuthIpNotAllowed,
        ]),
        Auth::CarrierKey => codes.push(ErrorCode::CarrierAuthFailed),
        Auth::Public => {}
    }
    if page.request.is_some() {
        codes.extend([
            ErrorCode::ValidationFailed,
            ErrorCode::PayloadTooLarge,
            ErrorCode::RequestTimeout,
            ErrorCode::UnsupportedMediaType,
        ]);
    }
    codes.extend(page.refusals);
    codes
}

fn schemas() -> Vec<(String, RefOr<Schema>)> {
    let mut schemas = Vec::new();
    add::<OrderRequest>(&mut schemas);
    add::<CreatedOrder>(&mut schemas);
    add::<VoidRequest>(&mut schemas);
    add::<VoidedOrders>(&mut schemas);
    add::<ManifestRequest>(&mut schemas);
    add::<Manifest>(&mut schemas);
    add::<BatchTrackingRequest>(&mut schemas);
    add::<BatchTracking>(&mut schemas);
    add::<LabelMetadata>(&mut schemas);
    add::<ReprintRequest>(&mut schemas);
    add::<TrackingRecord>(&mut schemas);
    add::<Health>(&mut schemas);
    add::<ParcelSummary>(&mut schemas);
    add::<PageMeta>(&mut schemas);
    add::<SandboxReset>(&mut schemas);
    add::<CarrierEvents>(&mut schemas);
    add::<CarrierResults>(&mut schemas);
    webhook_pages::add_schemas(&mut schemas);
    add::<Meta>(&mut schemas);
    add::<ErrorEnvelope>(&mut schemas);
    add::<IdempotencyKey>(&mut schemas);
    schemas.push(list_meta());
    let legacy = legacy::openapi::schemas(&schemas);
    schemas.extend(legacy);
    schemas
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{super::openapi::Document, *};
    use crate::{http::admin::document::document as admin, mock::controls};

    /// `PARCELO_BLESS=1` writes the documents that the code describes.
    #[test]
    fn the_checked_in_documents_are_those_that_the_code_describes() {
        let mut with_controls = service();
        with_controls.merge(controls());
        let all = [
            ("openapi.json", service(), Document::Service),
            ("openapi-mock.json", with_controls, Document::WithControls),
            ("openapi-admin.json", admin(), Document::Admin),
        ];
        for (name, written, document) in all {
            // As a value first: names are in the order of the alphabet.
            let written = serde_json::to_value(&written).unwrap();
            let written = serde_json::to_string_pretty(&written).unwrap() + "\n";
            if std::env::var_os("PARCELO_BLESS").is_some() {
                let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
                std::fs::write(docs.join(name), &written).unwrap();
            } else {
                let is_new = document.checked_in() == written;
                assert!(is_new, "docs/{name} is old: run `just bless` and look at the diff");
            }
        }
    }
}
