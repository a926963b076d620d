//! How the vocabulary's words and texts look in an OpenAPI document; the rest is derived.

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ObjectBuilder, Ref, RefOr,
        schema::{AnyOfBuilder, ArrayBuilder, Schema, SchemaType, Type},
    },
};

use super::{FieldFault, RejectedParcel, VoidResult};

/// A word of a closed list; readers must expect further ones.
pub(super) fn words<'a>(known: impl Iterator<Item = &'a str>) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(SchemaType::from(Type::String))
        .enum_values(Some(known))
        .build()
        .into()
}

/// A word of a list that grows: its values are examples, so that a program that was made of the document
/// reads those of a newer server too.
pub(super) fn open_words(about: &str, known: impl Iterator<Item = &'static str>) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(SchemaType::from(Type::String))
        .description(Some(about))
        .examples(known)
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

/// What the details of errors have in common, whose other members depend on the code.
pub(super) struct ErrorDetails;

impl PartialSchema for ErrorDetails {
    fn schema() -> RefOr<Schema> {
        let reference = |name| Ref::from_schema_name(name);
        let fault = AnyOfBuilder::new()
            .item(reference(FieldFault::name()))
            .item(reference(RejectedParcel::name()));
        let errors = ArrayBuilder::new().items(fault).description(Some(
            "Every fault of a request that broke rules; or each parcel that a manifest cannot have.",
        ));
        let results = ArrayBuilder::new()
            .items(reference(VoidResult::name()))
            .description(Some("Why each order could not be voided."));
        ObjectBuilder::new()
            .description(Some("More about an error; there are further members for some codes."))
            .property("errors", errors)
            .property("results", results)
            .into()
    }
}

impl ToSchema for ErrorDetails {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        add::<FieldFault>(schemas);
        add::<RejectedParcel>(schemas);
        add::<VoidResult>(schemas);
    }
}

/// A type and those that it refers to.
fn add<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    T::schemas(schemas);
    schemas.push((T::name().into_owned(), T::schema()));
}
