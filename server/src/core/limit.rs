//! The rate limit: fixed windows of one second, aligned to Unix seconds
//! (spec: Limits; docs/api.md, Rate limit).

use crate::clock::Millis;

/// What the three rate headers say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// The most requests in a window.
    pub limit: u32,
    /// Requests left in this window.
    pub remaining: u32,
    /// The Unix second in which this window ends.
    pub reset: i64,
}

impl Quota {
    /// The quota of a caller whom nothing limits.
    pub const fn whole(limit: u32, now: Millis) -> Self {
        Self { limit, remaining: limit, reset: now.second() + 1 }
    }
}

/// Whether a request may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It may; it has been counted.
    Granted(Quota),
    /// It may not, and does not count.
    Refused(Quota),
}

/// What one caller has used of the current window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    second: i64,
    used: u32,
}

impl Window {
    /// Counts a request against `limit`, unless the window is used up.
    pub fn take(&mut self, limit: u32, now: Millis) -> Admission {
        if self.second != now.second() {
            *self = Self { second: now.second(), used: 0 };
        }
        if self.used >= limit {
            return Admission::Refused(self.quota(limit, now));
        }
        self.used += 1;
        Admission::Granted(self.quota(limit, now))
    }

    /// What is left, without counting anything.
    pub fn quota(&self, limit: u32, now: Millis) -> Quota {
        let used = if self.second == now.second() { self.used } else { 0 };
        Quota { limit, remaining: limit.saturating_sub(used), reset: now.second() + 1 }
    }

    /// Whether the window is over, so that nothing is lost by forgetting it.
    pub const fn is_over(&self, now: Millis) -> bool {
        self.second != now.second()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_51st_request_of_a_window_is_refused_and_the_next_window_is_free() {
        let mut window = Window::default();
        let now = Millis(1_700_000_000_400);
        for left in (0..50).rev() {
            let quota = Quota { limit: 50, remaining: left, reset: 1_700_000_001 };
            assert_eq!(window.take(50, now), Admission::Granted(quota));
        }
        let empty = Quota { limit: 50, remaining: 0, reset: 1_700_000_001 };
        assert_eq!(window.take(50, now.plus(599)), Admission::Refused(empty));
        assert!(matches!(window.take(50, now.plus(600)), Admission::Granted(_)));
    }

    #[test]
    fn a_clock_that_jumps_back_starts_a_window() {
        let mut window = Window::default();
        assert!(matches!(window.take(1, Millis(9_000)), Admission::Granted(_)));
        assert!(matches!(window.take(1, Millis(5_000)), Admission::Granted(_)));
        assert!(matches!(window.take(1, Millis(5_000)), Admission::Refused(_)));
    }
}
