//! The schemas of codes and texts in an OpenAPI document; the others are derived.

use utoipa::openapi::{
    ObjectBuilder, RefOr,
    schema::{Schema, SchemaType, Type},
};

/// Returns the schema of a code from a closed list, as an `enum`.
pub fn closed_enum<'a>(known: impl Iterator<Item = &'a str>) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(SchemaType::from(Type::String))
        .enum_values(Some(known))
        .build()
        .into()
}

/// Returns the schema of a code from a list that grows. Its values are `examples` and not an `enum`, so that a client
/// that is generated from the document also accepts the codes of a newer server.
pub(super) fn open_enum(about: &str, known: impl Iterator<Item = &'static str>) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(SchemaType::from(Type::String))
        .description(Some(about))
        .examples(known)
        .build()
        .into()
}

/// Returns the schema of a text with a pattern.
pub(super) fn text(pattern: &str, example: &str) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(SchemaType::from(Type::String))
        .pattern(Some(pattern))
        .examples([example])
        .build()
        .into()
}
