//! The budget for retries, a token bucket. Without it every caller of a service that is down would multiply its load.
//! With it a long outage costs few more requests than there are calls.
//!
//! The functions are pure: the time is a parameter.

use std::time::Duration;

use tokio::time::Instant;

/// Tokens are counted in thousandths, so that each millisecond adds a whole number of them.
const MILLITOKENS_PER_TOKEN: u64 = 1000;
/// 500 tokens, 35 retries in one burst: enough for a restart of the service under a few dozen concurrent
/// calls, and spent within a second when everything fails.
const CAPACITY_MILLITOKENS: u64 = 500 * MILLITOKENS_PER_TOKEN;
/// 10 tokens a second, one retry every 1.4 s: the rate that remains during a long outage, however many calls
/// there are. An empty bucket is full again after 50 s.
const REFILL_MILLITOKENS_PER_MS: u64 = 10 * MILLITOKENS_PER_TOKEN / 1000;
/// A year; keeps sums of instants and durations in range.
const MAX_ELAPSED_MS: u64 = 365 * 24 * 60 * 60 * 1000;

/// The tokens of a client and its clones.
#[derive(Debug, Clone)]
pub(super) struct RetryBudget {
    millitokens: u64,
    refilled_at: Option<Instant>,
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self { millitokens: CAPACITY_MILLITOKENS, refilled_at: None }
    }
}

impl RetryBudget {
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
        self.millitokens = CAPACITY_MILLITOKENS.min(self.millitokens + refund);
    }

    fn refill(&mut self, now: Instant) {
        let last = *self.refilled_at.get_or_insert(now);
        let elapsed = now.saturating_duration_since(last).as_millis();
        let elapsed_ms = u64::try_from(elapsed).unwrap_or(u64::MAX);
        let refill = elapsed_ms.saturating_mul(REFILL_MILLITOKENS_PER_MS);
        self.millitokens = self.millitokens.saturating_add(refill).min(CAPACITY_MILLITOKENS);
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
        let (start, mut budget) = (start(), RetryBudget::default());
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
        let (start, mut budget) = (start(), RetryBudget::default());
        budget.refund(14);
        assert_eq!(count_spends(&mut budget, 1, start), 500);
        budget.refund(14);
        assert_eq!(count_spends(&mut budget, 1, start), 14);
    }

    proptest! {
        #[test]
        fn no_more_is_spent_than_the_budget_holds(
            steps in prop::collection::vec((0_u64..3_000_000, 0_u32..20, any::<bool>()), 0..200),
        ) {
            let (start, mut budget) = (start(), RetryBudget::default());
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
                prop_assert!(budget.millitokens <= CAPACITY_MILLITOKENS);
                prop_assert!(spent <= 500 + grown + given_back);
            }
        }

        #[test]
        fn refilling_in_steps_equals_refilling_at_once(
            pieces in prop::collection::vec(0_u64..5_000, 1..100),
        ) {
            let start = start();
            let (mut often, mut once) = (RetryBudget::default(), RetryBudget::default());
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
