//! How a call stands in an OpenAPI document: its parameters, its body, its answers, its refusals grouped by
//! status.

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

/// Schemas with their names.
pub(crate) type Schemas = Vec<(String, RefOr<Schema>)>;

/// A call of an API.
pub(crate) struct Described {
    pub(crate) id: &'static str,
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) about: String,
    pub(crate) deprecated: bool,
    pub(crate) parameters: Vec<Parameter>,
    /// The name of the body's schema, an example, and whether there must be one.
    pub(crate) request: Option<(String, Value, Required)>,
    pub(crate) answers: Vec<Answer>,
    pub(crate) refusals: Vec<ErrorCode>,
    /// The name of the schema of refusals.
    pub(crate) envelope: String,
    /// The name of the scheme of the key that it needs, if it needs one.
    pub(crate) security: Option<&'static str>,
    /// Whether answers carry the request's id and the rate limit's headers.
    pub(crate) is_counted: bool,
}

/// A query parameter.
pub(crate) struct Query {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) schema: fn() -> RefOr<Schema>,
}

/// A successful answer.
#[derive(Clone, Default)]
pub(crate) struct Answer {
    pub(crate) status: &'static str,
    pub(crate) about: &'static str,
    pub(crate) contents: Vec<(&'static str, RefOr<Schema>)>,
    pub(crate) headers: &'static [Header],
    /// The schemas that its contents refer to.
    pub(crate) schemas: Schemas,
}

/// A header of an answer: its name, what it says, and the type of its value.
#[derive(Clone)]
pub(crate) struct Header(&'static str, &'static str, Type);

/// Of every answer of a listener with limits.
const COUNTED: &[Header] = &[
    Header(header::REQUEST_ID, "The id to quote to support.", Type::String),
    Header(header::RATE_LIMIT, "The most requests in a window.", Type::Integer),
    Header(header::RATE_REMAINING, "Requests left in this window.", Type::Integer),
    Header(header::RATE_RESET, "The Unix second in which this window ends.", Type::Integer),
];

/// Of a refusal that says when to come back.
const WAITED_FOR: &[Header] =
    &[Header("retry-after", "Whole seconds to wait before trying again.", Type::Integer)];

/// Of a write that has an idempotency key, when it was carried out before.
pub(super) const REPLAYED: &[Header] =
    &[Header(header::IDEMPOTENT_REPLAYED, "`true`: this was answered before.", Type::String)];

/// Of an answer without the file that it is about.
pub(super) const TAG: &[Header] =
    &[Header("etag", "Which bytes these are: the same for the same bytes.", Type::String)];

/// Of a label's file.
pub(super) const FILE: &[Header] = &[
    Header("content-disposition", "The file's name.", Type::String),
    Header("etag", "Which bytes these are: the same for the same bytes.", Type::String),
];

/// Of a file of many labels.
pub(super) const UNTAGGED_FILE: &[Header] =
    &[Header("content-disposition", "The file's name.", Type::String)];

impl Described {
    pub(crate) fn into_operation(self) -> Operation {
        let responses = self.responses();
        let mut operation = OperationBuilder::new()
            .operation_id(Some(self.id))
            .tag(self.tag)
            .deprecated(self.deprecated.then_some(Deprecated::True))
            .summary(Some(self.summary))
            .description(Some(self.about))
            .parameters(Some(self.parameters))
            .securities(Some(self.security.map(needs)))
            .responses(responses);
        if let Some((schema, example, required)) = self.request {
            let schema = Ref::from_schema_name(schema);
            let content = ContentBuilder::new().schema(Some(schema)).example(Some(example));
            let body = RequestBodyBuilder::new().content(JSON, content.build());
            operation = operation.request_body(Some(body.required(Some(required)).build()));
        }
        operation.build()
    }

    /// The successes, and the refusals grouped by their status.
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
        let headers = if codes.iter().copied().any(says_when) { WAITED_FOR } else { &[] };
        self.with_headers(ResponseBuilder::new().description(about).content(JSON, content), headers)
    }

    fn with_headers(&self, response: ResponseBuilder, headers: &[Header]) -> Response {
        let counted = if self.is_counted { COUNTED } else { &[] };
        let all = counted.iter().chain(headers);
        let with = |response: ResponseBuilder, Header(name, about, kind): &Header| {
            let schema = ObjectBuilder::new().schema_type(SchemaType::from(kind.clone()));
            let header =
                HeaderBuilder::new().description(Some(*about)).schema(Some(schema.build()));
            response.header(*name, header.build())
        };
        all.fold(response, with).build()
    }
}

/// Whether a refusal says when to come back.
fn says_when(code: ErrorCode) -> bool {
    use ErrorCode::{IdempotencyInProgress, RateLimitExceeded, ServiceUnavailable};
    matches!(code, IdempotencyInProgress | RateLimitExceeded | ServiceUnavailable)
}

fn needs(key: &'static str) -> SecurityRequirement {
    SecurityRequirement::new::<_, [&str; 0], _>(key, [])
}

/// What a document is about.
pub(in crate::http) fn info(title: &str, about: &str) -> Info {
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

/// Where the calls are: on the host that the document came from, under this path.
pub(in crate::http) fn server(path: &str) -> Server {
    ServerBuilder::new().url(path).description(Some("The host that this document is from")).build()
}

/// What calls are grouped by, and what each group is about.
pub(crate) fn tags(groups: &[(&str, &str)]) -> Vec<Tag> {
    let tag = |(name, about): &(&str, &str)| {
        TagBuilder::new().name(*name).description(Some(*about)).build()
    };
    groups.iter().map(tag).collect()
}

/// The envelope of refusals, but for the legacy API's.
pub(crate) fn envelope() -> String {
    name::<ErrorEnvelope>()
}

/// A header that a request may have.
pub(super) fn in_header(name: &str, about: &str, schema: impl Into<RefOr<Schema>>) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(about))
        .schema(Some(schema.into()))
        .build()
}

/// The parameters of a path, and those of a query.
pub(crate) fn parameters(path: &str, query: &[Query]) -> Vec<Parameter> {
    let names = path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let mut parameters: Vec<_> = names.map(in_path).collect();
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

fn in_path(name: &str) -> Parameter {
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

pub(crate) fn name<T: ToSchema>() -> String {
    T::name().into_owned()
}

pub(crate) fn reference<T: ToSchema>() -> RefOr<Schema> {
    Ref::from_schema_name(name::<T>()).into()
}

/// A type and all that it refers to, with the limits that the rules set.
pub(crate) fn add<T: ToSchema>(schemas: &mut Schemas) {
    let mut further = Vec::new();
    T::schemas(&mut further);
    further.push((name::<T>(), T::schema()));
    for (name, schema) in &mut further {
        parcelo::admin::write_limits(name, schema);
    }
    schemas.append(&mut further);
}
