//! A column value of either engine, and the checksum of rows.

#[cfg(feature = "postgres")]
use std::error::Error;

#[cfg(feature = "postgres")]
use bytes::BytesMut;
use rusqlite::types::{FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};
#[cfg(feature = "postgres")]
use sha2::{Digest, Sha256};
#[cfg(feature = "postgres")]
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::{
    clock::Millis,
    domain::{AccountRowId, ParcelRowId},
};

/// A value of a column. Its `Debug` output shows no content, because that may be a person's address.
#[derive(Clone)]
pub enum Value {
    Null,
    /// A whole number or a boolean, which is 0 or 1 in `SQLite`.
    Integer(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Value {
    pub(in crate::store) fn from_sqlite(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Text(text) => {
                Self::Text(str::from_utf8(text).map_err(FromSqlError::other)?.to_owned())
            }
            ValueRef::Blob(bytes) => Self::Bytes(bytes.to_vec()),
            ValueRef::Real(_) => return Err(FromSqlError::InvalidType),
        })
    }

    #[cfg(feature = "postgres")]
    /// Adds the value to a checksum: its kind, its length and its content, so that no two rows have the same bytes.
    fn hash_into(&self, hash: &mut Sha256) {
        let number;
        let (kind, bytes): (u8, &[u8]) = match self {
            Self::Null => (0, &[]),
            Self::Integer(value) => {
                number = value.to_be_bytes();
                (1, &number)
            }
            Self::Text(text) => (2, text.as_bytes()),
            Self::Bytes(bytes) => (3, bytes),
        };
        hash.update([kind]);
        hash.update(bytes.len().to_be_bytes());
        hash.update(bytes);
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Value(***)")
    }
}

/// Implements the conversion into [`Value`] for each type.
macro_rules! values {
    ($($value:ident: $from:ty => $made:expr),* $(,)?) => {$(
        impl From<$from> for Value {
            fn from($value: $from) -> Self {
                $made
            }
        }
    )*};
}

values! {
    number: i64 => Self::Integer(number),
    number: i32 => Self::Integer(number.into()),
    number: u64 => Self::Integer(i64::try_from(number).unwrap_or(i64::MAX)),
    number: usize => Self::Integer(i64::try_from(number).unwrap_or(i64::MAX)),
    number: u32 => Self::Integer(number.into()),
    number: u16 => Self::Integer(number.into()),
    number: u8 => Self::Integer(number.into()),
    yes: bool => Self::Integer(yes.into()),
    text: &str => Self::Text(text.to_owned()),
    text: &String => Self::Text(text.clone()),
    bytes: &[u8] => Self::Bytes(bytes.to_vec()),
    bytes: &Vec<u8> => Self::Bytes(bytes.clone()),
    moment: Millis => Self::Integer(moment.0),
    account: AccountRowId => Self::Integer(account.0),
    parcel: ParcelRowId => Self::Integer(parcel.0),
}

impl<const N: usize> From<[u8; N]> for Value {
    fn from(bytes: [u8; N]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, T::into)
    }
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// A value that is bound to a PostgreSQL column. Errors name the column, but never the value.
#[cfg(feature = "postgres")]
pub(in crate::store) struct Field<'a> {
    pub(in crate::store) column: &'a str,
    pub(in crate::store) value: &'a Value,
}

#[cfg(feature = "postgres")]
impl Field<'_> {
    fn refused(&self, why: &str) -> Box<dyn Error + Sync + Send> {
        format!("the column {} of a row {why}", self.column).into()
    }

    /// Converts a whole number to the type of its column.
    fn narrow<T: TryFrom<i64>>(&self, number: i64) -> Result<T, Box<dyn Error + Sync + Send>> {
        T::try_from(number).map_err(|_wide| self.refused("holds a number that is out of range"))
    }
}

#[cfg(feature = "postgres")]
impl std::fmt::Debug for Field<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Field").field("column", &self.column).finish_non_exhaustive()
    }
}

#[cfg(feature = "postgres")]
impl ToSql for Field<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self.value {
            Value::Null => Ok(IsNull::Yes),
            Value::Integer(number) if *ty == Type::BOOL => {
                self.narrow::<u8>(*number).and_then(|number| (number != 0).to_sql(ty, out))
            }
            Value::Integer(number) if *ty == Type::INT2 => {
                self.narrow::<i16>(*number)?.to_sql(ty, out)
            }
            Value::Integer(number) if *ty == Type::INT4 => {
                self.narrow::<i32>(*number)?.to_sql(ty, out)
            }
            Value::Integer(number) if *ty == Type::INT8 => number.to_sql(ty, out),
            // A file could store it, although no rule accepts it.
            Value::Text(text) if text.contains('\0') => {
                Err(self.refused("holds the character U+0000, which PostgreSQL cannot store"))
            }
            Value::Text(text) if *ty == Type::TEXT => text.to_sql(ty, out),
            Value::Bytes(bytes) if *ty == Type::BYTEA => bytes.to_sql(ty, out),
            Value::Integer(_) | Value::Text(_) | Value::Bytes(_) => {
                Err(self.refused("holds another type of value than it should"))
            }
        }
    }

    fn accepts(ty: &Type) -> bool {
        <Value as FromSql<'_>>::accepts(ty)
    }

    to_sql_checked!();
}

#[cfg(feature = "postgres")]
impl ToSql for Value {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        Field { column: "of a parameter", value: self }.to_sql(ty, out)
    }

    fn accepts(ty: &Type) -> bool {
        Field::accepts(ty)
    }

    to_sql_checked!();
}

#[cfg(feature = "postgres")]
impl<'a> FromSql<'a> for Value {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(match *ty {
            Type::BOOL => Self::Integer(bool::from_sql(ty, raw)?.into()),
            Type::INT2 => Self::Integer(i16::from_sql(ty, raw)?.into()),
            Type::INT4 => Self::Integer(i32::from_sql(ty, raw)?.into()),
            Type::INT8 => Self::Integer(i64::from_sql(ty, raw)?),
            Type::TEXT => Self::Text(String::from_sql(ty, raw)?),
            _ => Self::Bytes(raw.to_vec()),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self::Null)
    }

    fn accepts(ty: &Type) -> bool {
        [Type::BOOL, Type::INT2, Type::INT4, Type::INT8, Type::TEXT, Type::BYTEA].contains(ty)
    }
}

#[cfg(feature = "postgres")]
/// The number of rows and the sum of their hashes, which is the same for the same rows in any order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) rows: u64,
    pub(crate) checksum: u64,
}

#[cfg(feature = "postgres")]
impl Sum {
    pub(in crate::store) fn add(&mut self, row: &[Value]) {
        let mut hash = Sha256::new();
        for value in row {
            value.hash_into(&mut hash);
        }
        let hash: [u8; 32] = hash.finalize().into();
        // 64 bits suffice against accidental errors: one in 2^64 would pass.
        let start = hash.first_chunk().copied().unwrap_or_default();
        self.rows += 1;
        self.checksum = self.checksum.wrapping_add(u64::from_be_bytes(start));
    }
}
