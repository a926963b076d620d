//! How much a client may spend on retries. Without it every caller of a service that is down would
//! multiply its load; with it a long outage costs hardly more requests than it has calls.
//!
//! Pure: the time is a parameter.

use std::time::Duration;

use tokio::time::Instant;

/// Thousandths of a token, so that time adds whole numbers.
const TOKEN: u64 = 1000;
const CAPACITY: u64 = 500 * TOKEN;
const PER_MILLISECOND: u64 = 10 * TOKEN / 1000;

/// The tokens of a client and its clones.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    millis: u64,
    at: Option<Instant>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { millis: CAPACITY, at: None }
    }
}

impl Budget {
    /// Takes `tokens`, unless there are fewer.
    pub(super) fn spend(&mut self, tokens: u32, now: Instant) -> bool {
        self.grow(now);
        match self.millis.checked_sub(u64::from(tokens) * TOKEN) {
            Some(rest) => {
                self.millis = rest;
                true
            }
            None => false,
        }
    }

    /// Gives `tokens` back, up to what there was in the beginning.
    pub(super) fn refund(&mut self, tokens: u32) {
        self.millis = CAPACITY.min(self.millis + u64::from(tokens) * TOKEN);
    }

    fn grow(&mut self, now: Instant) {
        let begun = *self.at.get_or_insert(now);
        let passed = now.saturating_duration_since(begun).as_millis();
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        let grown = self.millis.saturating_add(passed.saturating_mul(PER_MILLISECOND));
        self.millis = grown.min(CAPACITY);
        // Only whole milliseconds were counted; the rest of them counts next time.
        self.at = Some(begun + Duration::from_millis(passed.min(YEAR)));
    }
}

/// Keeps sums with instants in range.
const YEAR: u64 = 365 * 24 * 60 * 60 * 1000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a moment to count from; any will do")]
    fn start() -> Instant {
        Instant::now()
    }

    fn spent(budget: &mut Budget, tokens: u32, now: Instant) -> u32 {
        (0..1000).take_while(|_| budget.spend(tokens, now)).count().try_into().unwrap()
    }

    #[test]
    fn five_hundred_tokens_and_ten_more_each_second() {
        let (start, mut budget) = (start(), Budget::default());
        assert_eq!(spent(&mut budget, 14, start), 35);
        assert_eq!(spent(&mut budget, 5, start), 2);
        assert_eq!(spent(&mut budget, 1, start + Duration::from_millis(99)), 0);
        assert_eq!(spent(&mut budget, 1, start + Duration::from_millis(100)), 1);
        assert_eq!(spent(&mut budget, 1, start + Duration::from_millis(3100)), 30);
        assert_eq!(spent(&mut budget, 1, start + Duration::from_secs(999_999)), 500);
        assert!(budget.spend(0, start), "what is free is always granted");
    }

    #[test]
    fn what_is_given_back_can_be_spent_again_but_never_piles_up() {
        let (start, mut budget) = (start(), Budget::default());
        budget.refund(14);
        assert_eq!(spent(&mut budget, 1, start), 500);
        budget.refund(14);
        assert_eq!(spent(&mut budget, 1, start), 14);
    }

    proptest! {
        #[test]
        fn nobody_spends_more_than_there_was(
            steps in prop::collection::vec((0_u64..3_000_000, 0_u32..20, any::<bool>()), 0..200),
        ) {
            let (start, mut budget) = (start(), Budget::default());
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
                prop_assert!(budget.millis <= CAPACITY);
                prop_assert!(spent <= 500 + grown + given_back);
            }
        }

        #[test]
        fn time_that_comes_in_pieces_gives_as_much_as_time_that_comes_at_once(
            pieces in prop::collection::vec(0_u64..5_000, 1..100),
        ) {
            let start = start();
            let (mut often, mut once) = (Budget::default(), Budget::default());
            for budget in [&mut often, &mut once] {
                prop_assert!(budget.spend(500, start));
            }
            let mut now = start;
            for micros in pieces {
                now += Duration::from_micros(micros);
                often.spend(0, now);
            }
            once.spend(0, now);
            prop_assert_eq!(often.millis, once.millis);
        }
    }
}
