//! The ids of parcels, drawn from blocks: a block is this process's alone, and what is left of it when the
//! process ends is given to no one.

use super::{connection::Connection, error::DbResult};

/// As the sequence has it.
const BLOCK: i64 = 1_000;

/// What is left of a block.
#[derive(Debug, Default)]
pub(super) struct ParcelIds {
    next: i64,
    end: i64,
}

impl ParcelIds {
    pub(super) async fn draw(&mut self, db: &Connection) -> DbResult<i64> {
        if self.next == self.end {
            self.next = db.value("SELECT nextval('parcel_ids')", &[]).await?;
            self.end = self.next + BLOCK;
        }
        let id = self.next;
        self.next += 1;
        Ok(id)
    }
}
