//! The rate limiter and the budget for retries of each API key. Clients that share a transport share them for each key,
//! since the service counts the requests of a key, whichever client sends them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use parcelo_types::ApiKey;
use sha2::{Digest, Sha256};

use super::{
    RateLimit,
    pacer::Pacer,
    retry_budget::{BudgetSize, RetryBudget},
};

/// Maximum number of keys that are remembered: some hundred kilobytes.
const MAX_KEYS: usize = 1000;

/// The limits of one API key.
pub(super) struct KeyLimits {
    pub(super) pacer: Pacer,
    retry_budget: Mutex<RetryBudget>,
}

impl KeyLimits {
    pub(super) fn retry_budget(&self) -> MutexGuard<'_, RetryBudget> {
        // It is plain numbers, which stay valid after a panic elsewhere.
        self.retry_budget.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The limits of all API keys of a transport, all of the same size.
pub(super) struct KeyLimitTable {
    rate_limit: RateLimit,
    budget: BudgetSize,
    rows: Mutex<Rows>,
}

#[derive(Default)]
struct Rows {
    /// The rows by a digest of the key, so that the secret is in as few places as possible.
    by_key: HashMap<[u8; 32], Row>,
    uses: u64,
}

struct Row {
    limits: Arc<KeyLimits>,
    last_use: u64,
}

impl KeyLimitTable {
    pub(super) fn new(rate_limit: RateLimit, budget: BudgetSize) -> Self {
        Self { rate_limit, budget, rows: Mutex::default() }
    }

    /// Returns the limits of a key: those that it has, or new ones.
    pub(super) fn get(&self, key: &ApiKey) -> Arc<KeyLimits> {
        let digest = Sha256::digest(key.secret()).into();
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if rows.by_key.len() >= MAX_KEYS && !rows.by_key.contains_key(&digest) {
            rows.forget_one();
        }
        rows.uses += 1;
        let last_use = rows.uses;
        let row = rows
            .by_key
            .entry(digest)
            .or_insert_with(|| Row { limits: Arc::new(self.new_limits(key)), last_use });
        row.last_use = last_use;
        Arc::clone(&row.limits)
    }

    fn new_limits(&self, key: &ApiKey) -> KeyLimits {
        KeyLimits {
            pacer: Pacer::new(key.environment().requests_per_second(), &self.rate_limit),
            retry_budget: Mutex::new(RetryBudget::new(&self.budget)),
        }
    }
}

impl Rows {
    /// Forgets the key that was not used for the longest time, if possible one that no client has: a client keeps its
    /// limits, and the next one with the key would get others.
    fn forget_one(&mut self) {
        let by_age =
            |(_, row): &(&[u8; 32], &Row)| (Arc::strong_count(&row.limits) > 1, row.last_use);
        if let Some(oldest) = self.by_key.iter().min_by_key(by_age).map(|(key, _)| *key) {
            self.by_key.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use parcelo_types::Environment;

    use super::*;

    fn key(number: usize) -> ApiKey {
        ApiKey::parse(&format!("{}{number}", Environment::Sandbox.key_prefix())).unwrap()
    }

    fn table() -> KeyLimitTable {
        KeyLimitTable::new(RateLimit::default(), BudgetSize::default())
    }

    #[test]
    fn each_key_has_one_set_of_limits() {
        let table = table();
        let first = table.get(&key(1));
        assert!(Arc::ptr_eq(&first, &table.get(&key(1))));
        assert!(!Arc::ptr_eq(&first, &table.get(&key(2))));
    }

    #[test]
    fn the_key_that_is_unused_for_longest_leaves_a_full_table() {
        let table = table();
        let weak = |number| Arc::downgrade(&table.get(&key(number)));
        let held = table.get(&key(0));
        let all: Vec<_> = (1..MAX_KEYS).map(weak).collect();
        table.get(&key(1));
        table.get(&key(MAX_KEYS));
        let gone: Vec<_> = (1..MAX_KEYS).filter(|n| all[n - 1].strong_count() == 0).collect();
        assert_eq!(gone, [2], "0 is held, and 1 was used again");
        assert!(Arc::ptr_eq(&held, &table.get(&key(0))));
    }

    #[test]
    fn a_table_whose_keys_are_all_in_use_does_not_grow() {
        let table = table();
        let held: Vec<_> = (0..2 * MAX_KEYS).map(|number| table.get(&key(number))).collect();
        assert_eq!(table.rows.lock().unwrap().by_key.len(), MAX_KEYS);
        assert!(Arc::ptr_eq(&held[2 * MAX_KEYS - 1], &table.get(&key(2 * MAX_KEYS - 1))));
    }
}
