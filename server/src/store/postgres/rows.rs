//! The rows of parcels, drawn from blocks before the parcels are decided. A block is this process's alone, and
//! what is left of it when the process ends is given to no parcel.

use std::time::{Duration, Instant};

use super::Store;
use crate::{
    clock::{is_older, stopwatch},
    domain::ParcelRowId,
};

/// As the sequence has it.
const BLOCK_ROWS: i64 = 1_000;
/// After a draw that failed, the next is made no sooner.
const DRAW_PAUSE: Duration = Duration::from_millis(250);

/// Where no row could be drawn: PostgreSQL cannot be reached, and what would be committed with it is refused.
pub(super) const NO_ROW: ParcelRowId = ParcelRowId(0);

/// What is left of a block.
#[derive(Debug, Default)]
pub(super) struct Block {
    next: i64,
    end: i64,
    failed: Option<Instant>,
}

impl Store {
    pub(crate) async fn next_parcel_row(&self) -> ParcelRowId {
        let mut block = self.0.rows.lock().await;
        if block.next == block.end {
            // Those who have waited for a draw that failed fail with it, not each after a wait of its own.
            // A draw waits for a synchronous standby, as commits do.
            if !self.has_writer()
                || block.failed.is_some_and(|failed| !is_older(failed, DRAW_PAUSE))
            {
                return NO_ROW;
            }
            let drawn =
                self.read(async |db| db.value("SELECT nextval('parcel_ids')", &[]).await).await;
            match drawn {
                Ok(next) => *block = Block { next, end: next + BLOCK_ROWS, failed: None },
                Err(error) => {
                    block.failed = Some(stopwatch());
                    tracing::warn!(%error, "no rows could be drawn for parcels");
                    return NO_ROW;
                }
            }
        }
        let row = block.next;
        block.next += 1;
        ParcelRowId(row)
    }

    /// Draws from another block: one of the rows of this one was another server's.
    pub(super) async fn forget_rows(&self) {
        *self.0.rows.lock().await = Block::default();
    }
}
