//! How the vocabulary's words and texts look in an OpenAPI document; the rest is derived.

use utoipa::openapi::{
    ObjectBuilder, RefOr,
    schema::{Schema, SchemaType, Type},
};

/// A word of a closed list; readers must expect further ones.
pub(super) fn words<'a>(known: impl Iterator<Item = &'a str>) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(SchemaType::from(Type::String))
        .enum_values(Some(known))
        .build()
        .into()
}

/// A text with a form of its own.
pub(super) fn text(pattern: &str, example: &str) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(SchemaType::from(Type::String))
        .pattern(Some(pattern))
        .examples([example])
        .build()
        .into()
}
