//! Copies of a whole `SQLite` store, for tests that start from the same state: in memory, and as bytes for a file.

use crate::{Store, StoreError, sqlite};

impl Store {
    /// Returns a store in memory with a copy of this `SQLite` store's current data.
    pub fn copy(&self) -> Result<Self, StoreError> {
        self.sqlite()?.copy().map(Self::from)
    }

    /// Replaces all data of a store in memory with the data of another store.
    pub fn become_copy_of(&self, other: &Self) -> Result<(), StoreError> {
        self.sqlite()?.become_copy_of(other.sqlite()?)
    }

    /// Returns the bytes of a database file with a copy of this `SQLite` store's current data.
    pub fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        self.sqlite()?.to_bytes()
    }

    /// Returns a store in memory with the data in the bytes of a database file. Data of an older version is brought up
    /// to date; bytes of a newer version or of another program are refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        sqlite::Store::from_bytes(bytes).map(Self::from)
    }
}
