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
mod settlements;
mod sign_in;
mod silence;
mod tls;
pub(super) mod transfer;
mod write_queue;
mod writer;
mod writer_connection;

#[cfg(test)]
pub(super) mod tests;

use std::{
    collections::HashSet,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::{Notify, oneshot};

pub use self::address::Address;
pub(super) use self::pages::{ROWS_PER_PAGE, delete_events, delete_old, in_page};
use self::{
    connection::{Connection, Connector},
    error::Failure,
    readers::{Connections, Readers},
    settlements::QueuedSettlement,
    silence::{Silence, TOO_LONG},
    write_queue::{Mutation, Write},
    writer::{Prepared, Writer},
    writer_connection::Health,
};
use super::{
    CommitOutcome, Pause, ReadOnlyReason, Settled, Stats, StoreError, active_resets::ActiveResets,
    settlements::Settlement, turns::Turns,
};
use crate::{clock::shared::SharedClock, domain::Changes};

/// Maximum time that a caller waits for a write, which may complete later.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time that a caller waits for a read.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time for the last writes when the store is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Number of a server's connections in addition to the writer's.
const READERS: Connections = Connections { points: 3, scans: 4 };
/// Number of a command's connections in addition to the writer's.
const ONE_READER: Connections = Connections { points: 0, scans: 1 };
/// The statements of a group of creates between BEGIN and COMMIT, without webhooks: for benches, which send only these.
pub const CREATE_STATEMENTS: [&str; 3] = [records::INSERT, creates::INSERT, counts::ADD];

/// The database. Clones are the same database.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    name: String,
    secret: [u8; 32],
    /// This process's server id.
    server: i64,
    writer: Writer,
    readers: Readers,
    /// Idempotency keys that wait to be looked up.
    lookups: records::Lookups,
    /// The queues of scans.
    turns: Turns,
    /// The second before which windows of limits are deleted; 0 before the first deletion.
    windows_over: AtomicI64,
    health: Arc<Health>,
    /// Time since PostgreSQL answered anything.
    silence: Arc<Silence>,
    /// Time since PostgreSQL answered a read, because it may accept no further connection while the writer's works.
    unread: Silence,
    /// `true` if a newer program has changed the schema so that this program's statements are wrong.
    is_outdated: AtomicBool,
    /// Notified when an event is enqueued.
    wake: Arc<Notify>,
    /// Held by the mass write that is running; a server runs one at a time.
    mass_writes: tokio::sync::Mutex<()>,
    resets: Mutex<ActiveResets>,
    /// The database's clock.
    clock: Arc<SharedClock>,
    /// The places at which searches for due events begin.
    floors: due_events::Floors,
    /// The place where the next fold of counts begins.
    folds: counts::Folds,
    /// The undelivered events at the last count.
    backlogs: tokio::sync::Mutex<Option<backlogs::CachedBacklogs>>,
    /// The row up to which the last search for stranded events has come.
    stranded_searched_to: AtomicI64,
    /// `true` if leases begin and end by the database's clock, as always outside tests.
    #[cfg(test)]
    leases_by_database: AtomicBool,
    /// `true` if changes write the e-mails that they cause.
    sends_mails: AtomicBool,
    /// Number of writes of credentials through this store.
    credential_writes: AtomicU64,
    reads: AtomicU64,
    unreadable_parcels: AtomicU64,
    unreadable_events: AtomicU64,
    /// Unreadable rows that were already logged.
    logged_unreadable: Mutex<HashSet<String>>,
}

impl Store {
    /// Connects to a database, and creates its schema if it is empty. `fresh_secret` becomes the database's secret if
    /// it has none yet.
    pub(crate) async fn connect(
        address: Address,
        fresh_secret: [u8; 32],
    ) -> Result<Self, StoreError> {
        Self::connect_with(address, fresh_secret, READERS).await
    }

    /// Connects for a command that runs next to the servers, with two connections in all.
    pub(crate) async fn connect_for_admin(
        address: Address,
        fresh_secret: [u8; 32],
    ) -> Result<Self, StoreError> {
        Self::connect_with(address, fresh_secret, ONE_READER).await
    }

    /// Returns `true` if a database of ours exists, for commands that only read and must not create one.
    pub(crate) async fn exists(address: Address) -> Result<bool, StoreError> {
        let name = address.name();
        let look =
            async { migrations::exists(&Connector::writing(&address)?.connect().await?).await };
        // Each connection is served by two tasks of this thread.
        tokio::task::LocalSet::new()
            .run_until(look)
            .await
            .map_err(|failure| failure.into_store_error(&name))
    }

    async fn connect_with(
        address: Address,
        fresh_secret: [u8; 32],
        connections: Connections,
    ) -> Result<Self, StoreError> {
        let name = address.name();
        let failed = |failure: Failure| failure.into_store_error(&name);
        let writing = Connector::writing(&address).map_err(failed)?;
        let reading = Connector::reading(&address, &writing).map_err(failed)?;
        let silence = Arc::clone(&writing.silence);
        let health = Arc::new(Health::default());
        let started = Writer::start(writing, Arc::clone(&health), fresh_secret).await;
        let (writer, Prepared { secret, server }) = started.map_err(failed)?;
        let readers = Readers::start(reading, connections).map_err(failed)?;
        let store = Self(Arc::new(Inner {
            name,
            secret,
            server,
            writer,
            readers,
            lookups: records::Lookups::default(),
            turns: Turns::new(connections.scans),
            windows_over: AtomicI64::new(0),
            health,
            silence,
            unread: Silence::default(),
            is_outdated: AtomicBool::new(false),
            wake: Arc::default(),
            mass_writes: tokio::sync::Mutex::default(),
            resets: Mutex::default(),
            clock: Arc::default(),
            floors: due_events::Floors::default(),
            folds: counts::Folds::default(),
            backlogs: tokio::sync::Mutex::default(),
            stranded_searched_to: AtomicI64::new(0),
            #[cfg(test)]
            leases_by_database: AtomicBool::new(false),
            sends_mails: AtomicBool::new(false),
            credential_writes: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            unreadable_parcels: AtomicU64::new(0),
            unreadable_events: AtomicU64::new(0),
            logged_unreadable: Mutex::default(),
        }));
        // Measured before any decision depends on the clock.
        if let Some(skew) = store.measure_clock_at_start().await? {
            tracing::warn!("{skew}: synchronise both with NTP");
        }
        Ok(store)
    }

    pub(super) fn secret(&self) -> [u8; 32] {
        self.0.secret
    }

    /// Returns the name of the database for errors.
    pub(super) fn name(&self) -> String {
        self.0.name.clone()
    }

    pub(super) fn active_resets(&self) -> &Mutex<ActiveResets> {
        &self.0.resets
    }

    pub(super) fn wake(&self) -> &Notify {
        &self.0.wake
    }

    /// Returns this process's server id.
    pub(super) fn server(&self) -> i64 {
        self.0.server
    }

    pub(super) fn credential_writes(&self) -> u64 {
        self.0.credential_writes.load(Ordering::Acquire)
    }

    pub(super) fn count_credential_write(&self) {
        self.0.credential_writes.fetch_add(1, Ordering::Release);
    }

    pub(super) fn send_mails(&self) {
        self.0.sends_mails.store(true, Ordering::Relaxed);
    }

    pub(crate) async fn commit(&self, changes: Changes) -> CommitOutcome {
        self.commit_idempotent(changes).await.err().unwrap_or(CommitOutcome::Committed)
    }

    pub(crate) async fn commit_idempotent(
        &self,
        mut changes: Changes,
    ) -> Result<Vec<u8>, CommitOutcome> {
        if self.0.sends_mails.load(Ordering::Relaxed) {
            changes.add_mails();
        }
        let (mutation, answer) = Mutation::new(changes, Arc::clone(&self.0.wake));
        self.0.writer.push(Write::Changes(mutation))?;
        match tokio::time::timeout(WRITE_TIMEOUT, answer).await {
            Ok(answer) => answer.unwrap_or(Err(CommitOutcome::Broken)),
            Err(_elapsed) => Err(CommitOutcome::Busy),
        }
    }

    pub(super) async fn settle(&self, settlement: Settlement) -> Result<Settled, StoreError> {
        let (queued, answer) = QueuedSettlement::new(settlement);
        self.write(Write::Settle(queued), answer).await
    }

    pub(crate) async fn pause_writes(&self) -> Option<Pause> {
        let (pause, ended) = Pause::new();
        let (began, has_begun) = oneshot::channel();
        let waits = Mutex::new((Some(began), ended));
        let store = self.clone();
        tokio::spawn(async move {
            let wait = async move |_: &Connection| {
                let mut waits = waits.lock().unwrap_or_else(PoisonError::into_inner);
                // `None` if the group is repeated. If the caller has gone, no one receives the signal.
                let _heard = waits.0.take().map(|began| began.send(()));
                // Blocking is fine, because the writer's thread has nothing else to do during the pause.
                let _dropped = waits.1.recv();
                Ok(())
            };
            store.call_within(None, wait).await
        });
        has_begun.await.ok()?;
        Some(pause)
    }

    /// Flushes queued writes, as far as PostgreSQL can be reached.
    pub(crate) async fn close(self) {
        let finish = async {
            // If it fails, the others forget this server in a few seconds anyway.
            let _ = self.leave_servers().await;
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
        let reads = self.0.reads.load(Ordering::Relaxed);
        Stats { commits, changes, orders, reads, unreadable }
    }

    pub(super) fn is_writable(&self) -> bool {
        self.lost().is_none()
    }

    /// Returns `Closed` once the store is closed. An unreachable database is not lost, because it may come back.
    pub(super) fn lost(&self) -> Option<ReadOnlyReason> {
        self.0.writer.is_closed().then_some(ReadOnlyReason::Closed)
    }

    pub(super) fn is_readable(&self) -> bool {
        self.has_writer() && self.fault().is_none()
    }

    /// Returns `true` if the writer has a connection. Writes on other connections check this first: if commits do not
    /// end, each further commit would leave a waiting backend.
    fn has_writer(&self) -> bool {
        self.0.health.is_connected.load(Ordering::Acquire)
    }

    /// Returns the reason, as a part of a sentence, why this server must not be used although it has a connection.
    pub(super) fn fault(&self) -> Option<String> {
        if self.0.is_outdated.load(Ordering::Relaxed) {
            return Some(format!("{}: install the newer program", migrations::OUTDATED));
        }
        let seconds = TOO_LONG.as_secs();
        if self.0.silence.is_too_long() {
            return Some(format!("PostgreSQL has not answered for {seconds} s"));
        }
        let is_unread = self.0.unread.is_too_long();
        is_unread.then(|| {
            format!("PostgreSQL has answered no read for {seconds} s: look at its max_connections")
        })
    }

    /// Logs once that PostgreSQL stopped answering, and that it answers again. The writer checks its own connection.
    pub(super) fn check(&self, _now: Instant) {
        match self.0.silence.take_change() {
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
