//! Mass writes: writes of many rows, done page by page. A page is a transaction of its own on a connection that
//! scans otherwise, so no order waits for it; a page that is done twice does
//! no harm. One of this server's is under way at a time, and rows that another server has locked are passed
//! over: they are its page.
//!
//! Statements choose a page's rows by `= ANY (ARRAY (SELECT … LIMIT …))`, which is `in_page!`. With `IN`, a plan that is made for any LIMIT
//! expects a tenth of the table, and reads all of it for each page.

use std::time::Duration;

use tokio::time::sleep;

use super::{
    Store,
    connection::Connection,
    error::{DbResult, Failure},
};
use crate::store::StoreError;

/// The most rows of a page's statement.
pub(super) const ROWS_PER_PAGE: i64 = 500;
/// How often a page that met another transaction's locks is tried again, and the longest pause before that.
const MAX_CONFLICTS: u32 = 20;
const CONFLICT_PAUSE: Duration = Duration::from_millis(20);

/// That a row's key is that of one that is chosen for a page, and that no other transaction has locked.
macro_rules! in_page {
    ($key:literal, $chosen:literal) => {
        concat!(
            $key,
            " = ANY (ARRAY (SELECT ",
            $key,
            " FROM ",
            $chosen,
            " FOR UPDATE SKIP LOCKED))"
        )
    };
}
pub(super) use in_page;

impl Store {
    /// Repeats a statement that writes at most [`ROWS_PER_PAGE`] rows until it finds fewer; answers how many it
    /// wrote in all.
    pub(super) async fn in_pages<F>(&self, statement: F) -> Result<u64, StoreError>
    where
        F: AsyncFn(&Connection) -> DbResult<u64> + Clone + Send + 'static,
    {
        let mut all = 0;
        loop {
            let page = self.page(statement.clone()).await?;
            all += page;
            if page < ROWS_PER_PAGE.unsigned_abs() {
                return Ok(all);
            }
        }
    }

    /// Writes a page, when it is its turn.
    pub(super) async fn page<T, F>(&self, write: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(&Connection) -> DbResult<T> + Send + 'static,
    {
        let _turn = self.0.mass_writes.lock().await;
        if !self.has_writer() {
            return Err(Failure::Unreachable.for_caller(&self.0.name));
        }
        self.scan_within(None, async move |db| transact(db, &write).await).await
    }
}

/// Runs it in a transaction, again if two of them stood in each other's way.
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
            // Whose connection it is rolls back.
            Err(failure) => return Err(failure),
        }
    }
}
