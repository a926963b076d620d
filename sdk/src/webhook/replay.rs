//! A memory of accepted messages, for as long as a copy would still be recent enough to be accepted.
//!
//! A copy is recognised by its signature and not by its id: the service's next attempt has the same id, and a
//! receiver that failed to process the first one must be able to accept it.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Mutex, PoisonError},
};

/// The signatures of accepted messages, at most `capacity` of them.
#[derive(Debug)]
pub(super) struct ReplayGuard {
    capacity: usize,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    order: VecDeque<(i64, [u8; 32])>,
    tags: HashSet<[u8; 32]>,
}

impl ReplayGuard {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), seen: Mutex::default() }
    }

    /// Returns `true` if the message is new. It is remembered until `forgotten_at`.
    pub(super) fn is_new(&self, tag: [u8; 32], forgotten_at: i64, now: i64) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.forget(|until, count| until < now || count > self.capacity);
        if !seen.tags.insert(tag) {
            return false;
        }
        seen.order.push_back((forgotten_at, tag));
        seen.forget(|_, count| count > self.capacity);
        true
    }
}

impl Seen {
    /// Forgets messages, oldest first, while `is_over` is true.
    fn forget(&mut self, is_over: impl Fn(i64, usize) -> bool) {
        while let Some((until, tag)) = self.order.front()
            && is_over(*until, self.order.len())
        {
            self.tags.remove(tag);
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_replay_cache_is_bounded_by_count_and_time() {
        let guard = ReplayGuard::new(2);
        assert!(guard.is_new([1; 32], 10, 0) && guard.is_new([2; 32], 10, 0));
        assert!(!guard.is_new([1; 32], 10, 0) && !guard.is_new([2; 32], 10, 10));
        assert!(guard.is_new([3; 32], 20, 0), "a third one pushes out the first");
        assert!(guard.is_new([1; 32], 20, 0), "which is then forgotten");
        assert!(guard.is_new([4; 32], 40, 21));
        let seen = guard.seen.lock().unwrap();
        assert_eq!((seen.order.len(), seen.tags.len()), (1, 1));
    }
}
