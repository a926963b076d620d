//! The writer's connection: opened when needed, and replaced when unusable.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parcelo_system::clock::{has_elapsed, monotonic_now};

use super::{
    connection::{Backend, Connection, Connector, get},
    error::{DbResult, Failure},
};

/// Minimum pause between a failure and the next attempt to connect; until then writes are refused at once.
const OPEN_PAUSE: Duration = Duration::from_millis(250);
/// Ends a backend, unless it is committing or does not report its state (`track_activities = off`). Returns a row for
/// each live backend: `true` if it was ended. Ending a COMMIT that waits for a synchronous standby would show rows that
/// the standby lacks. No privilege is needed, because the backend runs under our own role.
const END_BACKEND: &str = "SELECT CASE \
     WHEN state LIKE 'idle%' OR state = 'active' AND query <> 'COMMIT' THEN pg_terminate_backend(pid) \
     ELSE false END FROM pg_stat_activity WHERE pid = $1 \
     AND extract(epoch FROM backend_start)::text = $2";

/// The state of the writer, for readers outside it.
#[derive(Debug, Default)]
pub(super) struct Health {
    pub(super) is_connected: AtomicBool,
    pub(super) reconnections: AtomicU64,
    pub(super) commits: AtomicU64,
    pub(super) changes: AtomicU64,
    pub(super) orders: AtomicU64,
}

/// The connection, if there is one, and the remains of the previous connection.
pub(super) struct WriterConnection {
    pub(super) connector: Connector,
    health: Arc<Health>,
    live: Option<Connection>,
    /// The backend of a connection that failed within a transaction. It may not have noticed, and still hold its locks.
    abandoned: Option<Backend>,
    /// The time of the last failed attempt to connect.
    failed: Option<Instant>,
}

impl WriterConnection {
    pub(super) const fn new(connector: Connector, health: Arc<Health>) -> Self {
        Self { connector, health, live: None, abandoned: None, failed: None }
    }

    /// Opens a connection if none is open.
    pub(super) async fn ensure_open(&mut self) {
        self.live = self.take().await.ok();
    }

    pub(super) fn put_back(&mut self, db: Connection) {
        self.live = Some(db);
        self.health.is_connected.store(true, Ordering::Release);
    }

    /// Abandons a connection in an unknown state: its backend must be ended.
    pub(super) fn abandon(&mut self, db: &Connection) {
        self.abandoned = Some(db.backend().clone());
    }

    /// Returns the connection, and opens it if necessary. The caller puts it back.
    pub(super) async fn take(&mut self) -> DbResult<Connection> {
        if let Some(db) = self.live.take()
            && !db.is_closed()
        {
            return Ok(db);
        }
        if self.failed.is_some_and(|failed| !has_elapsed(failed, OPEN_PAUSE)) {
            return Err(Failure::Unreachable);
        }
        self.health.is_connected.store(false, Ordering::Release);
        let opened = self.open().await;
        self.health.is_connected.store(opened.is_ok(), Ordering::Release);
        let failed = std::mem::replace(&mut self.failed, opened.is_err().then(monotonic_now));
        match &opened {
            // Logged once, whatever the number of attempts: `/readyz` reports the rest.
            Err(failure) if failed.is_none() => {
                tracing::error!(error = %failure, "no connection to the database");
            }
            Err(failure) => tracing::debug!(error = %failure, "still no connection"),
            Ok(_) if failed.is_some() => tracing::info!("connected to the database again"),
            Ok(_) => {}
        }
        opened
    }

    async fn open(&mut self) -> DbResult<Connection> {
        let db = self.connector.connect().await?;
        if let Some(Backend { pid, started }) = &self.abandoned {
            let ended =
                db.query_map(END_BACKEND, &[pid, started], |row| get::<bool>(row, 0)).await?;
            // Each further COMMIT would wait as well, and leave another waiting backend.
            if ended.contains(&false) {
                let reason = "its last COMMIT has not ended: does its synchronous standby answer?";
                return Err(Failure::NotOpened(reason.to_owned()));
            }
            self.abandoned = None;
        }
        self.health.reconnections.fetch_add(1, Ordering::Release);
        Ok(db)
    }
}
