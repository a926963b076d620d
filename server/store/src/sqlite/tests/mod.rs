//! Tests of the guarantees of a file, and of features that only `SQLite` has. [`conformance`] has the tests that every
//! store must pass.

mod deliveries;
mod durability;
mod erasure;
mod groups;
mod key_damage;
mod key_index;
mod numbers;
mod pages;
pub(crate) mod reads;
mod resets;
mod terms;

use std::{path::PathBuf, sync::Arc, time::Duration};

use parcelo_domain::{Changes, Tenant};
use parcelo_types::model::Deleted;
use rusqlite::Connection;
use tempfile::TempDir;

use super::{StoreError, group, health::Health, key_index::KeyIndex};
use crate::{
    CommitOutcome, Store,
    erase::Eraser,
    generations::own_number,
    pages::Budget,
    sql::{Sql, params},
    tests::conformance::{self, SECRET},
};

/// Internals that the tests of this engine use.
impl Store {
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.sqlite()?.read(read)
    }

    pub(crate) async fn call<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        self.sqlite()?.call(run).await
    }

    pub(crate) async fn scan<T, F>(&self, tenant: Option<Tenant>, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&super::Store) -> Result<T, StoreError> + Send + 'static,
    {
        self.sqlite()?.scan(tenant, read).await
    }
}

/// Returns the outcomes of a group of these changes.
pub(crate) fn commit_as_group(db: &Connection, all: Vec<Changes>) -> Vec<CommitOutcome> {
    let keys = Arc::new(KeyIndex::new());
    let queued_writes = all
        .into_iter()
        .map(|changes| group::Mutation::new(changes, Arc::clone(&keys), Arc::default()));
    let (queued_writes, answers): (Vec<_>, Vec<_>) = queued_writes
        .map(|(queued_write, answer)| (queued_write as Box<dyn group::QueuedWrite>, answer))
        .unzip();
    group::commit(db, &Health::default(), queued_writes);
    let outcome = |kept: crate::CommitResult| kept.err().unwrap_or(CommitOutcome::Committed);
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

    /// Creates a file, and opens it.
    pub(super) fn with_store() -> (Self, Store) {
        let test_file = Self::new();
        let store = test_file.open();
        (test_file, store)
    }

    pub(super) fn open(&self) -> Store {
        Store::open(&self.file, SECRET).unwrap()
    }

    /// Returns the path of a file in the same folder.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.file.with_file_name(name)
    }
}

/// Ends a sandbox's generation, as the first commit of a reset does, and erases nothing yet.
pub(crate) async fn begin_reset(store: &Store, sandbox: Tenant) {
    store.write(async move |db| crate::resets::begin_generation(db, sandbox).await).await.unwrap();
}

/// Erases a page of at most `rows` rows of the first of a sandbox's ended generations, if it has one.
pub(super) async fn erase_some(store: &Store, sandbox: Tenant, rows: u64) -> Deleted {
    let page = async move |db: Sql<'_>| {
        let first = concat!(
            "SELECT number FROM ended_generations WHERE ",
            own_number!("number"),
            " = $1 ORDER BY number LIMIT 1"
        );
        let first = db.first(first, params![sandbox.number()], |row| row.get::<i64>(0)).await?;
        let Some(number) = first else { return Ok(Deleted::default()) };
        let mut budget = Budget::new(rows, Duration::from_secs(3600));
        let mut eraser = Eraser::new(db, &mut budget);
        let next = eraser.erase_generation(number, 0).await?;
        let deleted = eraser.finish().await?;
        if next.is_none() {
            crate::resets::finish_erasure(db, number).await?;
        }
        Ok(deleted)
    };
    store.write(page).await.unwrap()
}

impl super::Store {
    pub(super) fn keys(&self) -> &super::key_index::KeyIndex {
        &self.0.keys
    }
}
