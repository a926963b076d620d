//! The PostgreSQL engine: one database for several servers.
//!
//! Requests do not hold connections. Writes are queued for the writer (`writer.rs`), which owns one connection and runs
//! many writes in one transaction (`group.rs`). Reads are queued for a few other connections (`readers.rs`). A queued
//! write completes even if its request is dropped. A connection in an unknown state is discarded. The process caches
//! nothing that another server's write would invalidate.

mod address;
mod apply;
mod backlogs;
mod call;
mod call_timeout;
mod clock;
mod connect_error;
pub(super) mod connection;
mod counts;
mod creates;
mod due_events;
pub(super) mod error;
pub(super) mod generations;
mod group;
mod hosts;
mod leases;
mod limits;
mod lock_wait;
mod locks;
mod migrations;
mod outbox;
mod pages;
mod password;
mod readers;
mod records;
mod sign_in;
mod silence;
mod tls;
pub(super) mod transfer;
mod write_queue;
mod writer;
mod writer_connection;

#[cfg(any(test, feature = "test-util"))]
pub(crate) mod test_util;
#[cfg(test)]
pub(super) mod tests;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parcelo_domain::Changes;
use parcelo_system::clock::shared::SharedClock;

pub use self::address::Address;
pub(super) use self::pages::{ROWS_PER_PAGE, delete_events, delete_old, in_page};
use self::{
    connection::Connector,
    error::Failure,
    readers::{Connections, Readers},
    silence::{MAX_SILENCE, Silence},
    write_queue::{Mutation, QueuedSettlement, Write},
    writer::{Prepared, Writer},
    writer_connection::Health,
};
use super::{
    CommitOutcome, ReadOnlyReason, Settled, StoreError, WRITE_TIMEOUT, process_state::ProcessState,
    settlements::Settlement, stats::Stats, turns::Turns,
};

/// Maximum time that a caller waits for a read.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time for the last writes when the store is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// A server's connections in addition to the writer's.
pub(super) const READERS: Connections = Connections { point_reads: 3, scans: 4 };
/// A command's connections in addition to the writer's.
pub(super) const ONE_READER: Connections = Connections { point_reads: 0, scans: 1 };
/// The statements between BEGIN and COMMIT of a group of creates without webhooks. Benchmarks send only these.
pub const CREATE_STATEMENTS: [&str; 2] = [records::INSERT, creates::INSERT];

/// A store on a PostgreSQL database. Clones share its connections.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    name: String,
    state: ProcessState,
    /// This process's server id.
    server: i64,
    writer: Writer,
    readers: Readers,
    /// Idempotency keys that wait to be looked up.
    lookups: records::Lookups,
    /// Limits each tenant to one scan at a time.
    turns: Turns,
    /// The second before which rate limit windows are deleted; 0 before the first deletion.
    windows_deleted_before: AtomicI64,
    health: Arc<Health>,
    /// Time since PostgreSQL answered anything.
    silence: Arc<Silence>,
    /// Time since PostgreSQL answered a read. PostgreSQL may refuse connections for reads while the writer's still
    /// works.
    read_silence: Silence,
    /// `true` if a newer program has changed the schema so that this program can no longer use it.
    is_outdated: AtomicBool,
    /// The database's clock.
    clock: Arc<SharedClock>,
    /// The places at which searches for due events begin.
    floors: due_events::SearchFloors,
    /// The place where the next merge of count changes begins.
    count_merges: counts::MergeProgress,
    /// The undelivered events at the last count.
    backlogs: tokio::sync::Mutex<Option<backlogs::CachedBacklogs>>,
    /// The last row that the previous search for stranded events checked.
    stranded_searched_to: AtomicI64,
    /// `true` if leases begin and end by the database's clock, as they always do outside tests.
    #[cfg(any(test, feature = "test-util"))]
    leases_by_database: AtomicBool,
    unreadable_parcels: AtomicU64,
    unreadable_events: AtomicU64,
}

impl Store {
    /// Connects to a database, and creates its schema if it is empty. `fresh_secret` becomes the database's secret if
    /// it has none yet.
    pub(crate) async fn connect(
        address: Address,
        fresh_secret: [u8; 32],
        connections: Connections,
    ) -> Result<Self, StoreError> {
        let name = address.name();
        let failed = |failure: Failure| failure.into_store_error(&name);
        let writer_connector = Connector::for_writer(&address).map_err(failed)?;
        let reader_connector =
            Connector::for_readers(&address, &writer_connector).map_err(failed)?;
        let silence = Arc::clone(&writer_connector.silence);
        let health = Arc::new(Health::default());
        let started = Writer::start(writer_connector, Arc::clone(&health), fresh_secret).await;
        let (writer, Prepared { secret, server }) = started.map_err(failed)?;
        let readers = Readers::start(reader_connector, connections).map_err(failed)?;
        let store = Self(Arc::new(Inner {
            name,
            state: ProcessState::new(secret),
            server,
            writer,
            readers,
            lookups: records::Lookups::default(),
            turns: Turns::new(connections.scans),
            windows_deleted_before: AtomicI64::new(0),
            health,
            silence,
            read_silence: Silence::default(),
            is_outdated: AtomicBool::new(false),
            clock: Arc::default(),
            floors: due_events::SearchFloors::default(),
            count_merges: counts::MergeProgress::default(),
            backlogs: tokio::sync::Mutex::default(),
            stranded_searched_to: AtomicI64::new(0),
            #[cfg(any(test, feature = "test-util"))]
            leases_by_database: AtomicBool::new(!test_util::makes_test_databases()),
            unreadable_parcels: AtomicU64::new(0),
            unreadable_events: AtomicU64::new(0),
        }));
        // Measured before any decision depends on the clock.
        if let Some(skew) = store.measure_clock_without_timeout().await? {
            tracing::warn!("{skew}: synchronise both with NTP");
        }
        Ok(store)
    }

    /// Returns `true` if the database has our schema, for commands that only read and must not create the schema.
    pub async fn exists(address: Address) -> Result<bool, StoreError> {
        let name = address.name();
        let check_schema = async {
            migrations::has_schema(&Connector::for_writer(&address)?.connect().await?).await
        };
        // Opening a connection spawns a task on this thread.
        tokio::task::LocalSet::new()
            .run_until(check_schema)
            .await
            .map_err(|failure| failure.into_store_error(&name))
    }

    pub(super) fn state(&self) -> &ProcessState {
        &self.0.state
    }

    /// Returns the name of the database for errors.
    pub(super) fn name(&self) -> String {
        self.0.name.clone()
    }

    /// Returns this process's server id.
    pub(super) fn server(&self) -> i64 {
        self.0.server
    }

    pub async fn commit_idempotent(&self, changes: Changes) -> Result<Vec<u8>, CommitOutcome> {
        let (mutation, answer) = Mutation::new(changes, Arc::clone(&self.0.state.wake));
        self.0.writer.push(Write::Changes(mutation))?;
        match tokio::time::timeout(WRITE_TIMEOUT, answer).await {
            Ok(answer) => answer.unwrap_or(Err(CommitOutcome::Broken)),
            Err(_elapsed) => Err(CommitOutcome::Busy),
        }
    }

    pub(super) async fn settle(&self, settlement: Settlement) -> Result<Settled, StoreError> {
        let (queued, answer) = QueuedSettlement::new(settlement);
        self.write(Write::Settle(queued), answer, Some(WRITE_TIMEOUT)).await
    }

    /// Closes the store once its queued writes are done, or after [`CLOSE_TIMEOUT`].
    pub async fn close(self) {
        let finish = async {
            // If this fails, other servers stop counting this one within a few seconds anyway.
            let _ = self.unregister_server().await;
            self.0.writer.stop().await;
        };
        if tokio::time::timeout(CLOSE_TIMEOUT, finish).await.is_err() {
            tracing::warn!("the last writes were not finished: their callers were not answered");
        }
    }

    pub(super) fn reconnections(&self) -> u64 {
        self.0.health.reconnections.load(Ordering::Acquire)
    }

    pub(super) fn stats(&self) -> Stats {
        let health = &self.0.health;
        let counts = [&health.commits, &health.changes, &health.orders, &health.commit_micros];
        let [commits, changes, orders, commit_micros] =
            counts.map(|count| count.load(Ordering::Relaxed));
        let (commit_time, queued) = (Duration::from_micros(commit_micros), self.0.writer.queued());
        let unreadable =
            [("parcels", &self.0.unreadable_parcels), ("events", &self.0.unreadable_events)];
        let unreadable = unreadable.map(|(table, count)| (table, count.load(Ordering::Relaxed)));
        let reads = self.0.state.reads.load(Ordering::Relaxed);
        Stats { commits, changes, orders, commit_time, queued, reads, unreadable }
    }

    /// Returns `Closed` once the store is closed. An unreachable database is no reason, because it may become reachable
    /// again.
    pub(super) fn read_only_reason(&self) -> Option<ReadOnlyReason> {
        self.0.writer.is_closed().then_some(ReadOnlyReason::Closed)
    }

    pub(super) fn is_readable(&self) -> bool {
        self.has_writer() && self.unavailable_reason().is_none()
    }

    /// Returns `true` if the writer has a connection. Writes on other connections check this first. While a COMMIT
    /// hangs, the writer stays without a connection, and each further COMMIT would leave another waiting backend.
    fn has_writer(&self) -> bool {
        self.0.health.is_connected.load(Ordering::Acquire)
    }

    /// Returns the reason, as a part of a sentence, why this server must not be used although it has a connection.
    pub(super) fn unavailable_reason(&self) -> Option<String> {
        if self.0.is_outdated.load(Ordering::Relaxed) {
            return Some(format!("{}: install the newer program", migrations::OUTDATED));
        }
        let seconds = MAX_SILENCE.as_secs();
        if self.0.silence.is_too_long() {
            return Some(format!("PostgreSQL has not answered for {seconds} s"));
        }
        let is_read_silent = self.0.read_silence.is_too_long();
        is_read_silent.then(|| {
            format!("PostgreSQL has answered no read for {seconds} s: look at its max_connections")
        })
    }

    /// Logs once when PostgreSQL stops answering, and once when it answers again. The writer checks its own connection.
    pub(super) fn check(&self, _now: Instant) {
        match self.0.silence.take_unlogged_change() {
            Some(true) => tracing::error!(
                database = self.0.name,
                "PostgreSQL does not answer: it, its machine or the network has stopped"
            ),
            Some(false) => tracing::info!(database = self.0.name, "PostgreSQL answers again"),
            None => {}
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("database", &self.0.name).finish_non_exhaustive()
    }
}
