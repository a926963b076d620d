//! Calls in an OpenAPI document: parameters, body, responses, and refusals grouped by status.

use parcelo::{Environment, ErrorCode, Language, model::header};
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

use super::call::Call;

pub(crate) const JSON: &str = "application/json";

/// A list of schemas with their names.
pub(crate) type Schemas = Vec<(String, RefOr<Schema>)>;

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

impl Call {
    pub(super) fn into_operation(self) -> Operation {
        let responses = self.responses();
        let is_deprecated = self.operation.is_some_and(parcelo::Operation::is_legacy);
        let security =
            self.security.map(|key| SecurityRequirement::new::<_, [&str; 0], _>(key, []));
        let mut operation = OperationBuilder::new()
            .operation_id(Some(self.id))
            .tag(self.tag)
            .deprecated(is_deprecated.then_some(Deprecated::True))
            .summary(Some(self.summary))
            .description(Some(self.about))
            .parameters(Some(self.parameters()))
            .securities(Some(security))
            .responses(responses);
        if let Some((schema, example)) = self.request {
            let schema = Ref::from_schema_name(schema);
            let content = ContentBuilder::new().schema(Some(schema)).example(Some(example));
            let body = RequestBodyBuilder::new().content(JSON, content.build());
            operation = operation.request_body(Some(body.required(Some(self.required)).build()));
        }
        operation.build()
    }

    /// Returns the parameters of the path and the query, and the headers.
    fn parameters(&self) -> Vec<Parameter> {
        let names = self.path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
        let query = self.query.iter().map(|query| {
            parameter(query.name, ParameterIn::Query, (query.schema)())
                .required(Required::False)
                .description(Some(query.about))
                .build()
        });
        names.map(path_parameter).chain(query).chain(self.headers.iter().cloned()).collect()
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
            let schema = type_schema(kind.clone()).build();
            let header = HeaderBuilder::new().description(Some(*about)).schema(Some(schema));
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

/// Returns a parameter, which is required unless the caller says otherwise.
pub(super) fn parameter(
    name: &str,
    place: ParameterIn,
    schema: impl Into<RefOr<Schema>>,
) -> ParameterBuilder {
    let parameter = ParameterBuilder::new().name(name).parameter_in(place);
    parameter.required(Required::True).schema(Some(schema.into()))
}

/// Returns a header that a request may have.
pub(super) fn header_parameter(
    name: &str,
    about: &str,
    schema: impl Into<RefOr<Schema>>,
) -> Parameter {
    let header = parameter(name, ParameterIn::Header, schema);
    header.required(Required::False).description(Some(about)).build()
}

fn path_parameter(name: &str) -> Parameter {
    let text = type_schema(Type::String).min_length(Some(1));
    let schema = if name == "environment" { reference::<Environment>() } else { text.into() };
    parameter(name, ParameterIn::Path, schema).build()
}

/// Returns the schema of all values with a JSON type.
pub(crate) fn type_schema(kind: Type) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::from(kind))
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
