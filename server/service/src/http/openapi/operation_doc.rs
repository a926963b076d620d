//! The parts of calls in an OpenAPI document: parameters, headers, responses and schemas.

use parcelo_types::{Environment, internal::header};
use serde_json::Value;
use utoipa::{
    ToSchema,
    openapi::{
        ContactBuilder, Info, InfoBuilder, LicenseBuilder, RefOr, Required, Server, ServerBuilder,
        Tag,
        path::{Parameter, ParameterBuilder, ParameterIn},
        schema::{ObjectBuilder, Ref, Schema, SchemaType, Type},
        tag::TagBuilder,
    },
};

pub const JSON: &str = "application/json";

/// A list of schemas with their names.
pub type Schemas = Vec<(String, RefOr<Schema>)>;

/// A query parameter: its name, its description, and its schema.
pub struct QueryParameter(pub &'static str, pub &'static str, pub fn() -> RefOr<Schema>);

/// A successful response.
#[derive(Clone, Default)]
pub struct ResponseDoc {
    pub status: &'static str,
    pub about: &'static str,
    pub contents: Vec<(&'static str, RefOr<Schema>)>,
    pub headers: &'static [Header],
    /// The schemas that its contents refer to.
    pub schemas: Schemas,
}

/// A header of a response: its name, its description, and the type of its value.
#[derive(Clone)]
pub struct Header(pub(super) &'static str, pub(super) &'static str, pub(super) Type);

/// The headers of every response of a listener with limits.
pub(super) const RATE_LIMIT_HEADERS: &[Header] = &[
    Header(header::REQUEST_ID, "The id to quote to support.", Type::String),
    Header(header::RATE_LIMIT, "Maximum number of requests in a window.", Type::Integer),
    Header(header::RATE_REMAINING, "Requests left in this window.", Type::Integer),
    Header(header::RATE_RESET, "The Unix second in which this window ends.", Type::Integer),
];

/// The header of a refusal that says how long to wait.
pub(super) const RETRY_AFTER_HEADER: &[Header] =
    &[Header("retry-after", "Whole seconds to wait before trying again.", Type::Integer)];

/// The header of a replayed write with an idempotency key.
pub(super) const REPLAYED_HEADER: &[Header] = &[Header(
    header::IDEMPOTENT_REPLAYED,
    "`true` on a replay of an earlier response.",
    Type::String,
)];

/// The header of a response about a file without the file itself.
pub(super) const ETAG_HEADER: &[Header] =
    &[Header("etag", "Identifies the content: equal files have equal tags.", Type::String)];

/// The headers of a label's file.
pub(super) const FILE_HEADERS: &[Header] = &[
    Header("content-disposition", "The file's name.", Type::String),
    Header("etag", "The version of the file: equal tags mean equal bytes.", Type::String),
];

/// The header of a file of many labels.
pub(super) const FILE_NAME_HEADER: &[Header] =
    &[Header("content-disposition", "The file's name.", Type::String)];

/// Returns the `info` of a document: title, version and description.
pub fn document_info(title: &str, about: &str) -> Info {
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
pub fn server_entry(path: &str) -> Server {
    ServerBuilder::new().url(path).description(Some("The host that this document is from")).build()
}

/// Returns the groups of calls with their descriptions.
pub fn tag_entries(groups: &[(&str, &str)]) -> Vec<Tag> {
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
pub fn header_parameter(name: &str, about: &str, schema: impl Into<RefOr<Schema>>) -> Parameter {
    let header = parameter(name, ParameterIn::Header, schema);
    header.required(Required::False).description(Some(about)).build()
}

pub(super) fn path_parameter(name: &str) -> Parameter {
    let text = type_schema(Type::String).min_length(Some(1));
    let schema = if name == "environment" { reference::<Environment>() } else { text.into() };
    parameter(name, ParameterIn::Path, schema).build()
}

/// Returns the schema of all texts.
pub fn text_schema() -> RefOr<Schema> {
    type_schema(Type::String).into()
}

/// Returns the schema of all values with a JSON type.
pub fn type_schema(kind: Type) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::from(kind))
}

pub fn schema_name<T: ToSchema>() -> String {
    T::name().into_owned()
}

pub fn reference<T: ToSchema>() -> RefOr<Schema> {
    Ref::from_schema_name(schema_name::<T>()).into()
}

/// Adds a type and all types that it refers to, with the limits that the rules set.
pub fn add_schema<T: ToSchema>(schemas: &mut Schemas) {
    let mut further = Vec::new();
    T::schemas(&mut further);
    further.push((schema_name::<T>(), T::schema()));
    for (name, schema) in &mut further {
        parcelo_wire::write_limits(name, schema);
    }
    schemas.append(&mut further);
}

/// Fails if a checked-in document, whose path is relative to the repository, differs from what the code describes. With
/// `PARCELO_BLESS=1` it writes the document.
///
/// # Panics
///
/// If they differ, or the document cannot be written.
#[expect(clippy::panic, clippy::expect_used, reason = "called by tests only")]
pub fn assert_checked_in(path: &str, written: &Value, checked_in: &str) {
    let written = format!("{written:#}\n");
    if std::env::var_os("PARCELO_BLESS").is_some() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        std::fs::write(root.join(path), &written).expect("a document that can be written");
    } else if checked_in != written {
        panic!("{path} is out of date: run `just bless` and review the diff");
    }
}
