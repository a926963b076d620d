//! Copies in memory, and back, for tests that repeatedly start from the same state.

use std::sync::PoisonError;

use super::{
    Mode, Store, StoreError,
    connection::{self, copy_pages},
    outbox::skip_leases_to,
};
use crate::{
    outbox::next_lease,
    sql::{Sql, poll_now},
};

impl Store {
    /// Returns a store in memory with a copy of this store's current data.
    pub fn copy(&self) -> Result<Self, StoreError> {
        let copied = self.read(|db| {
            let mut copy = connection::memory()?;
            copy_pages(db, &mut copy)?;
            Ok(copy)
        });
        Self::prepared(copied?, &self.0.file, self.0.state.secret)
    }

    /// Replaces all data of a store in memory with a copy of another store's data.
    pub fn become_copy_of(&self, other: &Self) -> Result<(), StoreError> {
        let Mode::Inline(db) = &self.0.mode else {
            return Err(StoreError::InUse { file: self.0.file.clone() });
        };
        let mut db = db.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |error| StoreError::from_sqlite(&self.0.file, error);
        let last = poll_now(next_lease(Sql::Sqlite(&db))).map_err(failed)?;
        // The keys are read again only once the lock on the database is released.
        self.0.keys.clear();
        other.read(|other| copy_pages(other, &mut db))?;
        // Events that are being delivered belong to the state that is replaced.
        skip_leases_to(&db, last).map_err(failed)?;
        self.0.state.wake.notify_one();
        Ok(())
    }
}
