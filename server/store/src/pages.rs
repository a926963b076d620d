//! The budget of a page. Mass writes go page by page, so that no write waits long behind them.

use std::time::{Duration, Instant};

use parcelo_system::clock::{has_elapsed, monotonic_now};

use super::sql::SqlResult;

/// Maximum number of rows of a statement whose page has no time limit.
const MAX_ROWS_PER_STATEMENT: i64 = 500;
/// Number of rows of one statement, between two checks of the time.
const ROWS_BETWEEN_CHECKS: i64 = 20;

/// The remaining rows and time of a page.
#[derive(Debug)]
pub(super) struct Budget {
    rows: u64,
    time: Option<(Instant, Duration)>,
}

impl Budget {
    /// Starts a page of at most this many rows and this time, from now on.
    pub(super) fn new(rows: u64, time: Duration) -> Self {
        Self { rows, time: Some((monotonic_now(), time)) }
    }

    /// Returns the budget of a page of at most this many rows, however long they take.
    pub(super) const fn for_rows(rows: u64) -> Self {
        Self { rows, time: None }
    }

    /// Returns the budget of a single page for everything.
    pub(super) const fn unlimited() -> Self {
        Self::for_rows(u64::MAX)
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
        let max = if self.time.is_some() { ROWS_BETWEEN_CHECKS } else { MAX_ROWS_PER_STATEMENT };
        i64::try_from(self.rows).unwrap_or(max).clamp(1, max)
    }

    /// Repeats a statement that writes a limited number of rows until it finds no more or the page is over. Returns the
    /// number of rows written, and `true` if there may be more.
    pub(super) async fn repeat(
        &mut self,
        mut statement: impl AsyncFnMut(i64) -> SqlResult<u64>,
    ) -> SqlResult<(u64, bool)> {
        let mut all = 0;
        loop {
            let max = self.next_rows();
            let rows = statement(max).await?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::poll_now;

    #[test]
    fn a_page_ends_at_its_rows_or_time_and_always_makes_progress() {
        let mut limits = Vec::new();
        let mut repeated = |mut budget: Budget, found: Option<u64>| {
            let statement = async |max: i64| {
                limits.push(max);
                Ok(found.unwrap_or(max.unsigned_abs()))
            };
            poll_now(budget.repeat(statement)).unwrap()
        };
        let hour = Duration::from_secs(3600);
        assert_eq!(repeated(Budget::new(50, hour), None), (50, true));
        assert_eq!(repeated(Budget::new(50, Duration::ZERO), None), (20, true));
        assert_eq!(repeated(Budget::for_rows(700), None), (700, true));
        assert_eq!(repeated(Budget::unlimited(), Some(0)), (0, false));
        assert_eq!(repeated(Budget::new(50, hour), Some(3)), (3, false));
        assert_eq!(limits, [20, 20, 10, 20, 500, 200, 500, 20]);
    }
}
