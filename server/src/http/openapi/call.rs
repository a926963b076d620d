//! A call as it is described beside its handler: what it takes, answers and refuses. What follows from its
//! method, path and authentication is added by the document.

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

use super::described::{
    Answer, FILE, JSON, Query, REPLAYED, Schemas, TAG, UNTAGGED_FILE, add, name, reference,
};

/// A call: `Target` says which.
pub(crate) struct Call<Target> {
    pub(crate) target: Target,
    pub(crate) summary: &'static str,
    pub(crate) query: &'static [Query],
    /// The name of the body's schema, and an example.
    pub(crate) request: Option<(String, Value)>,
    /// Whether there must be a body.
    pub(crate) required: Required,
    pub(crate) answers: Vec<Answer>,
    pub(crate) refusals: &'static [ErrorCode],
    schemas: Schemas,
}

impl<Target> Call<Target> {
    pub(crate) fn new(target: Target, summary: &'static str) -> Self {
        let (query, request, required, answers) = (&[], None, Required::True, Vec::new());
        let (refusals, schemas) = (&[], Vec::new());
        Self { target, summary, query, request, required, answers, refusals, schemas }
    }

    pub(crate) fn query(self, query: &'static [Query]) -> Self {
        Self { query, ..self }
    }

    pub(crate) fn takes<T: ToSchema>(mut self, example: Value) -> Self {
        add::<T>(&mut self.schemas);
        self.takes_named(name::<T>(), example)
    }

    /// A call whose body may be left out.
    pub(crate) fn or_nothing(self) -> Self {
        Self { required: Required::False, ..self }
    }

    /// A body whose schema is not a type's.
    pub(crate) fn takes_named(self, schema: String, example: Value) -> Self {
        Self { request: Some((schema, example)), ..self }
    }

    pub(crate) fn answers(mut self, answer: Answer) -> Self {
        self.answers.push(answer);
        self
    }

    /// What it refuses beside what every call with its authentication and body may refuse.
    pub(crate) fn refuses(self, refusals: &'static [ErrorCode]) -> Self {
        Self { refusals, ..self }
    }

    /// The schemas that it refers to.
    pub(crate) fn schemas(&self) -> Schemas {
        let answers = self.answers.iter().flat_map(|answer| answer.schemas.clone());
        self.schemas.iter().cloned().chain(answers).collect()
    }
}

impl Answer {
    /// A type of the vocabulary itself.
    pub(crate) fn bare<T: ToSchema>(status: &'static str, about: &'static str) -> Self {
        let mut answer = Self::named(status, about, name::<T>());
        add::<T>(&mut answer.schemas);
        answer
    }

    /// A schema that is not a type's.
    pub(crate) fn named(
        status: &'static str,
        about: &'static str,
        schema: impl Into<String>,
    ) -> Self {
        let contents = vec![(JSON, Ref::from_schema_name(schema).into())];
        Self { status, about, contents, ..Self::default() }
    }

    /// A type in the envelope.
    pub(crate) fn data<T: ToSchema>(status: &'static str, about: &'static str) -> Self {
        Self::enveloped::<T>((status, about), &name::<T>(), (reference::<T>(), reference::<Meta>()))
    }

    /// All things of a type, in the envelope.
    pub(crate) fn list<T: ToSchema>(status: &'static str, about: &'static str) -> Self {
        Self::list_with::<T>((status, about), reference::<Meta>())
    }

    /// A page of things of a type, in the envelope: paging stands beside the request's id.
    pub(crate) fn page<T: ToSchema>(status: &'static str, about: &'static str) -> Self {
        let meta = "ListMeta".to_owned();
        let both = AllOfBuilder::new().item(reference::<PageMeta>()).item(reference::<Meta>());
        let named = Ref::from_schema_name(&meta).into();
        let mut answer = Self::list_with::<T>((status, about), named);
        add::<PageMeta>(&mut answer.schemas);
        answer.schemas.push((meta, both.into()));
        answer
    }

    fn list_with<T: ToSchema>(what: (&'static str, &'static str), meta: RefOr<Schema>) -> Self {
        let items = ArrayBuilder::new().items(reference::<T>());
        Self::enveloped::<T>(what, &format!("{}List", name::<T>()), (items.into(), meta))
    }

    /// The envelope is a component of its own, so that generated clients have it as a type.
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
        let mut answer = Self::named(status, about, name.clone());
        add::<T>(&mut answer.schemas);
        answer.schemas.push((name, envelope.into()));
        answer
    }

    /// The bytes of a label.
    pub(crate) fn file(status: &'static str, about: &'static str) -> Self {
        Self::bytes(status, about, &LabelFormat::ALL)
    }

    /// The bytes of many labels.
    pub(crate) fn labels(status: &'static str, about: &'static str) -> Self {
        let formats = [LabelFormat::Pdf, LabelFormat::Zpl];
        Self { headers: UNTAGGED_FILE, ..Self::bytes(status, about, &formats) }
    }

    /// The bytes of a paper that is a PDF only.
    pub(crate) fn pdf(status: &'static str, about: &'static str) -> Self {
        Self::bytes(status, about, &[LabelFormat::Pdf])
    }

    fn bytes(status: &'static str, about: &'static str, formats: &[LabelFormat]) -> Self {
        let bytes = SchemaFormat::KnownFormat(KnownFormat::Binary);
        let file = ObjectBuilder::new()
            .schema_type(SchemaType::from(Type::String))
            .format(Some(bytes))
            .build();
        // Some client generators know bytes under this type only, and take the first type that they know.
        let any = [("application/octet-stream", file.clone().into())];
        let formats = formats.iter().map(|format| (format.content_type(), file.clone().into()));
        let contents = any.into_iter().chain(formats).collect();
        Self { status, about, contents, headers: FILE, ..Self::default() }
    }

    /// For a caller that has the file already.
    pub(crate) fn unchanged() -> Self {
        let about = "The file is one of those that `If-None-Match` names.";
        Self { status: "304", about, headers: TAG, ..Self::default() }
    }

    /// To a write that says when it was carried out before.
    pub(crate) fn repeatable(self) -> Self {
        Self { headers: REPLAYED, ..self }
    }

    /// For browsers, as a page.
    pub(crate) fn or_page(mut self) -> Self {
        self.contents.push(("text/html", <String as PartialSchema>::schema()));
        self
    }
}
