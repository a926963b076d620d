//! One connection: how it is opened, what is set on it rather than assumed, which databases are refused, and
//! the statements that it keeps prepared.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, PoisonError},
};

use tokio_postgres::{
    Client, Row, Statement,
    types::{FromSql, ToSql},
};

use super::{
    address::Address,
    error::{DbResult, Failure},
    tls::Encryption,
};

/// The oldest PostgreSQL that is tested.
const OLDEST_VERSION: i32 = 15_00_00;

/// READ COMMITTED is what the statements are written for, and a role or a database may have another default.
/// A statement or lock that takes longer fails, so that no connection waits for ever; a transaction that is
/// left open (its process stopped, its network gone) loses its locks.
const SETTINGS: &str = "\
    SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE; \
    SET statement_timeout = '15s'; \
    SET lock_timeout = '3s'; \
    SET idle_in_transaction_session_timeout = '10s'; \
    SET client_min_messages = warning; \
    SET TimeZone = 'UTC'; \
    SET jit = off";

/// What a statement is given.
pub(super) type Given<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Opens connections to one database.
#[derive(Clone)]
pub(super) struct Connector {
    address: Address,
    encryption: Encryption,
}

impl Connector {
    pub(super) fn new(address: Address) -> DbResult<Self> {
        let encryption = Encryption::new(&address).map_err(Failure::Unsuitable)?;
        Ok(Self { address, encryption })
    }

    /// Opens a connection, unless the database loses data or cannot be written.
    pub(super) async fn connect(&self) -> DbResult<Connection> {
        let (client, connection) = self.address.config.connect(self.encryption.clone()).await?;
        tokio::task::spawn_local(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the database ended");
            }
        });
        client.batch_execute(SETTINGS).await?;
        let pid = self.check(&client).await?;
        Ok(Connection { client, pid, statements: Mutex::default() })
    }

    /// Refuses what would break promises; answers the backend's process id.
    async fn check(&self, client: &Client) -> DbResult<i32> {
        let found = client
            .query_one(
                "SELECT current_setting('server_version_num')::integer, \
                 current_setting('fsync'), current_setting('full_page_writes'), \
                 current_setting('synchronous_commit'), pg_is_in_recovery(), pg_backend_pid(), \
                 current_setting('server_encoding')",
                &[],
            )
            .await?;
        let refuse = |reason: &str| Err(Failure::Unsuitable(reason.to_owned()));
        if found.try_get::<_, i32>(0)? < OLDEST_VERSION {
            return refuse("it is older than PostgreSQL 15: upgrade it");
        }
        if found.try_get::<_, bool>(4)? {
            return refuse("it is a standby, which takes no writes: name the primary");
        }
        if found.try_get::<_, &str>(6)? != "UTF8" {
            return refuse("its encoding is not UTF8: create the database with ENCODING 'UTF8'");
        }
        if !self.address.may_lose_data {
            for (column, setting) in [(1, "fsync"), (2, "full_page_writes")] {
                if found.try_get::<_, &str>(column)? == "off" {
                    let reason = format!(
                        "its setting {setting} is off, and a crash would lose orders that were \
                         acknowledged: turn it on"
                    );
                    return Err(Failure::Unsuitable(reason));
                }
            }
        }
        if found.try_get::<_, &str>(3)? == "off" {
            // A default that a session may change; the stronger ones (`remote_apply`) stay.
            client.batch_execute("SET synchronous_commit = on").await?;
        }
        Ok(found.try_get(5)?)
    }
}

/// A connection. Several calls of it may be under way at once: they are answered in their order.
pub struct Connection {
    client: Client,
    pid: i32,
    statements: Mutex<HashMap<Box<str>, Statement>>,
}

impl Connection {
    /// The process id of its backend.
    pub(super) const fn pid(&self) -> i32 {
        self.pid
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// For what only the driver does: rows that are streamed.
    pub(super) const fn client(&self) -> &Client {
        &self.client
    }

    /// Runs statements without parameters, none of whose rows is wanted.
    pub(super) async fn run(&self, sql: &str) -> DbResult<()> {
        Ok(self.client.batch_execute(sql).await?)
    }

    pub(super) async fn execute(&self, sql: &str, given: Given<'_>) -> DbResult<u64> {
        let statement = self.prepared(sql).await?;
        Ok(self.client.execute(&statement, given).await?)
    }

    pub(super) async fn all(&self, sql: &str, given: Given<'_>) -> DbResult<Vec<Row>> {
        let statement = self.prepared(sql).await?;
        Ok(self.client.query(&statement, given).await?)
    }

    /// The first row, if there is one.
    pub(super) async fn first(&self, sql: &str, given: Given<'_>) -> DbResult<Option<Row>> {
        Ok(self.all(sql, given).await?.into_iter().next())
    }

    /// The one value of a statement that always has a row.
    pub(super) async fn value<T>(&self, sql: &str, given: Given<'_>) -> DbResult<T>
    where
        T: for<'a> FromSql<'a>,
    {
        self.only(sql, given, |row| get(row, 0)).await
    }

    /// The one row of a statement that always has one.
    pub(super) async fn only<T>(
        &self,
        sql: &str,
        given: Given<'_>,
        read: impl FnOnce(&Row) -> DbResult<T>,
    ) -> DbResult<T> {
        let row = self.first(sql, given).await?;
        read(&row.ok_or_else(|| Failure::row("a statement that has a row has none"))?)
    }

    /// The rows of a statement, each read by `read`.
    pub(super) async fn each<T>(
        &self,
        sql: &str,
        given: Given<'_>,
        read: impl FnMut(&Row) -> DbResult<T>,
    ) -> DbResult<Vec<T>> {
        self.all(sql, given).await?.iter().map(read).collect()
    }

    async fn prepared(&self, sql: &str) -> DbResult<Statement> {
        let known = |sql: &str| {
            self.statements.lock().unwrap_or_else(PoisonError::into_inner).get(sql).cloned()
        };
        if let Some(statement) = known(sql) {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        let mut statements = self.statements.lock().unwrap_or_else(PoisonError::into_inner);
        statements.insert(sql.into(), statement.clone());
        Ok(statement)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("pid", &self.pid).finish_non_exhaustive()
    }
}

/// A column of a row. One that does not hold what it should is an error of the row alone.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> DbResult<T> {
    row.try_get(column).map_err(Failure::row)
}

/// A whole number of a row, as the smaller or unsigned type that it was written from.
pub(super) fn number<T>(row: &Row, column: usize) -> DbResult<T>
where
    T: TryFrom<i64, Error: std::error::Error + Send + Sync + 'static>,
{
    T::try_from(get::<i64>(row, column)?).map_err(Failure::row)
}

/// The same of a column of two bytes.
pub(super) fn small<T>(row: &Row, column: usize) -> DbResult<T>
where
    T: TryFrom<i16, Error: std::error::Error + Send + Sync + 'static>,
{
    T::try_from(get::<i16>(row, column)?).map_err(Failure::row)
}

/// Bytes of a length that their type has.
pub(super) fn bytes<const N: usize>(row: &Row, column: usize) -> DbResult<[u8; N]> {
    get::<&[u8]>(row, column)?.try_into().map_err(Failure::row)
}

/// The same, when there are any.
pub(super) fn optional_bytes<const N: usize>(
    row: &Row,
    column: usize,
) -> DbResult<Option<[u8; N]>> {
    let found: Option<&[u8]> = get(row, column)?;
    found.map(|found| found.try_into().map_err(Failure::row)).transpose()
}
