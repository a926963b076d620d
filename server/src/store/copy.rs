//! Copies in memory, and going back to one: for tests that begin at the same state again and again.

use std::sync::PoisonError;

use rusqlite::{Connection, backup::Backup};

use super::{Mode, Store, StoreError, connection};

/// All pages at once.
const ALL: i32 = -1;

impl Store {
    /// A store in memory that holds what this one holds now.
    pub fn copy(&self) -> Result<Self, StoreError> {
        let copied = self.read(|db| {
            let mut copy = connection::memory()?;
            copy_pages(db, &mut copy)?;
            Ok(copy)
        });
        Self::inline(copied?, &self.0.file, self.0.secret)
    }

    /// Replaces all that a store in memory holds by what another holds.
    pub fn become_copy_of(&self, other: &Self) -> Result<(), StoreError> {
        let Mode::Inline(db) = &self.0.mode else {
            return Err(StoreError::InUse { file: self.0.file.clone() });
        };
        let mut db = db.lock().unwrap_or_else(PoisonError::into_inner);
        other.read(|other| copy_pages(other, &mut db))?;
        self.wake();
        Ok(())
    }
}

fn copy_pages(from: &Connection, to: &mut Connection) -> rusqlite::Result<()> {
    Backup::new(from, to)?.step(ALL).map(drop)
}
