//! The store: one database, of `SQLite` or of PostgreSQL.
//!
//! It keeps what the domain decided ([`Changes`](crate::domain::Changes)) whole or not at all, and answers
//! point reads. It decides nothing but what only the database can know: whether a key, a version or a
//! number is taken.
//!
//! There are two engines and no third is planned, so [`Engine`] is an enum: no trait, and no boxed future
//! where an order is written. Each engine has every method of `methods.rs`, under the same promises. `SQLite`
//! answers at once, on the caller's thread; PostgreSQL is waited for.

/// Hands a call that waits for nothing to the engine.
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
mod audit;
mod audit_entry;
mod calls;
mod carriers;
mod columns;
mod counts;
mod credentials;
#[cfg(test)]
pub(crate) mod delays;
mod deliveries;
mod endpoints;
mod findings;
mod generations;
mod key_uses;
mod legacy;
mod lists;
mod mails;
mod manifests;
mod methods;
mod outbox_outcomes;
mod parcels;
mod payloads;
#[cfg(feature = "postgres")]
mod postgres;
mod search;
mod search_index;
mod sessions;
mod sql;
mod sqlite;
mod term_runs;
#[cfg(test)]
mod tests;
#[cfg(feature = "postgres")]
pub(crate) mod transfer;
mod turns;
mod values;

use std::{fmt, path::Path, sync::Arc, time::Instant};

pub(crate) use self::credentials::{ALL_CREDENTIALS, CredentialChanges, StoredScope};
pub(crate) use self::findings::SearchPage;
pub(crate) use self::outbox_outcomes::{Backlog, EventsToReplay, LeasedBatch, Settled};
pub(crate) use self::parcels::CreationRecord;
#[cfg(test)]
#[cfg(feature = "postgres")]
pub(crate) use self::postgres::tests::{
    cluster::{run_sql, two_servers},
    proxy::CutStore,
};
#[cfg(feature = "postgres")]
pub use self::postgres::{Address, CREATE_STATEMENTS};
pub use self::sqlite::Pause;
#[cfg(feature = "server")]
pub(crate) use self::sqlite::backup;
#[cfg(test)]
pub(crate) use self::sqlite::{Damage, damage, held};
pub(crate) use self::sqlite::{Lost, StoreError, Vacuumed};
use self::sqlite::{Stats, ToVacuum};
#[cfg(test)]
#[cfg(feature = "server")]
pub(crate) use self::sqlite::{damage_file, hold_list};
#[cfg(feature = "postgres")]
pub(crate) use self::transfer::CopiedTable;

use crate::{
    clock::shared::{SharedClock, Skew},
    domain::{IdempotencyRecord, NewParcel},
};

/// A database of PostgreSQL of a test's own; none where it is not installed.
#[cfg(test)]
#[cfg(feature = "postgres")]
pub(crate) fn test_database() -> Option<Address> {
    postgres::tests::cluster::database()
}

/// The database. Clones are the same database.
#[derive(Clone)]
pub struct Store(Engine);

#[derive(Clone)]
enum Engine {
    Sqlite(sqlite::Store),
    #[cfg(feature = "postgres")]
    Postgres(postgres::Store),
}

/// What became of [`Changes`](crate::domain::Changes). `Committed` ones are durable, and a refusal changed nothing. Of the
/// rest it is not known yet: `Busy` ones may still be committed, and `Broken` ones may be found
/// committed at the next start, when it was an fsync that failed. All that is certain is that neither
/// was acknowledged; the caller repeats under the same idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitOutcome {
    /// They are in the database, durably.
    Committed,
    /// Their idempotency key is taken, by this record.
    IdempotencyTaken(IdempotencyRecord),
    /// Their tracking number is taken in its environment.
    DuplicateTracking,
    /// Their carrier event was taken before.
    DuplicateCarrierEvent,
    /// The tenant has a manifest under their air waybill: load and decide again.
    DuplicateAwb,
    /// A parcel is no longer what they were decided on: load and decide again.
    VersionConflict,
    /// No answer within 5 s (they may still be committed), or another process held the database (nothing
    /// was done).
    Busy,
    /// Too many wait; they were not taken.
    Full,
    /// The connection was cut during the commit: they are committed, or not. The same again under its key, air waybill
    /// or event id is answered as what it was.
    Unknown,
    /// The database cannot be reached at the moment, and nothing of them was done.
    Unreachable,
    /// They failed; see [`Store::is_writable`].
    Broken,
}

/// The body that was kept under a key, or the reason why none was.
type Kept = Result<Vec<u8>, CommitOutcome>;

/// Returns the refusal of a parcel whose number is taken, after all that could be drawn instead were taken too.
fn number_taken(parcel: &NewParcel) -> CommitOutcome {
    if parcel.redraws.is_none() {
        return CommitOutcome::DuplicateTracking;
    }
    tracing::error!("no free tracking number was drawn: the source of randomness repeats itself");
    CommitOutcome::Broken
}

impl Store {
    /// Opens a server's database file, and makes it if it does not exist. `fresh_secret` becomes the
    /// database's secret if it has none yet.
    pub fn open(path: &Path, fresh_secret: [u8; 32]) -> Result<Self, StoreError> {
        sqlite::Store::open(path, fresh_secret).map(Self::from)
    }

    /// Opens a database file for a command that works beside the server: it waits up to 5 s for
    /// its turn to write, blocking its thread. A missing file is created. An existing empty one is refused,
    /// because the caller expects data in it.
    pub fn open_for_admin(path: &Path, fresh_secret: [u8; 32]) -> Result<Self, StoreError> {
        sqlite::Store::open_for_admin(path, fresh_secret).map(Self::from)
    }

    /// A database in memory, which ends with the last clone of the store.
    pub fn memory(fresh_secret: [u8; 32]) -> Result<Self, StoreError> {
        sqlite::Store::memory(fresh_secret).map(Self::from)
    }

    /// Connects to a database of PostgreSQL, and makes its schema if it is empty.
    #[cfg(feature = "postgres")]
    pub async fn connect(address: Address, fresh_secret: [u8; 32]) -> Result<Self, StoreError> {
        postgres::Store::connect(address, fresh_secret).await.map(Self::from)
    }

    /// The same for a command that works beside the servers.
    #[cfg(feature = "postgres")]
    pub(crate) async fn connect_for_admin(
        address: Address,
        fresh_secret: [u8; 32],
    ) -> Result<Self, StoreError> {
        postgres::Store::connect_for_admin(address, fresh_secret).await.map(Self::from)
    }

    /// Whether a server or a command has made a database at an address of PostgreSQL.
    #[cfg(feature = "postgres")]
    pub(crate) async fn exists(address: Address) -> Result<bool, StoreError> {
        postgres::Store::exists(address).await
    }

    /// Takes hold of a database file that is to be rewritten: it is ours, and no server uses it
    /// meanwhile.
    pub fn to_vacuum(path: &Path, fresh_secret: [u8; 32]) -> Result<ToVacuum, StoreError> {
        sqlite::Store::to_vacuum(path, fresh_secret)
    }

    /// The 32 bytes from which the database's keyed hashes and signatures derive.
    pub fn secret(&self) -> [u8; 32] {
        engine!(self, engine => engine.secret())
    }

    /// How often credentials were written through this store: another number means that
    /// [`Store::credentials_since`] may have something new. What other processes write does not count.
    pub fn credential_writes(&self) -> u64 {
        engine!(self, engine => engine.credential_writes())
    }

    fn count_credential_write(&self) {
        engine!(self, engine => engine.count_credential_write());
    }

    /// Returns how often the database was connected to again. It may have been replaced by a copy that lacks its last
    /// writes: what is known of it counts no more.
    pub fn reconnections(&self) -> u64 {
        match &self.0 {
            Engine::Sqlite(_) => 0,
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => engine.reconnections(),
        }
    }

    /// This process sends e-mails: its changes write those down that they bring, from here on.
    pub fn send_mails(&self) {
        engine!(self, engine => engine.send_mails());
    }

    /// How much was written.
    pub fn stats(&self) -> Stats {
        engine!(self, engine => engine.stats())
    }

    /// False once the disk of a file has failed, or the store is closed: it is read-only from then on, and
    /// the process should end.
    pub fn is_writable(&self) -> bool {
        engine!(self, engine => engine.is_writable())
    }

    /// Why it takes no more writes, if so.
    pub fn lost(&self) -> Option<Lost> {
        engine!(self, engine => engine.lost())
    }

    /// False while the database cannot be read, for some seconds already, or not be reached.
    pub fn is_readable(&self) -> bool {
        engine!(self, engine => engine.is_readable())
    }

    /// Why this server must not use the database at the moment, as a part of a sentence, where that is known.
    pub(crate) fn fault(&self) -> Option<String> {
        match &self.0 {
            Engine::Sqlite(_) => None,
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => engine.fault(),
        }
    }

    /// Looks whether a file is still there and can be read, as of `now`, and whether PostgreSQL answers. Call it
    /// every now and then; it blocks.
    pub fn check(&self, now: Instant) {
        engine!(self, engine => engine.check(now));
    }

    /// The clock of a database that several servers share, by which all of them go; a file has none of its own.
    #[must_use]
    pub(crate) fn shared_clock(&self) -> Option<&Arc<SharedClock>> {
        match &self.0 {
            Engine::Sqlite(_) => None,
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => Some(engine.clock()),
        }
    }

    /// Measures that clock; answers how far this machine's is from it if that has changed. Call it every second
    /// or so.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(clippy::unused_async, reason = "the other engine waits")
    )]
    pub(crate) async fn measure_clock(&self) -> Result<Option<Skew>, StoreError> {
        match &self.0 {
            Engine::Sqlite(_) => Ok(None),
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => engine.measure_clock().await,
        }
    }

    /// Finishes the writes that wait, and gives the database free. Other clones can still read.
    pub async fn close(self) {
        match self.0 {
            Engine::Sqlite(engine) => engine.close().await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => engine.close().await,
        }
    }

    /// Keeps the writer busy until the pause is dropped; none in memory, where no write waits.
    pub async fn pause_writes(&self) -> Option<Pause> {
        match &self.0 {
            Engine::Sqlite(engine) => engine.pause_writes().await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => engine.pause_writes().await,
        }
    }

    /// A store in memory that holds what this one, of `SQLite`, holds now.
    pub fn copy(&self) -> Result<Self, StoreError> {
        self.sqlite()?.copy().map(Self::from)
    }

    /// Replaces all that a store in memory holds by what another holds.
    pub fn become_copy_of(&self, other: &Self) -> Result<(), StoreError> {
        self.sqlite()?.become_copy_of(other.sqlite()?)
    }

    /// What only one engine can do.
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
