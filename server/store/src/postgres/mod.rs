//! The PostgreSQL engine: one database for several servers.
//!
//! No request holds a connection. Writes queue for the writer, which owns one connection (`writer.rs`) and puts many of
//! them into one transaction (`group.rs`). Reads queue for a few more connections (`readers.rs`). If a request is
//! dropped, its call still runs. A connection in an unknown state is discarded. The process caches nothing that other
//! servers' writes would make wrong.

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
    CommitOutcome, ReadOnlyReason, Settled, Stats, StoreError, WRITE_TIMEOUT,
    process_state::ProcessState, settlements::Settlement, turns::Turns,
};

/// Maximum time that a caller waits for a read.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time for the last writes when the store is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Number of a server's connections in addition to the writer's.
pub(super) const READERS: Connections = Connections { point_reads: 3, scans: 4 };
/// Number of a command's connections in addition to the writer's.
pub(super) const ONE_READER: Connections = Connections { point_reads: 0, scans: 1 };
/// The statements of a group of creates between BEGIN and COMMIT, without webhooks: for benches, which send only these.
pub const CREATE_STATEMENTS: [&str; 3] = [records::INSERT, creates::INSERT, counts::INSERT_CHANGES];

/// The database. Clones are the same database.
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
    /// The queues of scans.
    turns: Turns,
    /// The second before which windows of limits are deleted; 0 before the first deletion.
    windows_deleted_before: AtomicI64,
    health: Arc<Health>,
    /// Time since PostgreSQL answered anything.
    silence: Arc<Silence>,
    /// Time since PostgreSQL answered a read, because it may accept no further connection while the writer's works.
    read_silence: Silence,
    /// `true` if a newer program has changed the schema so that this program's statements are wrong.
    is_outdated: AtomicBool,
    /// The database's clock.
    clock: Arc<SharedClock>,
    /// The places at which searches for due events begin.
    floors: due_events::SearchFloors,
    /// The place where the next merge of count changes begins.
    count_merges: counts::MergeProgress,
    /// The undelivered events at the last count.
    backlogs: tokio::sync::Mutex<Option<backlogs::CachedBacklogs>>,
    /// The last row that the last search for stranded events has checked.
    stranded_searched_to: AtomicI64,
    /// `true` if leases begin and end by the database's clock, as always outside tests.
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
        let writing = Connector::for_writer(&address).map_err(failed)?;
        let reading = Connector::for_readers(&address, &writing).map_err(failed)?;
        let silence = Arc::clone(&writing.silence);
        let health = Arc::new(Health::default());
        let started = Writer::start(writing, Arc::clone(&health), fresh_secret).await;
        let (writer, Prepared { secret, server }) = started.map_err(failed)?;
        let readers = Readers::start(reading, connections).map_err(failed)?;
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
        if let Some(skew) = store.measure_clock_at_start().await? {
            tracing::warn!("{skew}: synchronise both with NTP");
        }
        Ok(store)
    }

    /// Returns `true` if a database of ours exists, for commands that only read and must not create one.
    pub async fn exists(address: Address) -> Result<bool, StoreError> {
        let name = address.name();
        let check_schema = async {
            migrations::has_schema(&Connector::for_writer(&address)?.connect().await?).await
        };
        // Each connection is served by two tasks of this thread.
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

    /// Flushes queued writes, as far as PostgreSQL can be reached.
    pub async fn close(self) {
        let finish = async {
            // If it fails, the others forget this server in a few seconds anyway.
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
        let [commits, changes, orders] = [&health.commits, &health.changes, &health.orders]
            .map(|count| count.load(Ordering::Relaxed));
        let unreadable =
            [("parcels", &self.0.unreadable_parcels), ("events", &self.0.unreadable_events)];
        let unreadable = unreadable.map(|(table, count)| (table, count.load(Ordering::Relaxed)));
        let reads = self.0.state.reads.load(Ordering::Relaxed);
        Stats { commits, changes, orders, reads, unreadable }
    }

    /// Returns `Closed` once the store is closed. An unreachable database is not lost, because it may come back.
    pub(super) fn read_only_reason(&self) -> Option<ReadOnlyReason> {
        self.0.writer.is_closed().then_some(ReadOnlyReason::Closed)
    }

    pub(super) fn is_readable(&self) -> bool {
        self.has_writer() && self.unavailable_reason().is_none()
    }

    /// Returns `true` if the writer has a connection. Writes on other connections check this first: if commits do not
    /// end, each further commit would leave a waiting backend.
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

    /// Logs once that PostgreSQL stopped answering, and that it answers again. The writer checks its own connection.
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
