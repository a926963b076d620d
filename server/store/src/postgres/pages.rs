//! Mass writes: writes of many rows, page by page. Each page is a separate transaction on a connection for scans, so no
//! order waits for it, and running a page twice does no harm. A server runs one mass write at a time. Rows that another
//! server has locked are skipped, because they belong to that server's page.
//!
//! Statements choose a page's rows with `= ANY (ARRAY (SELECT … LIMIT …))`, which `in_page!` writes. With `IN`, a
//! generic plan expects a tenth of the table, and reads the whole table for each page.

use std::time::Duration;

use tokio::time::sleep;

use super::{
    Store,
    connection::{Connection, get},
    error::{DbResult, Failure},
    readers::Readers,
};
use crate::StoreError;

/// Maximum number of rows of a page's statement.
pub(crate) const ROWS_PER_PAGE: i64 = 500;
/// Maximum number of retries of a page after lock conflicts, and the longest pause before a retry.
const MAX_CONFLICTS: u32 = 20;
const CONFLICT_PAUSE: Duration = Duration::from_millis(20);

/// Returns the condition that a row's key is chosen for a page and that no other transaction has locked the row.
macro_rules! in_page {
    ($key:literal, $($chosen:tt)+) => {
        concat!(
            $key,
            " = ANY (ARRAY (SELECT ",
            $key,
            " FROM ",
            $($chosen)+,
            " FOR UPDATE SKIP LOCKED))"
        )
    };
}
pub(crate) use in_page;

/// Deletes a page of the rows whose time is from `$2` to `$1`. Returns their number and the time of the last one.
macro_rules! delete_old {
    ($table:literal, $key:literal, $chosen:expr, $time:literal) => {
        concat!(
            "WITH old AS (DELETE FROM ",
            $table,
            " WHERE ",
            $crate::postgres::in_page!(
                $key,
                $chosen,
                $time,
                " >= $2 AND ",
                $time,
                " <= $1 ORDER BY ",
                $time,
                " LIMIT $3"
            ),
            " RETURNING ",
            $time,
            " AS time) SELECT count(*), max(time) FROM old"
        )
    };
}
pub(crate) use delete_old;

/// Deletes events with the log of their attempts. Returns their number and the time of the last one.
macro_rules! delete_events {
    ($($which:tt)+) => {
        concat!(
            "WITH old AS (DELETE FROM outbox WHERE ",
            $($which)+,
            " RETURNING id, created_at), attempts AS (DELETE FROM webhook_attempts \
             WHERE outbox IN (SELECT id FROM old)) SELECT count(*), max(created_at) FROM old"
        )
    };
}
pub(crate) use delete_events;

impl Store {
    /// Deletes rows as old as `cutoff`, page by page, with a statement like [`delete_old!`], and returns their number.
    /// Each page begins where the previous one ended, because while a long transaction runs elsewhere, the index still
    /// has all deleted rows.
    pub(crate) async fn delete_old(
        &self,
        sql: &'static str,
        cutoff: i64,
    ) -> Result<u64, StoreError> {
        let (mut total, mut from) = (0, i64::MIN);
        loop {
            let page = self.page(async move |db| {
                let params: super::connection::Params<'_> = &[&cutoff, &from, &ROWS_PER_PAGE];
                db.query_one(sql, params, |row| Ok((get(row, 0)?, get(row, 1)?))).await
            });
            let (rows, last): (i64, Option<i64>) = page.await?;
            total += rows.unsigned_abs();
            if rows < ROWS_PER_PAGE {
                return Ok(total);
            }
            from = last.unwrap_or(from);
        }
    }

    /// Writes a page, while no other mass write of this server runs.
    pub(crate) async fn page<T, F>(&self, write: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(&Connection) -> DbResult<T> + Send + 'static,
    {
        let _turn = self.0.state.mass_writes.lock().await;
        self.in_transaction(write).await
    }

    /// Writes in a separate transaction, on a connection other than the writer's.
    pub(crate) async fn in_transaction<T, F>(&self, write: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(&Connection) -> DbResult<T> + Send + 'static,
    {
        if !self.has_writer() {
            return Err(Failure::Unreachable.into_store_error(&self.0.name));
        }
        let run = async move |db: &Connection| transact(db, &write).await;
        self.read_within(None, Readers::push_scan, run).await
    }
}

/// Runs a write in a transaction, and retries it if it conflicts with another transaction.
async fn transact<T>(
    db: &Connection,
    write: &impl AsyncFn(&Connection) -> DbResult<T>,
) -> DbResult<T> {
    let mut conflicts = 0;
    loop {
        db.run("BEGIN").await?;
        match write(db).await {
            Ok(written) => {
                db.run("COMMIT").await?;
                return Ok(written);
            }
            Err(failure) if failure.is_conflict() && conflicts < MAX_CONFLICTS => {
                db.run("ROLLBACK").await?;
                conflicts += 1;
                sleep(CONFLICT_PAUSE.mul_f32(fastrand::f32())).await;
            }
            // The reader that owns the connection rolls back.
            Err(failure) => return Err(failure),
        }
    }
}
