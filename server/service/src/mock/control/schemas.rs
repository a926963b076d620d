//! Schemas of the controls' fields without a matching Rust type, for the OpenAPI document.

use parcelo_types::{ErrorCode, Operation, internal::EventKind};
use utoipa::openapi::{
    RefOr,
    schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type},
};

use crate::{http::operation_doc::type_schema, mock::reply::FINAL_STATUSES};

/// The pattern of durations that [`super::requests`] accepts.
const DURATION: &str = "^P(?=.)(?!.*[.,].*[0-9][A-Z].*[0-9])([0-9]+([.,][0-9]+)?W)?([0-9]+([.,][0-9]+)?D)?\
                        (T(?=.)([0-9]+([.,][0-9]+)?H)?([0-9]+([.,][0-9]+)?M)?([0-9]+([.,][0-9]+)?S)?)?$";

/// Returns the names of operations.
pub(super) fn operation_names() -> ObjectBuilder {
    let names = Operation::ALL.iter().map(|operation| operation.name());
    type_schema(Type::String).enum_values(Some(names))
}

pub(super) fn operations() -> RefOr<Schema> {
    nullable_schema("Only requests of this operation.", [operation_names()])
}

pub(super) fn error_codes() -> RefOr<Schema> {
    let codes = ErrorCode::ALL.iter().map(|code| code.code());
    let codes = type_schema(Type::String).enum_values(Some(codes));
    nullable_schema("The code of an error; only an error takes it.", [codes])
}

pub(super) fn seconds_or_duration() -> RefOr<Schema> {
    duration_schema(
        "Advances it by seconds, or by a duration of weeks and smaller units, whose last part may have decimals.",
    )
}

pub(super) fn seconds_or_duration_of_overlap() -> RefOr<Schema> {
    duration_schema(
        "How long the old secret keeps working, at most 7 days: seconds, or a duration such as PT1H. \
         24 hours by default.",
    )
}

fn duration_schema(about: &str) -> RefOr<Schema> {
    let seconds = type_schema(Type::Number).minimum(Some(0));
    let duration = type_schema(Type::String).pattern(Some(DURATION));
    nullable_schema(about, [seconds, duration.examples(["PT5M", "P30D", "PT1.5S"])])
}

/// Returns the schema of an optional field, which may also be null.
fn nullable_schema(about: &str, kinds: impl IntoIterator<Item = ObjectBuilder>) -> RefOr<Schema> {
    let kinds = kinds.into_iter().chain([type_schema(Type::Null)]);
    kinds.fold(OneOfBuilder::new().description(Some(about)), OneOfBuilder::item).into()
}

pub(super) fn statuses() -> RefOr<Schema> {
    let status = type_schema(Type::Integer);
    let status = status.minimum(Some(FINAL_STATUSES.0)).maximum(Some(FINAL_STATUSES.1));
    ArrayBuilder::new().items(status).into()
}

pub(super) fn event_kinds() -> RefOr<Schema> {
    let kinds = EventKind::KNOWN.iter().map(EventKind::code);
    ArrayBuilder::new().items(type_schema(Type::String).enum_values(Some(kinds))).into()
}
