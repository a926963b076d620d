//! The rows of parcels, drawn from blocks before the parcels are decided. A block is this process's alone, and
//! what is left of it when the process ends is given to no parcel.

use super::Store;
use crate::domain::ParcelRowId;

/// As the sequence has it.
const BLOCK_ROWS: i64 = 1_000;

/// Where no row could be drawn: PostgreSQL cannot be reached, and what would be committed with it is refused.
pub(super) const NO_ROW: ParcelRowId = ParcelRowId(0);

/// What is left of a block.
#[derive(Debug, Default)]
pub(super) struct Block {
    next: i64,
    end: i64,
}

impl Store {
    pub(crate) async fn next_parcel_row(&self) -> ParcelRowId {
        let mut block = self.0.rows.lock().await;
        if block.next == block.end {
            let drawn =
                self.read(async |db| db.value("SELECT nextval('parcel_ids')", &[]).await).await;
            match drawn {
                Ok(next) => *block = Block { next, end: next + BLOCK_ROWS },
                Err(error) => {
                    tracing::warn!(%error, "no rows could be drawn for parcels");
                    return NO_ROW;
                }
            }
        }
        let row = block.next;
        block.next += 1;
        ParcelRowId(row)
    }
}
