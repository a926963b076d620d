//! Calls in an OpenAPI document: parameters, body, responses, and refusals grouped by status.

use parcelo::{
    Environment, ErrorCode, Language,
    model::{ErrorEnvelope, header},
};
use serde_json::Value;
use utoipa::{
    ToSchema,
    openapi::{
        ContactBuilder, ContentBuilder, Deprecated, Info, InfoBuilder, LicenseBuilder, RefOr,
        Required, Response, ResponseBuilder, Responses, Server, ServerBuilder, Tag,
        header::HeaderBuilder,
        path::{Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn},
        request_body::RequestBodyBuilder,
        schema::{ObjectBuilder, Ref, Schema, SchemaType, Type},
        security::SecurityRequirement,
        tag::TagBuilder,
    },
};

pub(crate) const JSON: &str = "application/json";

/// A list of schemas with their names.
pub(crate) type Schemas = Vec<(String, RefOr<Schema>)>;

/// A call of an API, with everything that the document needs.
pub(crate) struct OperationDoc {
    pub(crate) id: &'static str,
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) about: String,
    pub(crate) deprecated: bool,
    pub(crate) parameters: Vec<Parameter>,
    /// The name of the body's schema, an example, and `Required::True` if there must be a body.
    pub(crate) request: Option<(String, Value, Required)>,
    pub(crate) answers: Vec<ResponseDoc>,
    pub(crate) refusals: Vec<ErrorCode>,
    /// The name of the schema of its refusals.
    pub(crate) envelope: String,
    /// The name of the security scheme of the key that it needs, if it needs one.
    pub(crate) security: Option<&'static str>,
    /// `true` if responses have the headers of the request's id and the rate limit.
    pub(crate) is_counted: bool,
}

/// A query parameter.
pub(crate) struct QueryParameter {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) schema: fn() -> RefOr<Schema>,
}

/// A successful response.
#[derive(Clone, Default)]
pub(crate) struct ResponseDoc {
    pub(crate) status: &'static str,
    pub(crate) about: &'static str,
    pub(crate) contents: Vec<(&'static str, RefOr<Schema>)>,
    pub(crate) headers: &'static [Header],
    /// The schemas that its contents refer to.
    pub(crate) schemas: Schemas,
}

/// A header of a response: its name, its description, and the type of its value.
#[derive(Clone)]
pub(crate) struct Header(&'static str, &'static str, Type);

/// The headers of every response of a listener with limits.
const RATE_LIMIT_HEADERS: &[Header] = &[
    Header(header::REQUEST_ID, "The id to quote to support.", Type::String),
    Header(header::RATE_LIMIT, "Maximum number of requests in a window.", Type::Integer),
    Header(header::RATE_REMAINING, "Requests left in this window.", Type::Integer),
    Header(header::RATE_RESET, "The Unix second in which this window ends.", Type::Integer),
];

/// The header of a refusal that says how long to wait.
const RETRY_AFTER_HEADER: &[Header] =
    &[Header("retry-after", "Whole seconds to wait before trying again.", Type::Integer)];

/// The header of a replayed write with an idempotency key.
pub(super) const REPLAYED_HEADER: &[Header] =
    &[Header(header::IDEMPOTENT_REPLAYED, "`true`: this was answered before.", Type::String)];

/// The header of a response about a file without the file itself.
pub(super) const ETAG_HEADER: &[Header] =
    &[Header("etag", "Identifies the content: equal files have equal tags.", Type::String)];

/// The headers of a label's file.
pub(super) const FILE_HEADERS: &[Header] = &[
    Header("content-disposition", "The file's name.", Type::String),
    Header("etag", "Which bytes these are: the same for the same bytes.", Type::String),
];

/// The header of a file of many labels.
pub(super) const FILE_NAME_HEADER: &[Header] =
    &[Header("content-disposition", "The file's name.", Type::String)];

impl OperationDoc {
    pub(crate) fn into_operation(self) -> Operation {
        let responses = self.responses();
        let mut operation = OperationBuilder::new()
            .operation_id(Some(self.id))
            .tag(self.tag)
            .deprecated(self.deprecated.then_some(Deprecated::True))
            .summary(Some(self.summary))
            .description(Some(self.about))
            .parameters(Some(self.parameters))
            .securities(Some(self.security.map(security_requirement)))
            .responses(responses);
        if let Some((schema, example, required)) = self.request {
            let schema = Ref::from_schema_name(schema);
            let content = ContentBuilder::new().schema(Some(schema)).example(Some(example));
            let body = RequestBodyBuilder::new().content(JSON, content.build());
            operation = operation.request_body(Some(body.required(Some(required)).build()));
        }
        operation.build()
    }

    /// Returns the successes, and the refusals grouped by their status.
    fn responses(&self) -> Responses {
        let mut responses = Responses::new();
        for answer in &self.answers {
            let mut response = ResponseBuilder::new().description(answer.about);
            for (kind, schema) in &answer.contents {
                let content = ContentBuilder::new().schema(Some(schema.clone()));
                response = response.content(*kind, content.build());
            }
            let response = self.with_headers(response, answer.headers);
            responses.responses.insert(answer.status.to_owned(), response.into());
        }
        let mut codes = self.refusals.clone();
        codes.sort_by_key(|code| code.status());
        for same in codes.chunk_by(|one, other| one.status() == other.status()) {
            if let Some(code) = same.first() {
                responses.responses.insert(code.status().to_string(), self.refusal(same).into());
            }
        }
        responses
    }

    fn refusal(&self, codes: &[ErrorCode]) -> Response {
        let texts = codes.iter().map(|code| format!("`{code}`: {}", code.template(Language::En)));
        let schema = Ref::from_schema_name(&self.envelope);
        let content = ContentBuilder::new().schema(Some(schema)).build();
        let about = texts.collect::<Vec<_>>().join("\n\n");
        let headers =
            if codes.iter().copied().any(names_waiting_time) { RETRY_AFTER_HEADER } else { &[] };
        self.with_headers(ResponseBuilder::new().description(about).content(JSON, content), headers)
    }

    fn with_headers(&self, response: ResponseBuilder, headers: &[Header]) -> Response {
        let common = if self.is_counted { RATE_LIMIT_HEADERS } else { &[] };
        let all = common.iter().chain(headers);
        let with = |response: ResponseBuilder, Header(name, about, kind): &Header| {
            let schema = ObjectBuilder::new().schema_type(SchemaType::from(kind.clone()));
            let header =
                HeaderBuilder::new().description(Some(*about)).schema(Some(schema.build()));
            response.header(*name, header.build())
        };
        all.fold(response, with).build()
    }
}

/// Returns `true` if a refusal says how long to wait.
fn names_waiting_time(code: ErrorCode) -> bool {
    use ErrorCode::{IdempotencyInProgress, RateLimitExceeded, ServiceUnavailable};
    matches!(code, IdempotencyInProgress | RateLimitExceeded | ServiceUnavailable)
}

fn security_requirement(key: &'static str) -> SecurityRequirement {
    SecurityRequirement::new::<_, [&str; 0], _>(key, [])
}

/// Returns the `info` of a document: title, version and description.
pub(in crate::http) fn document_info(title: &str, about: &str) -> Info {
    let licence = env!("CARGO_PKG_LICENSE");
    let licence = LicenseBuilder::new().name(licence).identifier(Some(licence));
    InfoBuilder::new()
        .title(title)
        .version("1")
        .description(Some(about))
        .license(Some(licence.build()))
        .contact(Some(ContactBuilder::new().name(Some("Parcelo")).build()))
        .build()
}

/// Returns the server of the calls: the host that the document came from, under this path.
pub(in crate::http) fn server_entry(path: &str) -> Server {
    ServerBuilder::new().url(path).description(Some("The host that this document is from")).build()
}

/// Returns the groups of calls with their descriptions.
pub(crate) fn tag_entries(groups: &[(&str, &str)]) -> Vec<Tag> {
    let tag = |(name, about): &(&str, &str)| {
        TagBuilder::new().name(*name).description(Some(*about)).build()
    };
    groups.iter().map(tag).collect()
}

/// Returns the name of the schema of refusals, except the legacy API's.
pub(crate) fn error_envelope_name() -> String {
    schema_name::<ErrorEnvelope>()
}

/// Returns a header that a request may have.
pub(super) fn header_parameter(
    name: &str,
    about: &str,
    schema: impl Into<RefOr<Schema>>,
) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(about))
        .schema(Some(schema.into()))
        .build()
}

/// Returns the parameters of a path and a query.
pub(crate) fn path_and_query_parameters(path: &str, query: &[QueryParameter]) -> Vec<Parameter> {
    let names = path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let mut parameters: Vec<_> = names.map(path_parameter).collect();
    parameters.extend(query.iter().map(|query| {
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

fn path_parameter(name: &str) -> Parameter {
    let text = ObjectBuilder::new().schema_type(SchemaType::from(Type::String)).min_length(Some(1));
    let schema: RefOr<Schema> =
        if name == "environment" { reference::<Environment>() } else { text.into() };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .schema(Some(schema))
        .build()
}

pub(crate) fn schema_name<T: ToSchema>() -> String {
    T::name().into_owned()
}

pub(crate) fn reference<T: ToSchema>() -> RefOr<Schema> {
    Ref::from_schema_name(schema_name::<T>()).into()
}

/// Adds a type and all types that it refers to, with the limits that the rules set.
pub(crate) fn add_schema<T: ToSchema>(schemas: &mut Schemas) {
    let mut further = Vec::new();
    T::schemas(&mut further);
    further.push((schema_name::<T>(), T::schema()));
    for (name, schema) in &mut further {
        parcelo::admin::write_limits(name, schema);
    }
    schemas.append(&mut further);
}
