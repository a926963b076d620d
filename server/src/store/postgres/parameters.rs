//! The types of a statement's parameters, where PostgreSQL is not asked for them.

use bytes::BytesMut;
use tokio_postgres::types::{ToSql, Type};

/// What a statement that is not prepared is given: PostgreSQL is not asked for the types first.
pub(super) fn typed<'a>(given: &[&'a (dyn ToSql + Sync)]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    given.iter().map(|value| (*value, type_of(*value))).collect()
}

/// The type of PostgreSQL that a value of Rust has; of ours, each has one. The trait does not say it of a value
/// whose type is not known, but it does say no.
fn type_of(value: &(dyn ToSql + Sync)) -> Type {
    let fits = |wanted: &Type| value.to_sql_checked(wanted, &mut BytesMut::new()).is_ok();
    TYPES.into_iter().find(fits).unwrap_or(Type::UNKNOWN)
}

const TYPES: [Type; 12] = [
    Type::INT8,
    Type::TEXT,
    Type::BYTEA,
    Type::INT4,
    Type::INT2,
    Type::BOOL,
    Type::INT8_ARRAY,
    Type::TEXT_ARRAY,
    Type::BYTEA_ARRAY,
    Type::INT4_ARRAY,
    Type::INT2_ARRAY,
    Type::BOOL_ARRAY,
];
