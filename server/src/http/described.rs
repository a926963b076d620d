//! How a call stands in an OpenAPI document: its parameters, its body, its answers, its refusals grouped by
//! status. What there is to tell of each, the documents know.

use parcelo::{Environment, ErrorCode, ErrorEnvelope, Language, header};
use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ContentBuilder, Deprecated, RefOr, Required, Response, ResponseBuilder, Responses,
        header::HeaderBuilder,
        path::{Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn},
        request_body::RequestBodyBuilder,
        schema::{ObjectBuilder, Ref, Schema, SchemaType, Type},
        security::SecurityRequirement,
    },
};

pub(crate) const JSON: &str = "application/json";

/// A call of an API.
pub(crate) struct Described {
    pub(crate) id: &'static str,
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) about: Option<String>,
    pub(crate) deprecated: bool,
    pub(crate) parameters: Vec<Parameter>,
    /// The name of the body's schema, an example, and whether there must be one.
    pub(crate) request: Option<(String, Value, Required)>,
    pub(crate) answers: Vec<Answer>,
    pub(crate) refusals: Vec<ErrorCode>,
    /// The name of the schema of refusals.
    pub(crate) envelope: String,
    /// The name of the scheme of the key that it needs.
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
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) status: &'static str,
    pub(crate) about: &'static str,
    pub(crate) contents: Vec<(&'static str, RefOr<Schema>)>,
}

impl Described {
    pub(crate) fn into_operation(self) -> Operation {
        let responses = self.responses();
        let mut operation = OperationBuilder::new()
            .operation_id(Some(self.id))
            .tag(self.tag)
            .deprecated(self.deprecated.then_some(Deprecated::True))
            .summary(Some(self.summary))
            .description(self.about)
            .parameters(Some(self.parameters))
            .responses(responses);
        if let Some((schema, example, required)) = self.request {
            let schema = Ref::from_schema_name(schema);
            let content = ContentBuilder::new().schema(Some(schema)).example(Some(example));
            let body = RequestBodyBuilder::new().content(JSON, content.build());
            operation = operation.request_body(Some(body.required(Some(required)).build()));
        }
        if let Some(key) = self.security {
            operation = operation.security(SecurityRequirement::new::<_, [&str; 0], _>(key, []));
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
            let response = self.with_headers(response);
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
        let told = codes.iter().map(|code| format!("`{code}`: {}", code.template(Language::En)));
        let schema = Ref::from_schema_name(&self.envelope);
        let content = ContentBuilder::new().schema(Some(schema)).build();
        let about = told.collect::<Vec<_>>().join("\n\n");
        self.with_headers(ResponseBuilder::new().description(about).content(JSON, content))
    }

    fn with_headers(&self, response: ResponseBuilder) -> Response {
        if !self.is_counted {
            return response.build();
        }
        let told = [
            (header::REQUEST_ID, "The id to quote to support."),
            (header::RATE_LIMIT, "The most requests in a window."),
            (header::RATE_REMAINING, "Requests left in this window."),
            (header::RATE_RESET, "The Unix second in which this window ends."),
        ];
        let headers =
            told.map(|(name, about)| (name, HeaderBuilder::new().description(Some(about))));
        let with = |response: ResponseBuilder, (name, header): (&str, HeaderBuilder)| {
            response.header(name, header.build())
        };
        headers.into_iter().fold(response, with).build()
    }
}

/// The envelope of refusals, but for the legacy API's.
pub(crate) fn envelope() -> String {
    name::<ErrorEnvelope>()
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
        if name == "environment" { Environment::schema() } else { text.into() };
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

/// A type and all that it refers to.
pub(crate) fn add<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    T::schemas(schemas);
    schemas.push((name::<T>(), T::schema()));
}
