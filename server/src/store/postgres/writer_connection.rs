//! The connection of the writer: opened when it is needed, replaced when it is of no use any more, and asked on a new
//! one whether a COMMIT was done whose answer was cut off.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::time::sleep;

use super::{
    connection::{Backend, Connection, Connector},
    error::{DbResult, Failure},
    fence::{Live, begin, end_backend, settle},
};
use crate::clock::{is_older, stopwatch};

/// After a failure the next connection is opened no sooner: writes are refused meanwhile, at once.
const OPEN_PAUSE: Duration = Duration::from_millis(250);
/// Between two looks for the outcome of a COMMIT.
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);

/// What is known of the writer from outside.
#[derive(Debug, Default)]
pub(super) struct Health {
    pub(super) is_connected: AtomicBool,
    pub(super) is_closed: AtomicBool,
    pub(super) commits: AtomicU64,
    pub(super) changes: AtomicU64,
    pub(super) orders: AtomicU64,
}

/// The connection, when there is one, and what is left of the one before it.
pub(super) struct WriterConnection {
    connector: Connector,
    health: Arc<Health>,
    live: Option<Live>,
    /// The backend of a connection that failed within a transaction. It may not know, and hold its locks.
    abandoned: Option<Backend>,
    /// When the last connection could not be opened.
    failed: Option<Instant>,
}

impl WriterConnection {
    pub(super) const fn new(connector: Connector, health: Arc<Health>) -> Self {
        Self { connector, health, live: None, abandoned: None, failed: None }
    }

    /// A connection whose database may have no schema yet.
    pub(super) async fn open_unprepared(&self) -> DbResult<Connection> {
        self.connector.connect().await
    }

    /// Takes a connection to a database that has its schema; answers its number.
    pub(super) async fn begin(&mut self, db: Connection) -> DbResult<i64> {
        let live = begin(db).await?;
        let writer = live.writer;
        self.live = Some(live);
        self.health.is_connected.store(true, Ordering::Release);
        Ok(writer)
    }

    /// Opens one if there is none.
    pub(super) async fn look(&mut self) {
        if !self.is_connected() {
            self.live = self.take().await.ok();
        }
    }

    pub(super) fn put_back(&mut self, live: Live) {
        self.live = Some(live);
    }

    /// Of a connection that is in doubt nothing more is wanted than its end.
    pub(super) fn abandon(&mut self, live: &Live) {
        self.abandoned = Some(live.db.backend().clone());
    }

    /// Whether there is a connection, as far as is known.
    fn is_connected(&self) -> bool {
        let is_connected = self.live.as_ref().is_some_and(|live| !live.db.is_closed());
        self.health.is_connected.store(is_connected, Ordering::Release);
        is_connected
    }

    /// Whether the commit after `lost.batch` was done. It is asked until there is an answer: till then no
    /// caller can be answered, and no other write is taken.
    pub(super) async fn was_committed(&mut self, lost: &Live) -> bool {
        loop {
            match self.connector.connect().await {
                Ok(db) => match settle(&db, lost).await {
                    Ok(was_committed) => {
                        self.live = begin(db).await.ok();
                        // Under a steady stream of writes nothing else would say so.
                        self.health.is_connected.store(self.live.is_some(), Ordering::Release);
                        return was_committed;
                    }
                    Err(failure) => {
                        tracing::warn!(error = %failure, "the outcome of a COMMIT is not known yet");
                    }
                },
                Err(failure) => {
                    self.health.is_connected.store(false, Ordering::Release);
                    tracing::warn!(error = %failure, "the outcome of a COMMIT is not known yet");
                }
            }
            sleep(RECONNECT_PAUSE).await;
        }
    }

    /// The connection, opened if need be; who takes it puts it back.
    pub(super) async fn take(&mut self) -> DbResult<Live> {
        if let Some(live) = self.live.take()
            && !live.db.is_closed()
        {
            return Ok(live);
        }
        if self.failed.is_some_and(|failed| !is_older(failed, OPEN_PAUSE)) {
            return Err(Failure::Unreachable);
        }
        let opened = self.open().await;
        self.health.is_connected.store(opened.is_ok(), Ordering::Release);
        let failed = std::mem::replace(&mut self.failed, opened.is_err().then(stopwatch));
        match &opened {
            // Once, however often it is tried: `/readyz` says the rest.
            Err(failure) if failed.is_none() => {
                tracing::error!(error = %failure, "no connection to the database");
            }
            Err(failure) => tracing::debug!(error = %failure, "still no connection"),
            Ok(_) if failed.is_some() => tracing::info!("connected to the database again"),
            Ok(_) => {}
        }
        opened
    }

    async fn open(&mut self) -> DbResult<Live> {
        let db = self.connector.connect().await?;
        if let Some(abandoned) = &self.abandoned {
            end_backend(&db, abandoned).await?;
            self.abandoned = None;
        }
        begin(db).await
    }

    pub(super) async fn end(&mut self) {
        if let Some(live) = self.live.take() {
            // What is left of it is deleted in a month.
            let _left =
                live.db.execute("DELETE FROM writers WHERE writer = $1", &[&live.writer]).await;
        }
    }
}
