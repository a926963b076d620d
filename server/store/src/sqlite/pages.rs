//! Mass writes: writes of many rows, done page by page, so that no write waits long behind them.
//!
//! A page is a write like any other, and shares its commit with waiting orders. Between two pages the writer handles
//! all writes that have arrived. Only one page is under way at a time, and mass writes take turns. In memory there is
//! no queue, and everything is one page.

use std::time::Duration;

use rusqlite::Connection;

use super::{Mode, Store, StoreError};
use crate::{pages::Budget, sql::poll_now};

/// Maximum number of rows of a page.
const MAX_ROWS_PER_PAGE: u64 = 1_000;
/// Maximum time of the writer within which a page may begin another statement. Statements are short (some 20 rows). An
/// order that waits may wait for a whole page, which is well below the promised 5 ms.
const MAX_PAGE_TIME: Duration = Duration::from_millis(2);

impl Store {
    /// Writes one page when its turn comes.
    pub(crate) async fn page<T, F>(&self, mut run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&Connection, &mut Budget) -> rusqlite::Result<T> + Send + 'static,
    {
        let _turn = self.0.state.mass_writes.lock().await;
        let begin = self.budget();
        self.call_within(None, move |db| run(db, &mut begin())).await
    }

    /// Repeats a statement that writes a limited number of rows, page by page, until it finds no more. Returns the
    /// number of rows written.
    pub(crate) async fn in_pages<F>(&self, statement: F) -> Result<u64, StoreError>
    where
        F: Fn(&Connection, i64) -> rusqlite::Result<usize> + Clone + Send + 'static,
    {
        let mut all = 0;
        loop {
            let statement = statement.clone();
            let page = self.page(move |db, budget| {
                poll_now(budget.repeat(async |max| Ok(statement(db, max)? as u64)))
            });
            let (rows, is_more) = page.await?;
            all += rows;
            if !is_more {
                return Ok(all);
            }
        }
    }

    /// Returns the function that starts a page's budget. It is called on the writer's thread, so that the budget
    /// measures the writer's time.
    fn budget(&self) -> fn() -> Budget {
        match &self.0.mode {
            Mode::File { .. } => || Budget::new(MAX_ROWS_PER_PAGE, MAX_PAGE_TIME),
            Mode::Inline(_) => Budget::unlimited,
        }
    }
}
