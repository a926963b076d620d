//! Statements that are written once for both engines. None of them is on the path of an order.
//!
//! They use PostgreSQL's syntax, which `SQLite` reads too: `$1` is a parameter in both. If the engines differ, a
//! statement has both spellings: `{PostgreSQL's|SQLite's}`. On either engine a call may run twice; the answer of its
//! last run counts.
//!
//! On `SQLite` a call never waits: the thread that reads or writes polls it once.

#![cfg_attr(
    not(feature = "postgres"),
    expect(clippy::unused_async, reason = "the other engine is waited for")
)]

use std::borrow::Cow;

use futures_util::FutureExt as _;
use rusqlite::types::{Type, ValueRef};

#[cfg(feature = "postgres")]
use super::postgres::{connection::Connection, error::Failure};
use super::{columns::Column, sqlite::error, values::Value};

/// The result of a statement.
pub(super) type SqlResult<T> = Result<T, SqlError>;

/// A connection of either engine.
#[derive(Clone, Copy)]
pub(super) enum Sql<'a> {
    Sqlite(&'a rusqlite::Connection),
    #[cfg(feature = "postgres")]
    Postgres(&'a Connection),
}

/// An engine's error.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    #[error("{0}")]
    Sqlite(rusqlite::Error),
    #[cfg(feature = "postgres")]
    #[error("{0}")]
    Postgres(Failure),
}

/// A row of either engine.
#[expect(missing_debug_implementations, reason = "it holds what a person has written")]
pub enum Row<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    #[cfg(feature = "postgres")]
    Postgres(&'a tokio_postgres::Row),
}

/// The values of a statement's parameters, in order.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$($crate::values::Value::from($value)),*]
    };
}
pub(super) use params;

impl Sql<'_> {
    /// Returns `true` on PostgreSQL, for statements that differ between the engines.
    pub(super) const fn is_postgres(self) -> bool {
        match self {
            Self::Sqlite(_) => false,
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => true,
        }
    }

    /// Returns a statement in this engine's dialect: of each `{PostgreSQL's|SQLite's}` pair, the engine's own part.
    pub(super) fn in_dialect(self, sql: &str) -> Cow<'_, str> {
        if !sql.contains('{') {
            return Cow::Borrowed(sql);
        }
        let (mut translated, mut remaining) = (String::with_capacity(sql.len()), sql);
        while let Some((before, (both, after))) = remaining
            .split_once('{')
            .and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
        {
            let (postgres, sqlite) = both.split_once('|').unwrap_or((both, ""));
            translated.extend([before, if self.is_postgres() { postgres } else { sqlite }]);
            remaining = after;
        }
        translated.push_str(remaining);
        Cow::Owned(translated)
    }

    /// Runs reads on one snapshot.
    pub(super) async fn in_snapshot<T>(
        self,
        read: impl AsyncFnOnce() -> SqlResult<T>,
    ) -> SqlResult<T> {
        match self {
            Self::Sqlite(db) => {
                let _moment = db.unchecked_transaction()?;
                read().await
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(db) => {
                db.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
                // After an error, the owner of the connection ends the transaction.
                let answer = read().await?;
                db.run("COMMIT").await?;
                Ok(answer)
            }
        }
    }

    /// Runs a statement and returns the number of rows written.
    pub(super) async fn execute(self, sql: &str, params: &[Value]) -> SqlResult<u64> {
        let sql = &*self.in_dialect(sql);
        match self {
            Self::Sqlite(db) => Ok(prepare_bound(db, sql, params)?.raw_execute()? as u64),
            // No row contains a text with U+0000, so nothing matches. If it is inserted, PostgreSQL returns an error.
            #[cfg(feature = "postgres")]
            Self::Postgres(_) if contains_nul(params) && !sql.starts_with("INSERT") => Ok(0),
            #[cfg(feature = "postgres")]
            Self::Postgres(db) => Ok(db.execute(sql, &parameters(&[], params)).await?),
        }
    }

    /// Waits until no other server's transaction has a lock of this class and name, and holds the lock until the
    /// commit. A file needs no such lock, because it has one writer.
    pub(super) async fn lock(self, class: i32, name: &str) -> SqlResult<()> {
        if self.is_postgres() {
            let lock = "SELECT pg_advisory_xact_lock($1, hashtext($2))";
            self.execute(lock, params![class, name]).await?;
        }
        Ok(())
    }

    /// Waits for a lock by its number, like [`Sql::lock`].
    pub(super) async fn lock_number(self, number: i64) -> SqlResult<()> {
        if self.is_postgres() {
            self.execute("SELECT pg_advisory_xact_lock($1)", params![number]).await?;
        }
        Ok(())
    }

    /// Returns the rows of a statement, each read by `read`.
    pub(super) async fn query_map<T>(
        self,
        sql: &str,
        params: &[Value],
        mut read: impl FnMut(&Row<'_>) -> SqlResult<T>,
    ) -> SqlResult<Vec<T>> {
        let sql = &*self.in_dialect(sql);
        match self {
            Self::Sqlite(db) => {
                let mut statement = prepare_bound(db, sql, params)?;
                let (mut rows, mut all) = (statement.raw_query(), Vec::new());
                while let Some(row) = rows.next()? {
                    all.push(read(&Row::Sqlite(row))?);
                }
                Ok(all)
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(db) => {
                if contains_nul(params) {
                    return Ok(Vec::new());
                }
                let rows = db.all(sql, &parameters(&[], params)).await?;
                rows.iter().map(|row| read(&Row::Postgres(row))).collect()
            }
        }
    }

    /// Returns the first row of a statement, if there is one.
    pub(super) async fn first<T>(
        self,
        sql: &str,
        params: &[Value],
        mut read: impl FnMut(&Row<'_>) -> SqlResult<T>,
    ) -> SqlResult<Option<T>> {
        match self {
            Self::Sqlite(db) => {
                let mut statement = prepare_bound(db, &self.in_dialect(sql), params)?;
                let mut rows = statement.raw_query();
                rows.next()?.map(|row| read(&Row::Sqlite(row))).transpose()
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Ok(self.query_map(sql, params, read).await?.into_iter().next()),
        }
    }

    /// Returns the only row of a statement that always has one.
    pub(super) async fn query_one<T>(
        self,
        sql: &str,
        params: &[Value],
        read: impl FnMut(&Row<'_>) -> SqlResult<T>,
    ) -> SqlResult<T> {
        self.require(self.first(sql, params, read).await?)
    }

    /// Returns a value that must exist.
    pub(super) fn require<T>(self, found: Option<T>) -> SqlResult<T> {
        found.ok_or_else(|| match self {
            Self::Sqlite(_) => rusqlite::Error::QueryReturnedNoRows.into(),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Failure::row("a row that must exist is missing").into(),
        })
    }

    /// Returns the only value of a statement that always has a row.
    pub(super) async fn value<T: Column>(self, sql: &str, params: &[Value]) -> SqlResult<T> {
        self.query_one(sql, params, |row| row.get(0)).await
    }
}

/// Prepares a statement of `SQLite` and binds its parameters.
fn prepare_bound<'a>(
    db: &'a rusqlite::Connection,
    sql: &str,
    params: &[Value],
) -> rusqlite::Result<rusqlite::CachedStatement<'a>> {
    let mut statement = db.prepare_cached(sql)?;
    // `SQLite` takes `$2` for a name, and gives it an index in the order of first use.
    for index in 1..=statement.parameter_count() {
        let name = statement.parameter_name(index).and_then(|name| name.strip_prefix('$'));
        let number = name.and_then(|number| number.parse::<usize>().ok());
        if let Some(value) = number.and_then(|number| params.get(number.checked_sub(1)?)) {
            statement.raw_bind_parameter(index, value)?;
        }
    }
    Ok(statement)
}

/// Returns `true` if a value contains U+0000: PostgreSQL cannot store it, and refuses statements that contain it.
#[cfg(feature = "postgres")]
pub(super) fn contains_nul(params: &[Value]) -> bool {
    params.iter().any(|value| matches!(value, Value::Text(text) if text.contains('\0')))
}

/// Returns the parameters of a statement: the columns of rows, and then others.
#[cfg(feature = "postgres")]
pub(super) fn parameters<'p>(
    columns: &'p [Vec<&Value>],
    params: &'p [Value],
) -> Vec<&'p (dyn tokio_postgres::types::ToSql + Sync)> {
    let columns = columns.iter().map(|column| column as _);
    columns.chain(params.iter().map(|value| value as _)).collect()
}

impl Row<'_> {
    /// Reads a column. A value that does not fit is an error of the row alone.
    pub(super) fn get<T: Column>(&self, column: usize) -> SqlResult<T> {
        self.read(column, T::from_value)
    }

    /// Reads a column of text and parses it.
    pub(super) fn parse<T, E: std::error::Error + Send + Sync + 'static>(
        &self,
        column: usize,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> SqlResult<T> {
        let parsed = self.read(column, |value| value.as_str().ok().map(parse))?;
        parsed.map_err(|error| self.damaged(column, error))
    }

    /// Reads a column of bytes and parses them.
    pub(super) fn bytes<T, E: std::error::Error + Send + Sync + 'static>(
        &self,
        column: usize,
        parse: impl FnOnce(&[u8]) -> Result<T, E>,
    ) -> SqlResult<T> {
        let parsed = self.read(column, |value| value.as_blob().ok().map(parse))?;
        parsed.map_err(|error| self.damaged(column, error))
    }

    /// Converts the value of a column, in place. `convert` returns `None` for a value that does not fit.
    fn read<T>(
        &self,
        column: usize,
        convert: impl FnOnce(ValueRef<'_>) -> Option<T>,
    ) -> SqlResult<T> {
        match self {
            Self::Sqlite(row) => {
                let value = row.get_ref(column)?;
                let wrong =
                    || rusqlite::Error::InvalidColumnType(column, String::new(), value.data_type());
                Ok(convert(value).ok_or_else(wrong)?)
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(row) => {
                let value: Value = row.try_get(column).map_err(Failure::row)?;
                let wrong = || Failure::row("a column holds another value than it should");
                Ok(convert(value.view()).ok_or_else(wrong)?)
            }
        }
    }

    /// Reads a column of JSON.
    pub(super) fn json<T: serde::de::DeserializeOwned>(&self, column: usize) -> SqlResult<T> {
        self.bytes(column, |json| serde_json::from_slice(json))
    }

    /// Reads a column that holds a number, and converts the number.
    pub(super) fn parse_number<T, N: Column>(
        &self,
        column: usize,
        from: impl FnOnce(N) -> Option<T>,
    ) -> SqlResult<T> {
        from(self.get(column)?).ok_or_else(|| self.damaged(column, UnknownNumber))
    }

    /// Returns the error for a column whose stored value cannot be decoded.
    fn damaged(
        &self,
        column: usize,
        error: impl std::error::Error + Send + Sync + 'static,
    ) -> SqlError {
        match self {
            Self::Sqlite(_) => {
                rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
                    .into()
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Failure::row(error).into(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("nothing has this number")]
struct UnknownNumber;

impl SqlError {
    /// Returns `true` if a row does not hold what was once written to it; other rows may be readable.
    pub(super) fn is_row_error(&self) -> bool {
        match self {
            Self::Sqlite(error) => error::is_damaged(error),
            #[cfg(feature = "postgres")]
            Self::Postgres(failure) => failure.is_row(),
        }
    }

    /// Returns `true` if a page of a file cannot be read, or a text is not the JSON that it should be.
    pub(super) fn is_page_error(&self) -> bool {
        match self {
            Self::Sqlite(error) => error::is_row_error(error) && !error::is_damaged(error),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => false,
        }
    }

    /// Adds the parcel whose row in a table caused this error.
    pub(super) fn with_parcel(self, table: &'static str, parcel: i64) -> Self {
        match self {
            Self::Sqlite(error) => error::unreadable(table, parcel, error).into(),
            #[cfg(feature = "postgres")]
            Self::Postgres(failure) => failure.with_parcel(table, parcel).into(),
        }
    }
}

impl From<rusqlite::Error> for SqlError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

#[cfg(feature = "postgres")]
impl From<Failure> for SqlError {
    fn from(failure: Failure) -> Self {
        Self::Postgres(failure)
    }
}

impl From<SqlError> for rusqlite::Error {
    fn from(error: SqlError) -> Self {
        match error {
            SqlError::Sqlite(error) => error,
            #[cfg(feature = "postgres")]
            SqlError::Postgres(_) => Self::InvalidQuery,
        }
    }
}

#[cfg(feature = "postgres")]
impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        match error {
            SqlError::Postgres(failure) => failure,
            SqlError::Sqlite(error) => Self::row(error),
        }
    }
}

/// Polls a call on `SQLite` once, which completes it. Fails if the call waited for anything.
pub(super) fn poll_now<T>(call: impl Future<Output = SqlResult<T>>) -> rusqlite::Result<T> {
    // `SQLite` answers synchronously, so a pending call waited for something else, which is a defect.
    Ok(call.now_or_never().ok_or(rusqlite::Error::InvalidQuery)??)
}
