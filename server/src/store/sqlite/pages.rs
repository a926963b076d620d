//! Mass writes: writes of many rows, done page by page, so that no write waits long behind them.
//!
//! A page is a write like any other, and shares its commit with waiting orders. Between two pages the writer handles
//! all writes that have arrived. Only one page is under way at a time, and mass writes take turns. In memory there is
//! no queue, and everything is one page.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::{Mode, Store, StoreError};
use crate::clock::{has_elapsed, stopwatch};

/// Maximum number of rows of a page.
pub(super) const MAX_ROWS_PER_PAGE: u64 = 1_000;
/// Maximum time of the writer within which a page may begin another statement. Statements are short (some 20 rows). An
/// order that waits may wait for a whole page, which is well below the promised 5 ms.
const MAX_PAGE_TIME: Duration = Duration::from_millis(2);
/// Number of rows of one statement, between two checks of the stopwatch.
const ROWS_PER_STATEMENT: i64 = 20;

/// The remaining rows and time of a page.
#[derive(Debug)]
pub(in crate::store) struct Budget {
    rows: u64,
    time: Option<(Instant, Duration)>,
}

impl Budget {
    /// Starts a page of at most this many rows and this time, from now on.
    pub(super) fn new(rows: u64, time: Duration) -> Self {
        Self { rows, time: Some((stopwatch(), time)) }
    }

    /// Returns the budget of a single page for everything.
    pub(super) const fn unlimited() -> Self {
        Self { rows: u64::MAX, time: None }
    }

    /// Counts rows that were written.
    pub(super) const fn spend(&mut self, rows: u64) {
        self.rows = self.rows.saturating_sub(rows);
    }

    /// Returns `true` if the page is over. A page is never over before something was spent, so each page makes
    /// progress.
    pub(super) fn is_spent(&self) -> bool {
        self.rows == 0 || self.time.is_some_and(|(start, max)| has_elapsed(start, max))
    }

    /// Returns the maximum number of rows for the next statement: at least one.
    pub(super) fn next_rows(&self) -> i64 {
        i64::try_from(self.rows).unwrap_or(ROWS_PER_STATEMENT).clamp(1, ROWS_PER_STATEMENT)
    }

    /// Repeats a statement that writes a limited number of rows until it finds no more or the page is over. Returns the
    /// number of rows written, and `true` if there may be more.
    pub(super) fn repeat(
        &mut self,
        mut statement: impl FnMut(i64) -> rusqlite::Result<usize>,
    ) -> rusqlite::Result<(u64, bool)> {
        let mut all = 0;
        loop {
            let max = self.next_rows();
            let rows = statement(max)? as u64;
            self.spend(rows);
            all += rows;
            if i64::try_from(rows).is_ok_and(|rows| rows < max) {
                return Ok((all, false));
            }
            if self.is_spent() {
                return Ok((all, true));
            }
        }
    }
}

impl Store {
    /// Writes one page when its turn comes.
    pub(in crate::store) async fn page<T, F>(&self, mut run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&Connection, &mut Budget) -> rusqlite::Result<T> + Send + 'static,
    {
        let _turn = self.0.mass_writes.lock().await;
        let begin = self.budget();
        self.call_within(None, move |db| run(db, &mut begin())).await
    }

    /// Repeats a statement that writes a limited number of rows, page by page, until it finds no more. Returns the
    /// number of rows written.
    pub(in crate::store) async fn in_pages<F>(&self, statement: F) -> Result<u64, StoreError>
    where
        F: Fn(&Connection, i64) -> rusqlite::Result<usize> + Clone + Send + 'static,
    {
        let mut all = 0;
        loop {
            let statement = statement.clone();
            let page = self.page(move |db, budget| budget.repeat(|max| statement(db, max)));
            let (rows, is_more) = page.await?;
            all += rows;
            if !is_more {
                return Ok(all);
            }
        }
    }

    /// Returns the function that starts a page's budget. It is called on the writer's thread, so that the budget
    /// measures the writer's time.
    pub(super) fn budget(&self) -> fn() -> Budget {
        match &self.0.mode {
            Mode::File { .. } => || Budget::new(MAX_ROWS_PER_PAGE, MAX_PAGE_TIME),
            Mode::Inline(_) => Budget::unlimited,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_at_its_rows_or_time_and_always_makes_progress() {
        let mut limits = Vec::new();
        let mut many = |max: i64| {
            limits.push(max);
            Ok(usize::try_from(max).unwrap())
        };
        let hour = Duration::from_secs(3600);
        assert_eq!(Budget::new(50, hour).repeat(&mut many).unwrap(), (50, true));
        assert_eq!(Budget::new(50, Duration::ZERO).repeat(&mut many).unwrap(), (20, true));
        assert_eq!(limits, [20, 20, 10, 20]);
        assert_eq!(Budget::unlimited().repeat(|_| Ok(0)).unwrap(), (0, false));
        assert_eq!(Budget::new(50, hour).repeat(|_| Ok(3)).unwrap(), (3, false));
    }
}
