//! The store: one database, of `SQLite` or of PostgreSQL.
//!
//! It writes each of the domain's decisions (`Changes`) as a whole or not at all, and answers reads. It decides only
//! what the database alone can know, such as that a key or a number is taken, or that a version is outdated.
//!
//! There are two engines and no third is planned, so `Engine` is an enum: an order needs no trait object and no boxed
//! future. Each engine has every method of `methods.rs`, with the same contracts. `SQLite` answers at once, on the
//! caller's thread; calls to PostgreSQL wait.

/// Calls an engine's method that never waits.
macro_rules! engine {
    ($store:expr, $engine:ident => $call:expr) => {
        match &$store.0 {
            Engine::Sqlite($engine) => $call,
            #[cfg(feature = "postgres")]
            Engine::Postgres($engine) => $call,
        }
    };
}

mod accounts;
mod active_resets;
mod audit;
mod audit_entry;
mod calls;
mod carriers;
mod clock_set_back;
mod columns;
mod copies;
mod counts;
mod credentials;
mod deliveries;
mod endpoints;
mod erase;
mod generations;
mod key_uses;
mod leases;
mod legacy;
mod lists;
mod mails;
mod manifests;
mod meta;
mod methods;
mod new_mails;
mod old_rows;
mod outbox;
mod outbox_outcomes;
mod pages;
mod parcels;
mod pause;
mod payloads;
#[cfg(feature = "postgres")]
mod postgres;
mod process_state;
mod replays;
mod reset_counts;
mod resets;
mod row_sets;
mod search;
mod search_hits;
mod search_index;
mod sessions;
mod settlements;
mod sql;
mod sqlite;
mod stats;
mod term_runs;
#[cfg(any(test, feature = "test-util"))]
pub mod test_util;
#[cfg(test)]
mod tests;
#[cfg(feature = "postgres")]
pub mod transfer;
mod turns;
mod values;
#[cfg(any(test, feature = "test-util"))]
#[path = "../../tests/waiting/mod.rs"]
#[allow(clippy::unwrap_used, reason = "it fails by panicking")]
mod waiting;
mod watchdog;
mod write_error;

use std::{
    fmt,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use parcelo_domain::{Changes, IdempotencyRecord, Millis, NewParcel};
use parcelo_system::clock::shared::{SharedClock, Skew};

pub use self::audit::AuditFilter;
pub use self::credentials::{ALL_CREDENTIALS, CredentialChanges, StoredScope};
pub use self::mails::MailBacklog;
pub use self::outbox_outcomes::{Backlog, EventsToReplay, LeasedBatch, Settled};
pub use self::parcels::CreationRecord;
pub use self::pause::Pause;
#[cfg(feature = "postgres")]
pub use self::postgres::{Address, CREATE_STATEMENTS};
pub use self::search_hits::SearchPage;
pub use self::sqlite::{FileReport, ReadOnlyReason, StoreError, VacuumReport, verify};
#[cfg(feature = "backup")]
pub use self::sqlite::{RestoreReport, backup, restore};
#[cfg(feature = "postgres")]
pub use self::transfer::CopiedTable;
use self::{process_state::ProcessState, sqlite::VacuumJob};

/// Maximum time that a caller waits for a write, which may complete later. A keyed request is then answered
/// `IDEMPOTENCY_IN_PROGRESS`. Repeating the request shows whether it was done.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// The database. Clones are the same database.
#[derive(Clone)]
pub struct Store(Engine);

#[derive(Clone)]
enum Engine {
    Sqlite(sqlite::Store),
    #[cfg(feature = "postgres")]
    Postgres(postgres::Store),
}

/// The outcome of committing [`Changes`]. Committed changes are durable, and a refusal changes
/// nothing. Other outcomes leave it open: `Busy` changes may still be committed, and `Broken` ones may turn out to be
/// committed at the next start if an fsync failed. Neither was acknowledged, so the caller retries under the same
/// idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitOutcome {
    /// The changes are in the database, durably.
    Committed,
    /// The changes' idempotency key is taken by this record.
    IdempotencyTaken(IdempotencyRecord),
    /// The changes' tracking number is taken in its environment.
    DuplicateTracking,
    /// The changes' carrier event was accepted before.
    DuplicateCarrierEvent,
    /// The tenant already has a manifest for the air waybill: load and decide again.
    DuplicateAwb,
    /// A parcel was changed after the decision: load and decide again.
    VersionConflict,
    /// No answer came within 5 s (the changes may still be committed), or another process held the database (nothing
    /// was done).
    Busy,
    /// Too many writes were waiting, so these changes were not accepted.
    Full,
    /// The connection was cut during the commit, so the changes are committed, or not. If the request is repeated under
    /// the same key, air waybill or event id, its answer is definite.
    Unknown,
    /// The database cannot be reached at the moment, and nothing was done.
    Unreachable,
    /// The changes failed; see [`Store::is_writable`].
    Broken,
}

/// The body that was stored under a key, or the reason why no body was stored.
type CommitResult = Result<Vec<u8>, CommitOutcome>;

/// Returns the refusal of a parcel whose number is taken, and whose redrawn numbers, if it has any, were all taken too.
fn number_taken(parcel: &NewParcel) -> CommitOutcome {
    if parcel.redraws.is_none() {
        return CommitOutcome::DuplicateTracking;
    }
    tracing::error!("no free tracking number was drawn: the source of randomness repeats itself");
    CommitOutcome::Broken
}

impl Store {
    /// Opens a server's database file, and creates it if it does not exist. `fresh_secret` becomes the database's
    /// secret if it has none yet.
    pub fn open(path: &Path, fresh_secret: [u8; 32]) -> Result<Self, StoreError> {
        sqlite::Store::open(path, fresh_secret).map(Self::from)
    }

    /// Opens a database file for a command that runs while the server does. It waits up to 5 s for its turn to write,
    /// and blocks its thread. A missing file is created. An existing empty file is refused, because the caller expects
    /// data in it.
    pub fn open_for_admin(path: &Path, fresh_secret: [u8; 32]) -> Result<Self, StoreError> {
        sqlite::Store::open_for_admin(path, fresh_secret).map(Self::from)
    }

    /// Creates a database in memory, which is dropped with the last clone of the store.
    pub fn memory(fresh_secret: [u8; 32]) -> Result<Self, StoreError> {
        sqlite::Store::memory(fresh_secret).map(Self::from)
    }

    /// Connects to a PostgreSQL database, and creates its schema if it is empty.
    #[cfg(feature = "postgres")]
    pub async fn connect(address: Address, fresh_secret: [u8; 32]) -> Result<Self, StoreError> {
        let connected = postgres::Store::connect(address, fresh_secret, postgres::READERS);
        connected.await.map(Self::from)
    }

    /// Connects like [`Store::connect`], for a command that runs while servers do.
    #[cfg(feature = "postgres")]
    pub async fn connect_for_admin(
        address: Address,
        fresh_secret: [u8; 32],
    ) -> Result<Self, StoreError> {
        let connected = postgres::Store::connect(address, fresh_secret, postgres::ONE_READER);
        connected.await.map(Self::from)
    }

    /// Returns `true` if a server or a command has created a database at a PostgreSQL address.
    #[cfg(feature = "postgres")]
    pub async fn exists(address: Address) -> Result<bool, StoreError> {
        postgres::Store::exists(address).await
    }

    /// Locks a database file for rewriting. It is checked to be ours, and no server can use it while it is locked.
    pub fn lock_for_vacuum(path: &Path, fresh_secret: [u8; 32]) -> Result<VacuumJob, StoreError> {
        sqlite::Store::lock_for_vacuum(path, fresh_secret)
    }

    /// Returns the name of the database for errors.
    fn name(&self) -> String {
        engine!(self, engine => engine.name())
    }

    fn state(&self) -> &ProcessState {
        engine!(self, engine => engine.state())
    }

    /// Returns the 32 bytes from which the database's keyed hashes and signatures derive.
    pub fn secret(&self) -> [u8; 32] {
        self.state().secret
    }

    /// Returns the number of writes of credentials through this store. A changed number means that
    /// [`Store::credentials_since`] may return something new. Writes of other processes do not count.
    pub fn credential_writes(&self) -> u64 {
        self.state().credential_writes.load(Ordering::Acquire)
    }

    /// Returns the number of reconnections to the database. After a reconnection, the database may be a copy that lacks
    /// the last writes, so cached data is invalid.
    pub fn reconnections(&self) -> u64 {
        match &self.0 {
            Engine::Sqlite(_) => 0,
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => engine.reconnections(),
        }
    }

    /// Makes later changes write the e-mails that they cause, because this process sends e-mails.
    pub fn send_mails(&self) {
        self.state().sends_mails.store(true, Ordering::Relaxed);
    }

    /// Commits all changes or none, with the e-mails that they cause if this process sends e-mails. Once polled they
    /// complete, even if this future is dropped.
    pub async fn commit(&self, changes: Changes) -> CommitOutcome {
        self.commit_idempotent(changes).await.err().unwrap_or(CommitOutcome::Committed)
    }

    /// Commits like [`Store::commit`] and returns the stored body of the idempotency record. It differs from the body
    /// in `changes` if a generated tracking number was taken.
    pub async fn commit_idempotent(&self, mut changes: Changes) -> Result<Vec<u8>, CommitOutcome> {
        if self.state().sends_mails.load(Ordering::Relaxed) {
            changes.add_mails();
        }
        match &self.0 {
            Engine::Sqlite(engine) => engine.commit_idempotent(changes).await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => engine.commit_idempotent(changes).await,
        }
    }

    /// Returns `false` once the disk of a file has failed or the store is closed. The store is read-only from then on,
    /// and the process should end.
    pub fn is_writable(&self) -> bool {
        self.read_only_reason().is_none()
    }

    /// Returns the reason why the store no longer accepts writes, if it does not.
    pub fn read_only_reason(&self) -> Option<ReadOnlyReason> {
        engine!(self, engine => engine.read_only_reason())
    }

    /// Returns `false` if the database cannot be reached, or has been unreadable for some seconds.
    pub fn is_readable(&self) -> bool {
        engine!(self, engine => engine.is_readable())
    }

    /// Returns the reason, as a part of a sentence, why this server must not use the database at the moment, if such a
    /// reason is known.
    pub fn unavailable_reason(&self) -> Option<String> {
        engine!(self, engine => engine.unavailable_reason())
    }

    /// Checks at `now` that a file still exists and is readable, or that PostgreSQL answers. It blocks; call it
    /// periodically.
    pub fn check(&self, now: Instant) {
        engine!(self, engine => engine.check(now));
    }

    /// Returns the clock of a database that several servers share, and which they follow; `None` for a file.
    #[must_use]
    pub fn shared_clock(&self) -> Option<&Arc<SharedClock>> {
        match &self.0 {
            Engine::Sqlite(_) => None,
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => Some(engine.clock()),
        }
    }

    /// Returns the time at which a lease begins; `None` means the database's clock when the statement runs.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(clippy::unnecessary_wraps, reason = "the other engine has a clock")
    )]
    fn lease_clock(&self, now: Millis) -> Option<Millis> {
        match &self.0 {
            Engine::Sqlite(_) => Some(now),
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => engine.lease_clock(now).map(Millis),
        }
    }

    /// Measures the shared clock. Returns this machine's difference from it if the difference has changed. Call it
    /// about every second.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(clippy::unused_async, reason = "the other engine waits")
    )]
    pub async fn measure_clock(&self) -> Result<Option<Skew>, StoreError> {
        match &self.0 {
            Engine::Sqlite(_) => Ok(None),
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => engine.measure_clock().await,
        }
    }

    /// Flushes queued writes and releases the database. Other clones can still read.
    pub async fn close(self) {
        match self.0 {
            Engine::Sqlite(engine) => engine.close().await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => engine.close().await,
        }
    }

    /// Returns the `SQLite` engine, for operations that only it supports.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(clippy::unnecessary_wraps, reason = "with both engines it may be the other")
    )]
    fn sqlite(&self) -> Result<&sqlite::Store, StoreError> {
        match &self.0 {
            Engine::Sqlite(engine) => Ok(engine),
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => Err(StoreError::OnlyFiles { database: engine.name() }),
        }
    }
}

impl From<sqlite::Store> for Store {
    fn from(engine: sqlite::Store) -> Self {
        Self(Engine::Sqlite(engine))
    }
}

#[cfg(feature = "postgres")]
impl From<postgres::Store> for Store {
    fn from(engine: postgres::Store) -> Self {
        Self(Engine::Postgres(engine))
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        engine!(self, engine => engine.fmt(f))
    }
}
