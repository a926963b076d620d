//! The OpenAPI document: written from the tables of operations and errors, the types of the
//! vocabulary, and what stands here about each operation that is served.

use axum::Extension;
use parcelo::{
    Auth, BatchTracking, BatchTrackingRequest, CarrierEvents, CarrierResults, CreatedOrder,
    ErrorCode, ErrorEnvelope, Health, Idempotency, LabelMetadata, Manifest, ManifestRequest, Meta,
    Method, Operation, OrderRequest, PageMeta, ParcelSummary, ReprintRequest, SandboxReset,
    TrackingRecord, VoidRequest, VoidedOrders, header,
};
use utoipa::openapi::{
    ComponentsBuilder, HttpMethod, InfoBuilder, OpenApi, OpenApiBuilder, PathItem, PathsBuilder,
    Required,
    security::{ApiKey, ApiKeyValue, SecurityScheme},
};

use super::{
    answer,
    described::{self, Described, add, name},
    legacy_pages,
    pages::{Page, pages},
    webhook_pages,
};

const KEY: &str = "apiKey";
const CARRIER_KEY: &str = "carrierKey";

const ABOUT: &str = "Parcel orders with labels, from their creation to their delivery. A key for the \
    sandbox (`pk_test_…`) works on the sandbox's address, a live key (`pk_live_…`) on production's. \
    Every refusal has a code, an English and a Spanish text, and the id of its request.";

/// On a request: what is served beside the operations. Nothing is, but by the mock server.
#[derive(Clone, Copy)]
pub(crate) struct Beside(pub(crate) fn() -> OpenApi);

/// GET /openapi.json.
pub(super) async fn get(beside: Option<Extension<Beside>>) -> axum::response::Response {
    let mut served = document();
    if let Some(Extension(Beside(more))) = beside {
        served.merge(more());
    }
    answer::ok(&served)
}

/// The document of the endpoints that are served.
fn document() -> OpenApi {
    let mut paths = PathsBuilder::new();
    for page in pages() {
        let method = match page.operation.method() {
            Method::Get => HttpMethod::Get,
            Method::Post => HttpMethod::Post,
        };
        let operation = describe(&page).into_operation();
        paths = paths.path(page.operation.path(), PathItem::new(method, operation));
    }
    let info = InfoBuilder::new().title("Parcelo").version("1").description(Some(ABOUT)).build();
    OpenApiBuilder::new()
        .info(info)
        .paths(paths)
        .webhooks(Some(webhook_pages::webhooks()))
        .components(Some(components()))
        .build()
}

fn describe(page: &Page) -> Described {
    let operation = page.operation;
    let envelope = if operation.is_legacy() {
        legacy_pages::REFUSED.to_owned()
    } else {
        name::<ErrorEnvelope>()
    };
    let key = match operation.auth() {
        Auth::ApiKey => Some(KEY),
        Auth::CarrierKey => Some(CARRIER_KEY),
        Auth::Public => None,
    };
    Described {
        id: operation.name(),
        tag: group_of(operation),
        summary: page.summary,
        about: Some(about_headers(operation)),
        deprecated: operation.is_legacy(),
        parameters: described::parameters(operation.path(), page.query),
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

/// Headers are told in words: as parameters they would promise that no other header is accepted.
fn about_headers(operation: Operation) -> String {
    let language = "`Accept-Language` is `en` (the default) or `es`.";
    match operation.idempotency() {
        Idempotency::Required | Idempotency::Optional => {
            format!("{language} `X-Idempotency-Key` is a second spelling of `idempotencyKey`.")
        }
        Idempotency::Reads | Idempotency::None => language.to_owned(),
    }
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
            ErrorCode::UnsupportedMediaType,
        ]);
    }
    codes.extend(page.refusals);
    codes
}

fn components() -> utoipa::openapi::Components {
    let mut schemas = legacy_pages::schemas();
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
    let key = |header| SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new(header)));
    ComponentsBuilder::new()
        .schemas_from_iter(schemas)
        .security_scheme(KEY, key(header::API_KEY))
        .security_scheme(CARRIER_KEY, key(header::CARRIER_KEY))
        .build()
}
