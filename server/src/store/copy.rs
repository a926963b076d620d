//! Copies in memory, and back, for tests that begin at the same state again and again.

use std::sync::PoisonError;

use rusqlite::{
    Connection,
    backup::{Backup, StepResult},
    ffi,
};

use super::{Mode, Store, StoreError, connection, leases};

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
        let failed = |error| StoreError::from_sqlite(&self.0.file, error);
        let last = leases::last(&db).map_err(failed)?;
        other.read(|other| copy_pages(other, &mut db))?;
        // What is on its way is of the state that goes.
        leases::go_on_from(&db, last).map_err(failed)?;
        self.notify_outbox();
        Ok(())
    }
}

/// Copies all, or fails: `SQLite` calls it no error when one of the two is held by somebody else.
pub(super) fn copy_pages(from: &Connection, to: &mut Connection) -> rusqlite::Result<()> {
    match Backup::new(from, to)?.step(ALL)? {
        StepResult::Done => Ok(()),
        _ => Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_somebody_else_holds_is_no_copy() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("copy.db");
        let holder = Connection::open(&file).unwrap();
        holder.execute_batch("CREATE TABLE t (a); BEGIN EXCLUSIVE;").unwrap();
        let (from, mut to) = (connection::memory().unwrap(), Connection::open(&file).unwrap());
        to.busy_timeout(std::time::Duration::ZERO).unwrap();
        from.execute_batch("CREATE TABLE u (b);").unwrap();
        assert!(copy_pages(&from, &mut to).is_err());
        holder.execute_batch("COMMIT").unwrap();
        copy_pages(&from, &mut to).unwrap();
        assert!(to.prepare("SELECT b FROM u").is_ok());
    }
}
