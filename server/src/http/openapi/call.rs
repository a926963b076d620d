//! The description of a call beside its handler: its request, responses and refusals. The document adds everything that
//! follows from its method, path and authentication.

use parcelo::{
    ErrorCode, LabelFormat,
    model::{Meta, PageMeta},
};
use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr, Required,
        schema::{
            AllOfBuilder, ArrayBuilder, KnownFormat, ObjectBuilder, Ref, Schema, SchemaFormat,
            SchemaType, Type,
        },
    },
};

use super::operation_doc::{
    ETAG_HEADER, FILE_HEADERS, FILE_NAME_HEADER, JSON, QueryParameter, REPLAYED_HEADER,
    ResponseDoc, Schemas, add_schema, reference, schema_name,
};

/// The description of an API call; `Target` identifies the call.
pub(crate) struct Call<Target> {
    pub(crate) target: Target,
    pub(crate) summary: &'static str,
    pub(crate) query: &'static [QueryParameter],
    /// The name of the body's schema, and an example.
    pub(crate) request: Option<(String, Value)>,
    /// `Required::True` if there must be a body.
    pub(crate) required: Required,
    pub(crate) answers: Vec<ResponseDoc>,
    pub(crate) refusals: &'static [ErrorCode],
    schemas: Schemas,
}

impl<Target> Call<Target> {
    pub(crate) fn new(target: Target, summary: &'static str) -> Self {
        let (query, request, required, answers) = (&[], None, Required::True, Vec::new());
        let (refusals, schemas) = (&[], Vec::new());
        Self { target, summary, query, request, required, answers, refusals, schemas }
    }

    pub(crate) fn query(self, query: &'static [QueryParameter]) -> Self {
        Self { query, ..self }
    }

    pub(crate) fn with_body<T: ToSchema>(mut self, example: Value) -> Self {
        add_schema::<T>(&mut self.schemas);
        self.with_body_schema(schema_name::<T>(), example)
    }

    /// Makes the body optional.
    pub(crate) fn with_optional_body(self) -> Self {
        Self { required: Required::False, ..self }
    }

    /// Sets a body with a schema that no Rust type has.
    pub(crate) fn with_body_schema(self, schema: String, example: Value) -> Self {
        Self { request: Some((schema, example)), ..self }
    }

    pub(crate) fn with_response(mut self, answer: ResponseDoc) -> Self {
        self.answers.push(answer);
        self
    }

    /// Sets the refusals that are specific to it. Those that its authentication and body imply are added later.
    pub(crate) fn with_refusals(self, refusals: &'static [ErrorCode]) -> Self {
        Self { refusals, ..self }
    }

    /// Returns the schemas that the call refers to.
    pub(crate) fn schemas(&self) -> Schemas {
        let answers = self.answers.iter().flat_map(|answer| answer.schemas.clone());
        self.schemas.iter().cloned().chain(answers).collect()
    }
}

impl ResponseDoc {
    /// Returns a response whose whole body is a type of the SDK, without the envelope.
    pub(crate) fn without_envelope<T: ToSchema>(status: &'static str, about: &'static str) -> Self {
        let mut answer = Self::with_schema(status, about, schema_name::<T>());
        add_schema::<T>(&mut answer.schemas);
        answer
    }

    /// Returns a response with a schema that no Rust type has.
    pub(crate) fn with_schema(
        status: &'static str,
        about: &'static str,
        schema: impl Into<String>,
    ) -> Self {
        let contents = vec![(JSON, Ref::from_schema_name(schema).into())];
        Self { status, about, contents, ..Self::default() }
    }

    /// Returns a response with a type in the envelope.
    pub(crate) fn data<T: ToSchema>(status: &'static str, about: &'static str) -> Self {
        Self::enveloped::<T>(
            (status, about),
            &schema_name::<T>(),
            (reference::<T>(), reference::<Meta>()),
        )
    }

    /// Returns a response with a complete list in the envelope.
    pub(crate) fn list<T: ToSchema>(status: &'static str, about: &'static str) -> Self {
        Self::list_with_meta::<T>((status, about), reference::<Meta>())
    }

    /// Returns a response with one page of a list in the envelope; the paging fields are beside the request's id.
    pub(crate) fn page<T: ToSchema>(status: &'static str, about: &'static str) -> Self {
        let meta = "ListMeta".to_owned();
        let both = AllOfBuilder::new().item(reference::<PageMeta>()).item(reference::<Meta>());
        let named = Ref::from_schema_name(&meta).into();
        let mut answer = Self::list_with_meta::<T>((status, about), named);
        add_schema::<PageMeta>(&mut answer.schemas);
        answer.schemas.push((meta, both.into()));
        answer
    }

    fn list_with_meta<T: ToSchema>(
        status_and_about: (&'static str, &'static str),
        meta: RefOr<Schema>,
    ) -> Self {
        let items = ArrayBuilder::new().items(reference::<T>());
        Self::enveloped::<T>(
            status_and_about,
            &format!("{}List", schema_name::<T>()),
            (items.into(), meta),
        )
    }

    /// Returns a response in the envelope. The envelope is a separate component, so that generated clients get a type
    /// for it.
    fn enveloped<T: ToSchema>(
        (status, about): (&'static str, &'static str),
        name: &str,
        (data, meta): (RefOr<Schema>, RefOr<Schema>),
    ) -> Self {
        let success = ObjectBuilder::new().schema_type(SchemaType::from(Type::Boolean));
        let envelope = ObjectBuilder::new()
            .property("success", success.description(Some("Always true.")))
            .property("data", data)
            .property("meta", meta)
            .required("success")
            .required("data")
            .required("meta");
        let name = format!("{name}Response");
        let mut answer = Self::with_schema(status, about, name.clone());
        add_schema::<T>(&mut answer.schemas);
        answer.schemas.push((name, envelope.into()));
        answer
    }

    /// Returns a response with the bytes of a label.
    pub(crate) fn file(status: &'static str, about: &'static str) -> Self {
        Self::bytes(status, about, &LabelFormat::ALL)
    }

    /// Returns a response with the bytes of many labels.
    pub(crate) fn labels(status: &'static str, about: &'static str) -> Self {
        let formats = [LabelFormat::Pdf, LabelFormat::Zpl];
        Self { headers: FILE_NAME_HEADER, ..Self::bytes(status, about, &formats) }
    }

    /// Returns a response with the bytes of a document that is always a PDF.
    pub(crate) fn pdf(status: &'static str, about: &'static str) -> Self {
        Self::bytes(status, about, &[LabelFormat::Pdf])
    }

    fn bytes(status: &'static str, about: &'static str, formats: &[LabelFormat]) -> Self {
        let bytes = SchemaFormat::KnownFormat(KnownFormat::Binary);
        let file = ObjectBuilder::new()
            .schema_type(SchemaType::from(Type::String))
            .format(Some(bytes))
            .build();
        // Some client generators know only this type for bytes, and use the first type that they know.
        let any = [("application/octet-stream", file.clone().into())];
        let formats = formats.iter().map(|format| (format.content_type(), file.clone().into()));
        let contents = any.into_iter().chain(formats).collect();
        Self { status, about, contents, headers: FILE_HEADERS, ..Self::default() }
    }

    /// Returns the 304 response for a caller that has the file already.
    pub(crate) fn not_modified() -> Self {
        let about = "The file is one of those that `If-None-Match` names.";
        Self { status: "304", about, headers: ETAG_HEADER, ..Self::default() }
    }

    /// Adds the header of a write that marks a replayed response.
    pub(crate) fn with_replay_header(self) -> Self {
        Self { headers: REPLAYED_HEADER, ..self }
    }

    /// Adds a page for browsers.
    pub(crate) fn with_html_page(mut self) -> Self {
        self.contents.push(("text/html", <String as PartialSchema>::schema()));
        self
    }
}
