//! The budget for retries, a token bucket. Without it every caller of a service that is down would multiply its load.
//! With it a long outage costs few more requests than there are calls.
//!
//! The functions are pure: the time is a parameter.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use tokio::time::Instant;

/// Tokens that a retry takes from the budget. With its 500 tokens and 10 more a second that is 35 retries at once and
/// then 43 a minute, for all calls with an API key: during an outage at 50 calls a second, less than 3 % more load.
pub(super) const RETRY_COST_TOKENS: u32 = 14;
/// Tokens are counted in thousandths, so that each millisecond adds a whole number of them.
const MILLITOKENS_PER_TOKEN: u64 = 1000;
/// A year; keeps sums of instants and durations in range.
const MAX_ELAPSED_MS: u64 = 365 * 24 * 60 * 60 * 1000;

/// Minimum number of tokens that a budget holds: with fewer it would never pay for a retry.
const MIN_TOKENS: u32 = RETRY_COST_TOKENS;

/// The size of a budget: the tokens that it holds, and those that it gets back each second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct BudgetSize {
    #[serde(deserialize_with = "at_least_one_retry")]
    tokens: u32,
    per_second: u32,
}

fn at_least_one_retry<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    u32::deserialize(deserializer).map(|tokens| tokens.max(MIN_TOKENS))
}

impl BudgetSize {
    pub(super) fn new(tokens: u32, per_second: u32) -> Self {
        Self { tokens: tokens.max(MIN_TOKENS), per_second }
    }
}

impl Default for BudgetSize {
    /// 500 tokens are 35 retries in one burst: enough for a restart of the service under a few dozen concurrent calls,
    /// and spent within a second when everything fails. 10 tokens a second are one retry every 1.4 s: the rate that
    /// remains during a long outage, however many calls there are. An empty budget is full again after 50 s.
    fn default() -> Self {
        Self { tokens: 500, per_second: 10 }
    }
}

/// The tokens of all calls with one API key.
#[derive(Debug, Clone)]
pub(super) struct RetryBudget {
    capacity_millitokens: u64,
    /// A token a second is a millitoken a millisecond.
    refill_millitokens_per_ms: u64,
    millitokens: u64,
    refilled_at: Option<Instant>,
}

impl RetryBudget {
    /// Returns a full budget.
    pub(super) fn new(size: &BudgetSize) -> Self {
        let capacity_millitokens = u64::from(size.tokens) * MILLITOKENS_PER_TOKEN;
        Self {
            capacity_millitokens,
            refill_millitokens_per_ms: u64::from(size.per_second),
            millitokens: capacity_millitokens,
            refilled_at: None,
        }
    }

    /// Takes `tokens` and returns `true`. If there are fewer, takes none and returns `false`.
    pub(super) fn spend(&mut self, tokens: u32, now: Instant) -> bool {
        self.refill(now);
        match self.millitokens.checked_sub(u64::from(tokens) * MILLITOKENS_PER_TOKEN) {
            Some(rest) => {
                self.millitokens = rest;
                true
            }
            None => false,
        }
    }

    /// Gives `tokens` back, up to the capacity.
    pub(super) fn refund(&mut self, tokens: u32) {
        let refund = u64::from(tokens) * MILLITOKENS_PER_TOKEN;
        self.millitokens = self.capacity_millitokens.min(self.millitokens + refund);
    }

    fn refill(&mut self, now: Instant) {
        let last = *self.refilled_at.get_or_insert(now);
        let elapsed = now.saturating_duration_since(last).as_millis();
        let elapsed_ms = u64::try_from(elapsed).unwrap_or(u64::MAX);
        let refill = elapsed_ms.saturating_mul(self.refill_millitokens_per_ms);
        self.millitokens = self.millitokens.saturating_add(refill).min(self.capacity_millitokens);
        // Only whole milliseconds were counted; the remainder counts next time.
        self.refilled_at = Some(last + Duration::from_millis(elapsed_ms.min(MAX_ELAPSED_MS)));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a moment to count from; any will do")]
    fn start() -> Instant {
        Instant::now()
    }

    fn count_spends(budget: &mut RetryBudget, tokens: u32, now: Instant) -> u32 {
        (0..1000).take_while(|_| budget.spend(tokens, now)).count().try_into().unwrap()
    }

    #[test]
    fn the_budget_holds_500_tokens_and_refills_10_per_second() {
        let (start, mut budget) = (start(), RetryBudget::new(&BudgetSize::default()));
        assert_eq!(count_spends(&mut budget, 14, start), 35);
        assert_eq!(count_spends(&mut budget, 5, start), 2);
        assert_eq!(count_spends(&mut budget, 1, start + Duration::from_millis(99)), 0);
        assert_eq!(count_spends(&mut budget, 1, start + Duration::from_millis(100)), 1);
        assert_eq!(count_spends(&mut budget, 1, start + Duration::from_millis(3100)), 30);
        assert_eq!(count_spends(&mut budget, 1, start + Duration::from_secs(999_999)), 500);
        assert!(budget.spend(0, start), "what is free is always granted");
    }

    #[test]
    fn refunded_tokens_can_be_spent_but_do_not_accumulate() {
        let (start, mut budget) = (start(), RetryBudget::new(&BudgetSize::default()));
        budget.refund(14);
        assert_eq!(count_spends(&mut budget, 1, start), 500);
        budget.refund(14);
        assert_eq!(count_spends(&mut budget, 1, start), 14);
    }

    #[test]
    fn a_budget_has_the_size_that_was_set_and_room_for_a_retry() {
        let table = [
            ((2800, 28), 200, 2),
            ((28, 0), 2, 0),
            ((0, 14), 1, 1),
            ((u32::MAX, u32::MAX), 1000, 1000),
        ];
        for ((tokens, per_second), at_once, after_a_second) in table {
            let (start, size) = (start(), BudgetSize::new(tokens, per_second));
            let mut budget = RetryBudget::new(&size);
            assert_eq!(count_spends(&mut budget, RETRY_COST_TOKENS, start), at_once, "{size:?}");
            let later = start + Duration::from_secs(1);
            let spends = count_spends(&mut budget, RETRY_COST_TOKENS, later);
            assert_eq!(spends, after_a_second, "{size:?}");
        }
    }

    proptest! {
        #[test]
        fn no_more_is_spent_than_the_budget_holds(
            steps in prop::collection::vec((0_u64..3_000_000, 0_u32..20, any::<bool>()), 0..200),
        ) {
            let (start, mut budget) = (start(), RetryBudget::new(&BudgetSize::default()));
            let (mut now, mut spent, mut given_back) = (start, 0, 0);
            for (micros, tokens, gives_back) in steps {
                now += Duration::from_micros(micros);
                if gives_back {
                    budget.refund(tokens);
                    given_back += u128::from(tokens);
                } else if budget.spend(tokens, now) {
                    spent += u128::from(tokens);
                }
                let grown = now.duration_since(start).as_millis() / 100 + 1;
                prop_assert!(budget.millitokens <= budget.capacity_millitokens);
                prop_assert!(spent <= 500 + grown + given_back);
            }
        }

        #[test]
        fn refilling_in_steps_equals_refilling_at_once(
            pieces in prop::collection::vec(0_u64..5_000, 1..100),
        ) {
            let start = start();
            let (mut often, mut once) = (RetryBudget::new(&BudgetSize::default()), RetryBudget::new(&BudgetSize::default()));
            for budget in [&mut often, &mut once] {
                prop_assert!(budget.spend(500, start));
            }
            let mut now = start;
            for micros in pieces {
                now += Duration::from_micros(micros);
                often.spend(0, now);
            }
            once.spend(0, now);
            prop_assert_eq!(often.millitokens, once.millitokens);
        }
    }
}
