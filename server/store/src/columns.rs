//! Columns of both engines: how lists and environments are stored, and the types that values are read as.

use std::str::FromStr;

use parcelo_domain::{AccountRowId, Countries, Millis, ParcelRowId, TraceContext};
use parcelo_types::{CountryCode, Environment};
use rusqlite::types::ValueRef;

use super::values::Value;

/// Returns the number under which an environment is stored.
pub(super) const fn environment_number(environment: Environment) -> u8 {
    match environment {
        Environment::Production => 0,
        Environment::Sandbox => 1,
    }
}

/// The stored form of "all countries".
const ALL_COUNTRIES: &str = "*";

pub(super) fn format_countries(countries: &Countries) -> String {
    match countries {
        Countries::All => ALL_COUNTRIES.to_owned(),
        Countries::Only(list) => join_with_commas(list),
    }
}

pub(super) fn parse_countries(text: &str) -> Result<Countries, <CountryCode as FromStr>::Err> {
    if text == ALL_COUNTRIES {
        return Ok(Countries::All);
    }
    parse_list(text).map(Countries::Only)
}

/// Returns the condition that a column has one of the numbers in a parameter, which [`join_with_commas`] writes.
/// PostgreSQL would parse the parameter again for each row that it reads, and parses a sub-select once.
macro_rules! is_among {
    ($params:literal) => {
        concat!(
            "{= ANY ((SELECT string_to_array(",
            $params,
            ", ',')::bigint[])::bigint[])|IN (SELECT value FROM json_each('[' || ",
            $params,
            " || ']'))}"
        )
    };
}
pub(super) use is_among;

pub(super) fn join_with_commas(list: &[impl ToString]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

pub(super) fn parse_list<T: FromStr>(text: &str) -> Result<Vec<T>, T::Err> {
    text.split(',').filter(|item| !item.is_empty()).map(str::parse).collect()
}

/// A type that columns are read as.
pub(super) trait Column: Sized {
    /// Converts a value. Returns `None` if it does not fit.
    fn from_value(value: ValueRef<'_>) -> Option<Self>;
}

/// Implements [`Column`] for types of whole numbers, and for types that wrap one.
macro_rules! integers {
    ($($number:ty),*; $($wrapper:ty),*) => {
        $(impl Column for $number {
            fn from_value(value: ValueRef<'_>) -> Option<Self> {
                i64::from_value(value)?.try_into().ok()
            }
        })*
        $(impl Column for $wrapper {
            fn from_value(value: ValueRef<'_>) -> Option<Self> {
                i64::from_value(value).map(Self)
            }
        })*
    };
}
integers!(i16, i32, u8, u16, u32, usize; Millis, ParcelRowId, AccountRowId);

impl Column for i64 {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        value.as_i64().ok()
    }
}

impl Column for bool {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        i64::from_value(value).map(|number| number != 0)
    }
}

impl Column for String {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        value.as_str().ok().map(str::to_owned)
    }
}

impl Column for Vec<u8> {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        value.as_blob().ok().map(<[u8]>::to_vec)
    }
}

impl<const N: usize> Column for [u8; N] {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        value.as_blob().ok()?.try_into().ok()
    }
}

impl Column for TraceContext {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        <[u8; 17]>::from_value(value).map(Self::from_bytes)
    }
}

impl Column for Value {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        Some(match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Text(_) => Self::Text(String::from_value(value)?),
            ValueRef::Blob(bytes) => Self::Bytes(bytes.to_vec()),
            ValueRef::Real(_) => return None,
        })
    }
}

impl Column for Environment {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        let number = u8::from_value(value)?;
        Self::ALL.into_iter().find(|known| environment_number(*known) == number)
    }
}

impl<T: Column> Column for Option<T> {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        if matches!(value, ValueRef::Null) { Some(None) } else { T::from_value(value).map(Some) }
    }
}
