//! Copies in memory, and back, for tests that repeatedly start from the same state.

use std::{path::Path, sync::PoisonError};

use rusqlite::MAIN_DB;

use super::{
    IfEmpty, Mode, Store, StoreError,
    connection::{self, copy_pages},
    identity::verify_file,
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

    /// Returns a copy of this store's current data as the bytes of a database file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        self.read(|db| {
            // The connection that is copied may be in use elsewhere, and serializing needs one of its own.
            let mut copy = connection::memory()?;
            copy_pages(db, &mut copy)?;
            let bytes = copy.serialize(MAIN_DB)?.to_vec();
            Ok(bytes)
        })
    }

    /// Returns a store in memory with the data in the bytes of a database file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        let name = Path::new("in the snapshot");
        let failed = |error| StoreError::from_sqlite(name, error);
        let mut db = connection::memory().map_err(failed)?;
        db.deserialize_read_exact(MAIN_DB, bytes, bytes.len(), false).map_err(failed)?;
        verify_file(&db, name, IfEmpty::Refuse)?;
        // The bytes of ours have a secret, so the fresh one is not used.
        Self::prepared(db, name, [0; 32])
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes of a store in memory after these statements.
    fn bytes_after(sql: &str) -> Vec<u8> {
        let store = Store::memory([7; 32]).unwrap();
        store.read(|db| db.execute_batch(sql)).unwrap();
        store.to_bytes().unwrap()
    }

    #[test]
    fn bytes_have_the_data_and_the_secret() {
        let store = Store::from_bytes(&bytes_after("CREATE TABLE kept AS SELECT 5 AS n")).unwrap();
        assert_eq!(store.state().secret, [7; 32]);
        let kept = |db: &rusqlite::Connection| {
            db.query_row("SELECT n FROM kept", [], |row| row.get::<_, i64>(0))
        };
        assert_eq!(store.read(kept).unwrap(), 5);
    }

    #[test]
    fn bytes_of_a_newer_version_or_of_another_program_are_refused() {
        let refusal = |sql| Store::from_bytes(&bytes_after(sql)).err().unwrap();
        let newer = refusal("PRAGMA user_version = 1000");
        assert!(matches!(newer, StoreError::Newer { found: 1000, .. }), "{newer}");
        let foreign = refusal("DELETE FROM meta");
        assert!(matches!(foreign, StoreError::Foreign { .. }), "{foreign}");
        assert!(Store::from_bytes(b"not a database").is_err());
    }
}
