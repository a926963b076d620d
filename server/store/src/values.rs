//! A column value of either engine.

#[cfg(feature = "postgres")]
use std::error::Error;

#[cfg(feature = "postgres")]
use bytes::BytesMut;
use parcelo_domain::{AccountRowId, Millis, ParcelRowId, TraceContext};
use rusqlite::types::{ToSqlOutput, ValueRef};
#[cfg(feature = "postgres")]
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

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
    /// Returns the value as `SQLite` gives the values of a row, from which columns of both engines are read.
    pub(crate) fn view(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }
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
    text: String => Self::Text(text),
    bytes: &[u8] => Self::Bytes(bytes.to_vec()),
    bytes: &Vec<u8> => Self::Bytes(bytes.clone()),
    moment: Millis => Self::Integer(moment.0),
    account: AccountRowId => Self::Integer(account.0),
    parcel: ParcelRowId => Self::Integer(parcel.0),
    trace: TraceContext => trace.to_bytes().into(),
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
        Ok(ToSqlOutput::Borrowed(self.view()))
    }
}

/// Converts whole numbers to the type of their column. Errors never contain the value.
#[cfg(feature = "postgres")]
impl ToSql for Value {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(number) if *ty == Type::BOOL => (*number != 0).to_sql(ty, out),
            Self::Integer(number) if *ty == Type::INT2 => i16::try_from(*number)?.to_sql(ty, out),
            Self::Integer(number) if *ty == Type::INT4 => i32::try_from(*number)?.to_sql(ty, out),
            Self::Integer(number) if *ty == Type::INT8 => number.to_sql(ty, out),
            Self::Text(text) if text.contains('\0') => {
                Err("a value holds the character U+0000, which PostgreSQL cannot store".into())
            }
            Self::Text(text) if *ty == Type::TEXT => text.to_sql(ty, out),
            Self::Bytes(bytes) if *ty == Type::BYTEA => bytes.to_sql(ty, out),
            Self::Integer(_) | Self::Text(_) | Self::Bytes(_) => {
                Err("the type of a value differs from that of its column".into())
            }
        }
    }

    fn accepts(ty: &Type) -> bool {
        <Self as FromSql<'_>>::accepts(ty)
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
