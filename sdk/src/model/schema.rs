//! The schemas of codes and texts in an OpenAPI document; the others are derived.

use utoipa::openapi::{
    ObjectBuilder, RefOr,
    schema::{Schema, SchemaType, Type},
};

/// Returns a code of a closed list, as an `enum`.
pub(super) fn closed_enum<'a>(known: impl Iterator<Item = &'a str>) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(SchemaType::from(Type::String))
        .enum_values(Some(known))
        .build()
        .into()
}

/// Returns a code of a list that grows: its values are `examples`, not an `enum`, so that a client generated from the
/// document also reads the codes of a newer server.
pub(super) fn open_enum(about: &str, known: impl Iterator<Item = &'static str>) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(SchemaType::from(Type::String))
        .description(Some(about))
        .examples(known)
        .build()
        .into()
}

/// Returns a text with a pattern.
pub(super) fn text(pattern: &str, example: &str) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(SchemaType::from(Type::String))
        .pattern(Some(pattern))
        .examples([example])
        .build()
        .into()
}
