//! The rate limit: fixed windows of one second, aligned to Unix seconds
//! (spec: Limits; docs/api.md, Rate limit).

use std::{collections::HashMap, hash::Hash};

use crate::Millis;

/// Maximum number of callers for which memory is kept from one second to the next.
const MAX_WINDOWS: usize = 10_000;

/// The values of the three rate-limit headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Maximum number of requests in a window.
    pub limit: u32,
    /// Requests left in this window.
    pub remaining: u32,
    /// The Unix second in which this window ends.
    pub reset: i64,
}

impl Quota {
    /// Returns the full quota, for a caller that is not limited.
    pub const fn full(limit: u32, now: Millis) -> Self {
        Self { limit, remaining: limit, reset: now.second() + 1 }
    }

    /// Returns the seconds until the window ends, rounded up to at least one, for `Retry-After`.
    pub fn retry_after(self, now: Millis) -> u32 {
        u32::try_from(self.reset - now.second()).unwrap_or(1).max(1)
    }
}

/// The decision on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Admitted and counted.
    Granted(Quota),
    /// Refused and not counted.
    Refused(Quota),
}

/// The requests of each caller in the current second. Earlier seconds are dropped as a whole, so entries need no
/// expiry.
#[derive(Debug)]
pub struct RateLimitWindows<K> {
    second: i64,
    used: HashMap<K, u32>,
}

impl<K> Default for RateLimitWindows<K> {
    fn default() -> Self {
        Self { second: i64::MIN, used: HashMap::new() }
    }
}

impl<K: Eq + Hash> RateLimitWindows<K> {
    /// Counts a request against `limit`, unless the caller's window is used up.
    pub fn admit(&mut self, key: K, limit: u32, now: Millis) -> Admission {
        self.advance_to(now.second());
        let used = self.used.entry(key).or_default();
        if *used >= limit {
            return Admission::Refused(quota(limit, *used, self.second));
        }
        *used += 1;
        Admission::Granted(quota(limit, *used, self.second))
    }

    /// Returns the quota without counting a request.
    pub fn quota(&self, key: &K, limit: u32, now: Millis) -> Quota {
        let used = if self.second == now.second() { self.used.get(key) } else { None };
        quota(limit, used.copied().unwrap_or(0), now.second())
    }

    /// Forgets all counts.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    fn advance_to(&mut self, second: i64) {
        // Requests overtake each other: a request from just before the end of a second counts in the next second, and
        // does not reset its counts. A clock that was set back starts a new window.
        if second == self.second || second.checked_add(1) == Some(self.second) {
            return;
        }
        self.second = second;
        self.used.clear();
        // Release the memory after a flood of addresses.
        self.used.shrink_to(MAX_WINDOWS);
    }
}

fn quota(limit: u32, used: u32, second: i64) -> Quota {
    Quota { limit, remaining: limit.saturating_sub(used), reset: second + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_51st_request_of_a_window_is_refused() {
        let mut windows = RateLimitWindows::default();
        let now = Millis(1_700_000_000_400);
        for left in (0..50).rev() {
            let quota = Quota { limit: 50, remaining: left, reset: 1_700_000_001 };
            assert_eq!(windows.admit("a", 50, now), Admission::Granted(quota));
            assert_eq!(windows.quota(&"a", 50, now), quota);
        }
        let empty = Quota { limit: 50, remaining: 0, reset: 1_700_000_001 };
        assert_eq!(windows.admit("a", 50, now.plus(599)), Admission::Refused(empty));
        assert!(matches!(windows.admit("b", 50, now.plus(599)), Admission::Granted(_)));
        assert_eq!(windows.quota(&"a", 50, now.plus(600)).remaining, 50);
        assert!(matches!(windows.admit("a", 50, now.plus(600)), Admission::Granted(_)));
    }

    #[test]
    fn a_clock_that_jumps_back_starts_a_window() {
        let mut windows = RateLimitWindows::default();
        assert!(matches!(windows.admit("a", 1, Millis(9_000)), Admission::Granted(_)));
        assert!(matches!(windows.admit("a", 1, Millis(5_000)), Admission::Granted(_)));
        assert!(matches!(windows.admit("a", 1, Millis(5_000)), Admission::Refused(_)));
    }

    #[test]
    fn an_overtaken_request_does_not_reset_the_counts() {
        let mut windows = RateLimitWindows::default();
        assert!(matches!(windows.admit("a", 1, Millis(6_000)), Admission::Granted(_)));
        assert!(matches!(windows.admit("b", 1, Millis(5_999)), Admission::Granted(_)));
        assert!(matches!(windows.admit("a", 1, Millis(6_001)), Admission::Refused(_)));
    }

    #[test]
    fn callers_of_an_earlier_second_are_forgotten() {
        let mut windows = RateLimitWindows::default();
        for caller in 0..100_000 {
            windows.admit(caller, 1, Millis(1_000));
        }
        windows.admit(0, 1, Millis(2_000));
        assert_eq!(windows.used.len(), 1);
        assert!(windows.used.capacity() <= 2 * MAX_WINDOWS, "{}", windows.used.capacity());
    }

    #[test]
    fn a_refused_caller_waits_until_the_window_ends_and_at_least_a_second() {
        let quota = Quota::full(50, Millis(9_999));
        assert_eq!(quota, Quota { limit: 50, remaining: 50, reset: 10 });
        let waits = [6_500, 9_000, 10_000, 12_000].map(|now| quota.retry_after(Millis(now)));
        assert_eq!(waits, [4, 1, 1, 1]);
    }

    #[test]
    fn after_clearing_every_window_is_full() {
        let mut windows = RateLimitWindows::default();
        assert!(matches!(windows.admit("a", 1, Millis(9_000)), Admission::Granted(_)));
        windows.clear();
        assert!(matches!(windows.admit("a", 1, Millis(9_000)), Admission::Granted(_)));
    }
}
