//! Promises of a file, and features that only `SQLite` has. Promises of every store: [`conformance`].

mod deliveries;
mod durability;
mod erasure;
mod groups;
mod key_index;
mod numbers;
#[cfg(feature = "server")]
mod pages;
pub(crate) mod reads;
mod resets;
mod terms;

use std::{path::PathBuf, sync::Arc, time::Duration};

use parcelo::model::Deleted;
use rusqlite::Connection;
use tempfile::TempDir;

use super::{StoreError, group, health::Health, key_index::KeyIndex};
use crate::{
    domain::{Changes, Tenant},
    store::{
        self, CommitOutcome, Store,
        erase::Eraser,
        generations::home,
        pages::Budget,
        sql::{Sql, given},
        tests::conformance::{self, SECRET},
    },
};

/// Internals that the tests of this engine use.
impl Store {
    pub(in crate::store) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.sqlite()?.read(read)
    }

    pub(in crate::store) async fn call<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        self.sqlite()?.call(run).await
    }

    pub(in crate::store) async fn scan<T, F>(
        &self,
        tenant: Option<Tenant>,
        read: F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&super::Store) -> Result<T, StoreError> + Send + 'static,
    {
        self.sqlite()?.scan(tenant, read).await
    }
}

/// Returns the outcomes of a group of these changes.
pub(in crate::store) fn commit_as_group(db: &Connection, all: Vec<Changes>) -> Vec<CommitOutcome> {
    let keys = Arc::new(KeyIndex::new());
    let queued_writes = all
        .into_iter()
        .map(|changes| group::Mutation::new(changes, Arc::clone(&keys), Arc::default()));
    let (queued_writes, answers): (Vec<_>, Vec<_>) = queued_writes
        .map(|(queued_write, answer)| (queued_write as Box<dyn group::QueuedWrite>, answer))
        .unzip();
    group::commit(db, &Health::default(), queued_writes);
    let outcome = |kept: crate::store::CommitResult| kept.err().unwrap_or(CommitOutcome::Committed);
    answers.into_iter().map(|mut answer| outcome(answer.try_recv().unwrap())).collect()
}

/// A database file in a folder that is deleted with it.
pub(super) struct TestFile {
    _folder: TempDir,
    pub(super) file: PathBuf,
}

impl TestFile {
    pub(super) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("parcelo.db");
        Self { _folder: folder, file }
    }

    pub(super) fn opened() -> (Self, Store) {
        let place = Self::new();
        let store = place.open();
        (place, store)
    }

    pub(super) fn open(&self) -> Store {
        Store::open(&self.file, SECRET).unwrap()
    }

    /// Returns the path of a file in the same folder.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.file.with_file_name(name)
    }
}

/// Changes a database file as no program of ours would, and returns the number of rows.
#[cfg(feature = "server")]
pub(crate) fn damage_file(file: &std::path::Path, sql: &str) -> usize {
    rusqlite::Connection::open(file).unwrap().execute(sql, []).unwrap()
}

/// Opens a connection of another process that writes to a database until it is dropped.
pub(crate) fn held(file: &std::path::Path) -> rusqlite::Connection {
    let other = rusqlite::Connection::open(file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

/// Ends a sandbox's generation, as the first commit of a reset does, and erases nothing yet.
pub(crate) async fn begin_reset(store: &Store, sandbox: Tenant) {
    store.write(async move |db| store::resets::begin(db, sandbox).await).await.unwrap();
}

/// Erases a page of at most `rows` rows of the first of a sandbox's ended generations, if it has one.
pub(super) async fn erase_some(store: &Store, sandbox: Tenant, rows: u64) -> Deleted {
    let page = async move |db: Sql<'_>| {
        let first = concat!(
            "SELECT number FROM ended_generations WHERE ",
            home!("number"),
            " = $1 ORDER BY number LIMIT 1"
        );
        let first = db.first(first, given![sandbox.number()], |row| row.get::<i64>(0)).await?;
        let Some(number) = first else { return Ok(Deleted::default()) };
        let mut budget = Budget::new(rows, Duration::from_secs(3600));
        let mut eraser = Eraser::new(db, &mut budget);
        let next = eraser.erase_generation(number, 0).await?;
        let deleted = eraser.finish().await?;
        if next.is_none() {
            store::resets::end(db, number).await?;
        }
        Ok(deleted)
    };
    store.write(page).await.unwrap()
}

/// A row of a tenant that becomes unreadable.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Damage {
    /// The tenant's webhook.
    Endpoint,
    /// The content of the tenant's first event.
    Event,
    /// The tenant's key.
    Key,
    /// The tenant's first parcel.
    Parcel,
}

/// Makes a row unreadable, as a disk does that loses bits.
pub(crate) async fn damage(store: &Store, tenant: Tenant, what: Damage) {
    let sql = match what {
        Damage::Endpoint => "UPDATE webhook_endpoints SET secret = x'00' WHERE tenant = ?1",
        Damage::Event => {
            "UPDATE outbox SET kind = 99 WHERE id = (SELECT min(id) FROM outbox WHERE tenant = ?1)"
        }
        Damage::Key => "UPDATE api_keys SET hash = x'00' WHERE tenant = ?1",
        Damage::Parcel => {
            "UPDATE parcels SET country = '?' WHERE id = (SELECT min(id) FROM parcels WHERE tenant = ?1)"
        }
    };
    let rows = store.call(move |db| db.execute(sql, [tenant.number()])).await.unwrap();
    assert_eq!(rows, 1, "{what:?}");
}

impl super::Store {
    pub(super) fn keys(&self) -> &super::key_index::KeyIndex {
        &self.0.keys
    }
}
