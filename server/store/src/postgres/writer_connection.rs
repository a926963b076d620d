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

/// Minimum pause between a failed attempt to connect and the next one; until then writes are refused at once.
const RECONNECT_PAUSE: Duration = Duration::from_millis(250);
/// Ends a backend, unless it is committing or does not report its state (`track_activities = off`). Returns whether it
/// was ended, or no row if it has gone. If a COMMIT that waits for a synchronous standby were ended, its rows would
/// become visible, although the standby lacks them. No privilege is needed, because the backend runs under our own
/// role.
const END_BACKEND: &str = "SELECT CASE \
     WHEN state LIKE 'idle%' OR state = 'active' AND query <> 'COMMIT' THEN pg_terminate_backend(pid) \
     ELSE false END FROM pg_stat_activity WHERE pid = $1 \
     AND extract(epoch FROM backend_start)::text = $2";

/// The state of the writer, for the rest of the store.
#[derive(Debug, Default)]
pub(super) struct Health {
    pub(super) is_connected: AtomicBool,
    pub(super) reconnections: AtomicU64,
    pub(super) commits: AtomicU64,
    pub(super) changes: AtomicU64,
    pub(super) orders: AtomicU64,
    pub(super) commit_micros: AtomicU64,
}

/// The writer's connection, if it is open, and the backend that a failed connection has left behind.
pub(super) struct WriterConnection {
    pub(super) connector: Connector,
    health: Arc<Health>,
    live: Option<Connection>,
    /// The backend of a connection that failed within a transaction. It may not have noticed the failure, and may still
    /// hold its locks.
    abandoned: Option<Backend>,
    /// The time of the last failed attempt to connect.
    failed_at: Option<Instant>,
}

impl WriterConnection {
    pub(super) const fn new(connector: Connector, health: Arc<Health>) -> Self {
        Self { connector, health, live: None, abandoned: None, failed_at: None }
    }

    /// Opens a connection if none is open.
    pub(super) async fn ensure_open(&mut self) {
        self.live = self.take().await.ok();
    }

    pub(super) fn put_back(&mut self, db: Connection) {
        self.live = Some(db);
        self.health.is_connected.store(true, Ordering::Release);
    }

    /// Abandons a connection in an unknown state. Its backend is ended before the next connection is used.
    pub(super) fn abandon(&mut self, db: &Connection) {
        self.abandoned = Some(db.backend().clone());
    }

    /// Takes the connection, which is opened if necessary. The caller must put it back.
    pub(super) async fn take(&mut self) -> DbResult<Connection> {
        if let Some(db) = self.live.take()
            && !db.is_closed()
        {
            return Ok(db);
        }
        if self.failed_at.is_some_and(|failed_at| !has_elapsed(failed_at, RECONNECT_PAUSE)) {
            return Err(Failure::Unreachable);
        }
        self.health.is_connected.store(false, Ordering::Release);
        let opened = self.open().await;
        self.health.is_connected.store(opened.is_ok(), Ordering::Release);
        let last_failure =
            std::mem::replace(&mut self.failed_at, opened.is_err().then(monotonic_now));
        match &opened {
            // Only the first of several failed attempts is logged as an error; `/readyz` reports that the state
            // persists.
            Err(failure) if last_failure.is_none() => {
                tracing::error!(error = %failure, "no connection to the database");
            }
            Err(failure) => tracing::debug!(error = %failure, "still no connection"),
            Ok(_) if last_failure.is_some() => tracing::info!("connected to the database again"),
            Ok(_) => {}
        }
        opened
    }

    async fn open(&mut self) -> DbResult<Connection> {
        let db = self.connector.connect().await?;
        if let Some(Backend { pid, started }) = &self.abandoned {
            let ended =
                db.query_map(END_BACKEND, &[pid, started], |row| get::<bool>(row, 0)).await?;
            // A COMMIT on the new connection would wait as well, and leave another waiting backend.
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
