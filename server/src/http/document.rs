//! The OpenAPI document: written from the tables of operations and errors, the types of the
//! vocabulary, and what stands here about each operation that is served.

use axum::Extension;
use parcelo::{
    Auth, BatchTracking, BatchTrackingRequest, CarrierEvents, CarrierResults, CreatedOrder,
    ErrorCode, ErrorEnvelope, Health, Idempotency, LabelMetadata, Language, Manifest,
    ManifestRequest, Meta, Method, Operation, OrderRequest, PageMeta, ParcelSummary,
    ReprintRequest, SandboxReset, TrackingRecord, VoidRequest, VoidedOrders, header,
};
use utoipa::{
    ToSchema,
    openapi::{
        ComponentsBuilder, ContentBuilder, Deprecated, HttpMethod, InfoBuilder, OpenApi,
        OpenApiBuilder, PathItem, PathsBuilder, RefOr, Required, Response, ResponseBuilder,
        Responses,
        header::HeaderBuilder,
        path::{OperationBuilder, Parameter, ParameterBuilder, ParameterIn},
        request_body::RequestBodyBuilder,
        schema::{ObjectBuilder, Ref, Schema, SchemaType, Type},
        security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme},
    },
};

use super::{
    answer, legacy_pages,
    pages::{JSON, Page, name, pages},
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
        let operation = describe(&page);
        let method = match page.operation.method() {
            Method::Get => HttpMethod::Get,
            Method::Post => HttpMethod::Post,
        };
        paths = paths.path(page.operation.path(), PathItem::new(method, operation));
    }
    let info = InfoBuilder::new().title("Parcelo").version("1").description(Some(ABOUT)).build();
    OpenApiBuilder::new().info(info).paths(paths).components(Some(components())).build()
}

fn describe(page: &Page) -> utoipa::openapi::path::Operation {
    let mut operation = OperationBuilder::new()
        .operation_id(Some(page.operation.name()))
        .tag(group_of(page.operation))
        .deprecated(page.operation.is_legacy().then_some(Deprecated::True))
        .summary(Some(page.summary))
        .description(Some(about_headers(page.operation)))
        .parameters(Some(parameters(page)))
        .responses(responses(page));
    if let Some((schema, example)) = &page.request {
        let schema = Ref::from_schema_name(schema.clone());
        let content = ContentBuilder::new().schema(Some(schema)).example(Some(example.clone()));
        let body = RequestBodyBuilder::new().content(JSON, content.build());
        operation = operation.request_body(Some(body.required(Some(Required::True)).build()));
    }
    let key = match page.operation.auth() {
        Auth::ApiKey => KEY,
        Auth::CarrierKey => CARRIER_KEY,
        Auth::Public => return operation.build(),
    };
    operation.security(SecurityRequirement::new::<_, [&str; 0], _>(key, [])).build()
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

fn parameters(page: &Page) -> Vec<Parameter> {
    let path = page.operation.path();
    let names = path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let mut parameters: Vec<_> = names.map(in_path).collect();
    parameters.extend(page.query.iter().map(|query| {
        ParameterBuilder::new()
            .name(query.name)
            .parameter_in(ParameterIn::Query)
            .required(Required::False)
            .description(Some(query.about))
            .schema(Some((query.schema)()))
            .build()
    }));
    parameters
}

fn in_path(name: &str) -> Parameter {
    let text = ObjectBuilder::new().schema_type(SchemaType::from(Type::String)).min_length(Some(1));
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .schema(Some(text))
        .build()
}

/// The successes, and the refusals grouped by their status.
fn responses(page: &Page) -> Responses {
    let mut responses = Responses::new();
    for answer in &page.answers {
        let mut response = ResponseBuilder::new().description(answer.about);
        for (kind, schema) in &answer.contents {
            let content = ContentBuilder::new().schema(Some(schema.clone()));
            response = response.content(*kind, content.build());
        }
        let response = with_headers(response);
        responses.responses.insert(answer.status.to_owned(), response.into());
    }
    let mut codes = refusals(page);
    codes.sort_by_key(|code| code.status());
    for same in codes.chunk_by(|one, other| one.status() == other.status()) {
        if let Some(code) = same.first() {
            responses
                .responses
                .insert(code.status().to_string(), refusal(same, page.operation).into());
        }
    }
    responses
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

fn refusal(codes: &[ErrorCode], operation: Operation) -> Response {
    let told = codes.iter().map(|code| format!("`{code}`: {}", code.template(Language::En)));
    let envelope = if operation.is_legacy() {
        legacy_pages::REFUSED.to_owned()
    } else {
        name::<ErrorEnvelope>()
    };
    let schema = Ref::from_schema_name(envelope);
    let content = ContentBuilder::new().schema(Some(schema)).build();
    let about = told.collect::<Vec<_>>().join("\n\n");
    with_headers(ResponseBuilder::new().description(about).content(JSON, content))
}

/// The headers that every answer carries.
fn with_headers(response: ResponseBuilder) -> Response {
    let told = [
        (header::REQUEST_ID, "The id to quote to support."),
        (header::RATE_LIMIT, "The most requests in a window."),
        (header::RATE_REMAINING, "Requests left in this window."),
        (header::RATE_RESET, "The Unix second in which this window ends."),
    ];
    let headers = told.map(|(name, about)| (name, HeaderBuilder::new().description(Some(about))));
    let with = |response: ResponseBuilder, (name, header): (&str, HeaderBuilder)| {
        response.header(name, header.build())
    };
    headers.into_iter().fold(response, with).build()
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
    add::<Meta>(&mut schemas);
    add::<ErrorEnvelope>(&mut schemas);
    let key = |header| SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new(header)));
    ComponentsBuilder::new()
        .schemas_from_iter(schemas)
        .security_scheme(KEY, key(header::API_KEY))
        .security_scheme(CARRIER_KEY, key(header::CARRIER_KEY))
        .build()
}

/// A type of the vocabulary and all that it refers to.
fn add<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    T::schemas(schemas);
    schemas.push((name::<T>(), T::schema()));
}
