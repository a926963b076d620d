//! The description of a call, which is written in the file of its handler: request, responses and refusals. The
//! document adds everything that follows from method, path and authentication.

use parcelo_types::{
    ErrorCode, LabelFormat, Language, Operation,
    internal::{ErrorEnvelope, Meta, Method},
    model::PageMeta,
};
use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ContentBuilder, Deprecated, HttpMethod, PathItem, PathsBuilder, RefOr, Required, Response,
        ResponseBuilder, Responses,
        header::HeaderBuilder,
        path::{self, OperationBuilder, Parameter, ParameterIn},
        request_body::RequestBodyBuilder,
        schema::{
            AllOfBuilder, ArrayBuilder, KnownFormat, ObjectBuilder, Ref, Schema, SchemaFormat, Type,
        },
        security::SecurityRequirement,
    },
};

use super::operation_doc::{
    ETAG_HEADER, FILE_HEADERS, FILE_NAME_HEADER, Header, JSON, QueryParameter, RATE_LIMIT_HEADERS,
    REPLAYED_HEADER, RETRY_AFTER_HEADER, ResponseDoc, Schemas, add_schema, parameter,
    path_parameter, reference, schema_name, type_schema,
};

/// The media type of the bytes of any file.
const ANY_FILE: &str = "application/octet-stream";

/// The description of an API call. A handler gives what is specific to it, and the document the rest.
pub struct Call {
    /// `None` if it is not in the table of operations.
    pub(super) operation: Option<Operation>,
    method: HttpMethod,
    /// The path below the API's prefix.
    pub path: &'static str,
    pub id: &'static str,
    pub tag: &'static str,
    summary: &'static str,
    pub about: &'static str,
    pub query: &'static [QueryParameter],
    /// The headers that a request may have.
    pub(super) headers: Vec<Parameter>,
    /// The name of the body's schema, and an example.
    pub request: Option<(String, Value)>,
    /// `true` if its body is the bytes of a file.
    has_file_body: bool,
    /// `Required::True` if there must be a body.
    required: Required,
    answers: Vec<ResponseDoc>,
    pub refusals: Vec<ErrorCode>,
    /// The name of the schema of its refusals.
    pub(super) envelope: String,
    /// The name of the security scheme of the key that it needs, if it needs one.
    pub security: Option<&'static str>,
    /// `true` if responses have the headers of the request's id and the rate limit.
    pub is_counted: bool,
    schemas: Schemas,
}

/// Returns the paths of calls below a prefix, and adds the schemas that the calls refer to.
pub fn paths(
    calls: impl IntoIterator<Item = Call>,
    prefix: &str,
    schemas: &mut Schemas,
) -> PathsBuilder {
    calls.into_iter().fold(PathsBuilder::new(), |paths, call| {
        schemas.extend(call.schemas.iter().cloned());
        schemas.extend(call.answers.iter().flat_map(|answer| answer.schemas.clone()));
        let (method, path) = (call.method.clone(), format!("{prefix}{}", call.path));
        paths.path(path, PathItem::new(method, call.into_operation()))
    })
}

impl Call {
    /// Describes an operation.
    pub fn new(operation: Operation, summary: &'static str) -> Self {
        let method = match operation.method() {
            Method::Get => HttpMethod::Get,
            Method::Post => HttpMethod::Post,
        };
        let call = Self::route(method, operation.path(), operation.name(), summary);
        Self { operation: Some(operation), ..call }
    }

    /// Describes a call that is not in the table of operations.
    pub fn route(
        method: HttpMethod,
        path: &'static str,
        id: &'static str,
        summary: &'static str,
    ) -> Self {
        Self {
            operation: None,
            method,
            path,
            id,
            tag: "",
            summary,
            about: "",
            query: &[],
            headers: Vec::new(),
            request: None,
            has_file_body: false,
            required: Required::True,
            answers: Vec::new(),
            refusals: Vec::new(),
            envelope: schema_name::<ErrorEnvelope>(),
            security: None,
            is_counted: true,
            schemas: Vec::new(),
        }
    }

    pub fn query(self, query: &'static [QueryParameter]) -> Self {
        Self { query, ..self }
    }

    pub fn with_body<T: ToSchema>(mut self, example: Value) -> Self {
        add_schema::<T>(&mut self.schemas);
        self.with_body_schema(schema_name::<T>(), example)
    }

    /// Sets a body of the bytes of a file.
    pub fn with_file_body(self) -> Self {
        Self { has_file_body: true, ..self }
    }

    /// Makes the body optional.
    pub fn with_optional_body(self) -> Self {
        Self { required: Required::False, ..self }
    }

    /// Sets a body with a schema that no Rust type has.
    pub fn with_body_schema(self, schema: String, example: Value) -> Self {
        Self { request: Some((schema, example)), ..self }
    }

    pub fn with_response(mut self, response: ResponseDoc) -> Self {
        self.answers.push(response);
        self
    }

    /// Adds a response with a type in the envelope.
    pub fn with_data<T: ToSchema>(self, status: &'static str, about: &'static str) -> Self {
        self.with_response(ResponseDoc::data::<T>(status, about))
    }

    /// Adds a response with a complete list in the envelope.
    pub fn with_list<T: ToSchema>(self, about: &'static str) -> Self {
        self.with_response(ResponseDoc::list_with_meta::<T>(about, reference::<Meta>()))
    }

    /// Sets the refusals that are specific to it. Those that its authentication and body imply are added later.
    pub fn with_refusals(self, refusals: &[ErrorCode]) -> Self {
        Self { refusals: refusals.to_vec(), ..self }
    }
}

impl Call {
    fn into_operation(self) -> path::Operation {
        let responses = self.responses();
        let is_deprecated = self.operation.is_some_and(Operation::is_legacy);
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
        if self.has_file_body {
            let content = ContentBuilder::new().schema(Some(file_schema())).build();
            let body = RequestBodyBuilder::new().content(ANY_FILE, content);
            operation = operation.request_body(Some(body.required(Some(Required::True)).build()));
        }
        operation.build()
    }

    /// Returns the parameters of the path and the query, and the headers.
    fn parameters(&self) -> Vec<Parameter> {
        let names = self.path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
        let query = self.query.iter().map(|QueryParameter(name, about, schema)| {
            let query = parameter(name, ParameterIn::Query, schema());
            query.required(Required::False).description(Some(*about)).build()
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

impl ResponseDoc {
    /// Returns a response whose whole body is a type of the SDK, without the envelope.
    pub fn without_envelope<T: ToSchema>(status: &'static str, about: &'static str) -> Self {
        let mut response = Self::with_schema(status, about, schema_name::<T>());
        add_schema::<T>(&mut response.schemas);
        response
    }

    /// Returns a response with a schema that no Rust type has.
    pub fn with_schema(
        status: &'static str,
        about: &'static str,
        schema: impl Into<String>,
    ) -> Self {
        let contents = vec![(JSON, Ref::from_schema_name(schema).into())];
        Self { status, about, contents, ..Self::default() }
    }

    /// Returns a response with a type in the envelope.
    pub fn data<T: ToSchema>(status: &'static str, about: &'static str) -> Self {
        let (data, meta) = (reference::<T>(), reference::<Meta>());
        Self::enveloped::<T>((status, about), &schema_name::<T>(), (data, meta))
    }

    /// Returns a response with one page of a list in the envelope; `meta` has the paging fields and the request's id.
    pub fn page<T: ToSchema>(about: &'static str) -> Self {
        let meta = "ListMeta".to_owned();
        let both = AllOfBuilder::new().item(reference::<PageMeta>()).item(reference::<Meta>());
        let named = Ref::from_schema_name(&meta).into();
        let mut response = Self::list_with_meta::<T>(about, named);
        add_schema::<PageMeta>(&mut response.schemas);
        response.schemas.push((meta, both.into()));
        response
    }

    fn list_with_meta<T: ToSchema>(about: &'static str, meta: RefOr<Schema>) -> Self {
        let items = ArrayBuilder::new().items(reference::<T>());
        let name = format!("{}List", schema_name::<T>());
        Self::enveloped::<T>(("200", about), &name, (items.into(), meta))
    }

    /// Returns a response in the envelope. The envelope is a separate component, so that generated clients get a type
    /// for it.
    fn enveloped<T: ToSchema>(
        (status, about): (&'static str, &'static str),
        name: &str,
        (data, meta): (RefOr<Schema>, RefOr<Schema>),
    ) -> Self {
        let success = type_schema(Type::Boolean).description(Some("Always true."));
        let envelope = ObjectBuilder::new()
            .property("success", success)
            .property("data", data)
            .property("meta", meta)
            .required("success")
            .required("data")
            .required("meta");
        let name = format!("{name}Response");
        let mut response = Self::with_schema(status, about, name.clone());
        add_schema::<T>(&mut response.schemas);
        response.schemas.push((name, envelope.into()));
        response
    }

    /// Returns a response with the bytes of a file in one of these formats.
    pub fn file(about: &'static str, formats: &[LabelFormat]) -> Self {
        // Some client generators know only this type for bytes, and use the first type that they know.
        let any = [(ANY_FILE, file_schema())];
        let formats = formats.iter().map(|format| (format.content_type(), file_schema()));
        let contents = any.into_iter().chain(formats).collect();
        Self { status: "200", about, contents, headers: FILE_HEADERS, ..Self::default() }
    }

    /// Returns a response with the bytes of many labels.
    pub fn labels(about: &'static str) -> Self {
        let formats = [LabelFormat::Pdf, LabelFormat::Zpl];
        Self { headers: FILE_NAME_HEADER, ..Self::file(about, &formats) }
    }

    /// Returns the 304 response for a caller that has the file already.
    pub fn not_modified() -> Self {
        let about = "The file is one of those that `If-None-Match` names.";
        Self { status: "304", about, headers: ETAG_HEADER, ..Self::default() }
    }

    /// Adds the header of a write that marks a replayed response.
    pub fn with_replay_header(self) -> Self {
        Self { headers: REPLAYED_HEADER, ..self }
    }

    /// Adds a page for browsers.
    pub fn with_html_page(mut self) -> Self {
        self.contents.push(("text/html", <String as PartialSchema>::schema()));
        self
    }
}

fn file_schema() -> RefOr<Schema> {
    let bytes = SchemaFormat::KnownFormat(KnownFormat::Binary);
    type_schema(Type::String).format(Some(bytes)).into()
}
