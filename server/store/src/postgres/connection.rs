//! Opens connections and sets their settings, refuses unsuitable databases, and keeps prepared statements.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use tokio::{task::LocalSet, time::timeout};
use tokio_postgres::{
    Client, Row, RowStream, Statement,
    error::SqlState,
    types::{FromSql, ToSql},
};

use super::{
    address::{Address, UnsafeSettings},
    connect_error::{POOLER, STANDBY, connect_failure},
    error::{DbResult, Failure},
    hosts::HostConfig,
    silence::Silence,
    tls::Encryption,
};
#[cfg(any(test, feature = "test-util"))]
use crate::postgres::test_util::statements;

/// Oldest version of PostgreSQL that is tested.
const OLDEST_VERSION: i32 = 15_00_00;
/// Maximum time for connecting to a host if there are other hosts to try.
const HOST_TIMEOUT: Duration = Duration::from_secs(5);

/// Session settings. The statements are written for READ COMMITTED, but a role or a database may have another default.
/// Statements and lock waits time out, so that no connection waits forever; a transaction that is left open (a stopped
/// process, a lost network) loses its locks. Plans are generic, because planning a list took four times as long as
/// reading it; a test checks the generic plans. The settings are sent in the startup message, in which most poolers
/// refuse them.
const SETTINGS: &str = "\
    -c default_transaction_isolation=read\\ committed -c default_transaction_read_only=off \
    -c statement_timeout=15s -c lock_timeout=3s -c idle_in_transaction_session_timeout=10s \
    -c client_min_messages=warning -c timezone=UTC -c jit=off \
    -c plan_cache_mode=force_generic_plan";
/// One of the settings, with its value as PostgreSQL shows it. It is checked because a pooler may silently drop the
/// settings.
const CHECKED_SETTING: (&str, &str) = ("idle_in_transaction_session_timeout", "10s");
/// The advisory lock that every connection shares as long as it lives, and that a copy takes exclusively. The number is
/// "parcelp" in ASCII, the one after the migrations' lock.
pub(super) const SERVERS_LOCK: i64 = 0x0070_6172_6365_6C70;

/// The reason to refuse a database that is being copied.
const BEING_COPIED: &str = "it is being copied: start again when `parcelo-server copy` has ended";

/// Runs a task on a new thread, together with the tasks of its connections.
pub(super) fn spawn_thread(name: &str, task: impl AsyncFnOnce() + Send + 'static) -> DbResult<()> {
    let failed = |error: std::io::Error| Failure::Unsuitable(error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(failed)?;
    let run = move || LocalSet::new().block_on(&runtime, task());
    thread::Builder::new().name(name.to_owned()).spawn(run).map(drop).map_err(failed)
}

/// Collects one value of each row.
macro_rules! column {
    ($rows:expr, $row:pat => $value:expr) => {
        $rows.iter().map(|$row| $value).collect::<Vec<_>>()
    };
}
pub(super) use column;

/// The values of a statement's parameters.
pub(crate) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A factory of connections to one database.
#[derive(Clone)]
pub(super) struct Connector {
    hosts: Vec<HostConfig>,
    encryption: Encryption,
    /// The silence of the PostgreSQL server; shared by all connectors to the same server.
    pub(super) silence: Arc<Silence>,
    /// The policy for unsafe settings, from the address.
    unsafe_settings: UnsafeSettings,
    answer_timeout: Duration,
    /// An SQL expression that shares [`SERVERS_LOCK`], or `true` in a connector for a copy.
    lock: String,
}

impl Connector {
    /// Returns a connector for the writer's connections.
    pub(super) fn for_writer(address: &Address) -> DbResult<Self> {
        if address.unsafe_settings == UnsafeSettings::Allow {
            tracing::warn!("unsafe_settings=allow: a crash of PostgreSQL may lose orders");
        }
        Self::with_settings(address, SETTINGS)
    }

    /// Returns a connector to the same database whose statements time out when callers stop waiting for a read.
    pub(super) fn for_readers(address: &Address, writer: &Self) -> DbResult<Self> {
        let settings = format!("{SETTINGS} -c statement_timeout=10s");
        let silence = Arc::clone(&writer.silence);
        Ok(Self { silence, ..Self::with_settings(address, &settings)? })
    }

    /// Returns a connector for a copy. Its connection does not share the lock, which the copy takes exclusively.
    pub(super) fn for_copy(address: &Address) -> DbResult<Self> {
        Ok(Self { lock: "true".to_owned(), ..Self::for_writer(address)? })
    }

    fn with_settings(address: &Address, settings: &str) -> DbResult<Self> {
        let mut hosts = address.hosts.clone();
        for HostConfig { config, .. } in &mut hosts {
            let options = config.get_options().map(|options| format!("{options} "));
            config.options(options.unwrap_or_default() + settings);
        }
        Ok(Self {
            hosts,
            encryption: Encryption::new(address).map_err(Failure::Unsuitable)?,
            silence: Arc::default(),
            unsafe_settings: address.unsafe_settings,
            answer_timeout: address.answer_timeout,
            lock: format!("pg_advisory_lock_shared({SERVERS_LOCK})"),
        })
    }

    /// Opens a connection to the first host that accepts writes. If a host cannot be used for a reason other than being
    /// down or a standby, the remaining hosts are not tried: they would refuse, for instance, a wrong password too.
    pub(super) async fn connect(&self) -> DbResult<Connection> {
        self.silence.request_sent();
        let limit = if self.hosts.len() > 1 { HOST_TIMEOUT } else { Duration::MAX };
        let limit = limit.min(self.answer_timeout);
        let (mut reasons, mut all_are_standbys, mut all_have_answered) = (Vec::new(), true, true);
        for host in &self.hosts {
            let opened = timeout(limit, self.open(host)).await.unwrap_or_else(|_elapsed| {
                let reason = format!("no answer within {} s", limit.as_secs_f32());
                Err(Failure::NotOpened(reason))
            });
            let reason = match opened {
                Ok(Some(connection)) => {
                    self.silence.response_received();
                    return Ok(connection);
                }
                Ok(None) => STANDBY.to_owned(),
                Err(failure) if failure.is_connection_error() => {
                    all_are_standbys = false;
                    all_have_answered &= failure.code().is_some();
                    failure.to_string()
                }
                Err(failure) => {
                    self.silence.response_received();
                    return Err(match failure {
                        Failure::Unsuitable(reason) => {
                            Failure::Unsuitable(self.with_host_name(host, &reason))
                        }
                        failure => failure,
                    });
                }
            };
            reasons.push(self.with_host_name(host, &reason));
        }
        // Answers from some hosts are not enough, because the host that accepts writes may be the silent one.
        if all_have_answered {
            self.silence.response_received();
        }
        let reasons = reasons.join("; ");
        Err(if all_are_standbys {
            Failure::Unsuitable(reasons)
        } else {
            Failure::NotOpened(reasons)
        })
    }

    /// Adds the host's name to a reason if there are several hosts.
    fn with_host_name(&self, host: &HostConfig, reason: &str) -> String {
        if self.hosts.len() > 1 { format!("{}: {reason}", host.name) } else { reason.to_owned() }
    }

    /// Opens a connection to a host. Returns `None` if it is a standby.
    async fn open(&self, host: &HostConfig) -> DbResult<Option<Connection>> {
        let (config, password_source) = host.with_password();
        let connected = config.connect(self.encryption.clone()).await;
        let (client, connection) =
            connected.map_err(|error| connect_failure(error, password_source))?;
        tokio::task::spawn_local(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the database ended");
            }
        });
        let backend = self.check_settings(&client).await?;
        Ok(backend.map(|backend| Connection {
            client,
            backend,
            answer_timeout: self.answer_timeout,
            silence: Arc::clone(&self.silence),
            statements: Mutex::default(),
        }))
    }

    /// Refuses settings that would break guarantees of the store.
    /// Returns the connection's backend, or `None` for a standby.
    async fn check_settings(&self, client: &Client) -> DbResult<Option<Backend>> {
        let sql = format!(
            "SELECT current_setting('server_version_num')::integer, \
             current_setting('fsync'), current_setting('full_page_writes'), \
             current_setting('synchronous_commit'), pg_is_in_recovery(), pg_backend_pid(), \
             current_setting('server_encoding'), current_setting('{}'), \
             (SELECT extract(epoch FROM backend_start)::text FROM pg_stat_activity \
             WHERE pid = pg_backend_pid()), {}",
            CHECKED_SETTING.0, self.lock
        );
        let settings = client.query_typed(&sql, &[]).await.map_err(|error| {
            if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) {
                return Failure::Unsuitable(BEING_COPIED.to_owned());
            }
            Failure::Driver(error)
        })?;
        let settings = settings.first().ok_or_else(|| Failure::row("settings have no row"))?;
        if settings.try_get::<_, bool>(4)? {
            return Ok(None);
        }
        self.refuse_unsuitable(settings)?;
        // Set explicitly, so that a later change of the default does not affect this connection.
        let durable = match settings.try_get(3)? {
            "remote_apply" => "SET synchronous_commit = remote_apply",
            _ => "SET synchronous_commit = on",
        };
        client.batch_execute(durable).await?;
        let started = settings.try_get::<_, Option<String>>(8)?.unwrap_or_default();
        Ok(Some(Backend { pid: settings.try_get(5)?, started }))
    }

    fn refuse_unsuitable(&self, settings: &Row) -> DbResult<()> {
        let refuse = |reason: &str| Err(Failure::Unsuitable(reason.to_owned()));
        if settings.try_get::<_, i32>(0)? < OLDEST_VERSION {
            return refuse("it is older than PostgreSQL 15: upgrade it");
        }
        if settings.try_get::<_, &str>(6)? != "UTF8" {
            return refuse("its encoding is not UTF8: create the database with ENCODING 'UTF8'");
        }
        if settings.try_get::<_, &str>(7)? != CHECKED_SETTING.1 {
            return refuse(POOLER);
        }
        for (column, setting) in [(1, "fsync"), (2, "full_page_writes")] {
            if settings.try_get::<_, &str>(column)? == "off"
                && self.unsafe_settings == UnsafeSettings::Refuse
            {
                let reason = format!(
                    "its setting {setting} is off, and a crash would lose orders that were \
                     acknowledged: turn it on, or add unsafe_settings=managed to the address if the \
                     provider keeps the log elsewhere, as Neon does"
                );
                return Err(Failure::Unsuitable(reason));
            }
        }
        Ok(())
    }
}

/// A PostgreSQL process that serves one connection. The start time tells it from others, because process ids are
/// reused.
#[derive(Debug, Clone)]
pub(super) struct Backend {
    pub(super) pid: i32,
    /// The time at which it started.
    pub(super) started: String,
}

/// A connection. Several statements can be sent on it at once, and are answered in order.
pub(crate) struct Connection {
    client: Client,
    backend: Backend,
    answer_timeout: Duration,
    silence: Arc<Silence>,
    /// The prepared statements.
    statements: Mutex<HashMap<Box<str>, Statement>>,
}

impl Connection {
    pub(super) const fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Sets another timeout for answers, and returns the previous one.
    pub(super) const fn set_answer_timeout(&mut self, limit: Duration) -> Duration {
        std::mem::replace(&mut self.answer_timeout, limit)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Runs statements without parameters, and ignores their rows.
    pub(crate) async fn run(&self, sql: &str) -> DbResult<()> {
        #[cfg(any(test, feature = "test-util"))]
        statements::record_statement(self.backend.pid, sql);
        self.await_answer(self.client.batch_execute(sql)).await
    }

    pub(crate) async fn execute(&self, sql: &str, params: Params<'_>) -> DbResult<u64> {
        let statement = self.prepared(sql).await?;
        self.await_answer(self.client.execute(&statement, params)).await
    }

    pub(crate) async fn all(&self, sql: &str, params: Params<'_>) -> DbResult<Vec<Row>> {
        let statement = self.prepared(sql).await?;
        self.await_answer(self.client.query(&statement, params)).await
    }

    /// Returns the rows of a statement without parameters as they arrive, without a timeout.
    pub(crate) async fn stream(&self, sql: &str) -> DbResult<RowStream> {
        Ok(self.client.query_raw::<_, &str, _>(sql, []).await?)
    }

    /// Waits for PostgreSQL's answer until the timeout. After a timeout the connection is unusable, because it is
    /// unknown whether the statement was executed.
    async fn await_answer<T>(
        &self,
        call: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> DbResult<T> {
        self.silence.request_sent();
        let answer = timeout(self.answer_timeout, call).await;
        let answer = answer.map_err(|_elapsed| Failure::Unreachable)?;
        if answer.as_ref().map_or_else(|error| error.as_db_error().is_some(), |_| true) {
            self.silence.response_received();
        }
        Ok(answer?)
    }

    /// Returns the only value of a statement that always has a row.
    pub(super) async fn value<T>(&self, sql: &str, params: Params<'_>) -> DbResult<T>
    where
        T: for<'a> FromSql<'a>,
    {
        self.query_one(sql, params, |row| get(row, 0)).await
    }

    /// Returns the only row of a statement that always has one.
    pub(super) async fn query_one<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        read: impl FnOnce(&Row) -> DbResult<T>,
    ) -> DbResult<T> {
        let rows = self.all(sql, params).await?;
        read(rows.first().ok_or_else(|| Failure::row("a statement returned no row"))?)
    }

    /// Returns the rows of a statement, each read by `read`.
    pub(super) async fn query_map<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        read: impl FnMut(&Row) -> DbResult<T>,
    ) -> DbResult<Vec<T>> {
        self.all(sql, params).await?.iter().map(read).collect()
    }

    async fn prepared(&self, sql: &str) -> DbResult<Statement> {
        #[cfg(any(test, feature = "test-util"))]
        statements::record_statement(self.backend.pid, sql);
        let statements = || self.statements.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(prepared) = statements().get(sql).cloned() {
            return Ok(prepared);
        }
        let statement = self.await_answer(self.client.prepare(sql)).await?;
        statements().insert(sql.into(), statement.clone());
        Ok(statement)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("backend", &self.backend).finish_non_exhaustive()
    }
}

/// Reads a column of a row. A value of the wrong type is an error of that row only.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> DbResult<T> {
    row.try_get(column).map_err(Failure::row)
}

/// Reads a whole number as the smaller or unsigned type from which it was written.
pub(super) fn number<T>(row: &Row, column: usize) -> DbResult<T>
where
    T: TryFrom<i64, Error: std::error::Error + Send + Sync + 'static>,
{
    T::try_from(get::<i64>(row, column)?).map_err(Failure::row)
}

/// Reads bytes of a fixed length.
pub(super) fn bytes<const N: usize>(row: &Row, column: usize) -> DbResult<[u8; N]> {
    get::<&[u8]>(row, column)?.try_into().map_err(Failure::row)
}
