//! Copies: in memory, and back, for tests that begin at the same state again and again; and to a file,
//! for operators.

use std::{fs, path::Path, sync::PoisonError};

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

    /// Writes a copy of the database as it is at one moment to a new file, and answers its size.
    /// Others may write meanwhile.
    pub fn backup(&self, file: &Path) -> Result<u64, StoreError> {
        connection::create_new(file)?;
        let copied = self.read(|db| {
            let mut copy = Connection::open(file)?;
            copy_pages(db, &mut copy)
        });
        let size = copied.and_then(|()| {
            fs::metadata(file).map(|file| file.len()).map_err(|error| StoreError::open(file, error))
        });
        if size.is_err() {
            // Half a copy helps nobody; where it cannot be deleted, the error says enough.
            let _ = fs::remove_file(file);
        }
        size
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
