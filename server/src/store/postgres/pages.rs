//! Mass writes: writes of many rows, done page by page, so that no write waits long behind them. A page is a
//! write like any other and shares its commit with the orders that wait. One of this server's is under way
//! at a time.
//!
//! Statements choose a page's rows by `= ANY (ARRAY (SELECT … LIMIT …))`. With `IN`, a plan that is made for any LIMIT
//! expects a tenth of the table, and reads all of it for each page.

use super::{Store, connection::Connection, error::DbResult};
use crate::store::StoreError;

/// The most rows of a page's statement.
pub(super) const ROWS_PER_PAGE: i64 = 500;

impl Store {
    /// Repeats a statement that writes at most [`ROWS_PER_PAGE`] rows until it finds fewer; answers how many it
    /// wrote in all.
    pub(super) async fn in_pages<F>(&self, statement: F) -> Result<u64, StoreError>
    where
        F: AsyncFn(&Connection) -> DbResult<u64> + Clone + Send + 'static,
    {
        let mut all = 0;
        loop {
            let page = {
                let _turn = self.0.mass_writes.lock().await;
                self.call_within(None, statement.clone()).await?
            };
            all += page;
            if page < ROWS_PER_PAGE.unsigned_abs() {
                return Ok(all);
            }
        }
    }
}
