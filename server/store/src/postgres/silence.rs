//! Detects a PostgreSQL server that does not respond at all. A server that is frozen, or behind a network that drops
//! all packets, keeps its connections open, and nothing fails until a statement times out. So the requests and
//! responses of all connections are recorded here. One slow statement does not count as silence while others are
//! answered. There are always requests to record, because the clock and the number of servers are queried every second.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use parcelo_system::clock::{has_elapsed, monotonic_now};

/// Time without an answer after which a server is not ready.
pub(super) const MAX_SILENCE: Duration = Duration::from_secs(3);

/// The time for which PostgreSQL has not answered.
#[derive(Debug, Default)]
pub(super) struct Silence {
    /// Time of the first request after the last response.
    since: Mutex<Option<Instant>>,
    /// `true` if the last log message said that the silence is too long.
    was_logged: AtomicBool,
}

impl Silence {
    pub(super) fn request_sent(&self) {
        self.since().get_or_insert_with(monotonic_now);
    }

    /// Records a response to any request.
    pub(super) fn response_received(&self) {
        *self.since() = None;
    }

    pub(super) fn is_too_long(&self) -> bool {
        self.since().is_some_and(|since| has_elapsed(since, MAX_SILENCE))
    }

    /// Returns `true` if a request was sent since the last response.
    #[cfg(test)]
    pub(super) fn is_awaiting_response(&self) -> bool {
        self.since().is_some()
    }

    /// Returns `true` once after the silence has become too long, and `false` once after it has ended.
    pub(super) fn take_unlogged_change(&self) -> Option<bool> {
        let is_too_long = self.is_too_long();
        let was_logged = self.was_logged.swap(is_too_long, Ordering::Relaxed);
        (was_logged != is_too_long).then_some(is_too_long)
    }

    fn since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_lasts_from_a_request_to_the_next_response() {
        let silence = Silence::default();
        let ago = |age: Duration| monotonic_now().checked_sub(age).unwrap();
        assert!(!silence.is_too_long(), "no request was sent");
        silence.request_sent();
        assert_eq!((silence.is_too_long(), silence.take_unlogged_change()), (false, None));
        *silence.since() = Some(ago(MAX_SILENCE * 2));
        // Another request does not end the silence; a response to any request does.
        silence.request_sent();
        assert!(silence.is_too_long());
        assert_eq!(
            [silence.take_unlogged_change(), silence.take_unlogged_change()],
            [Some(true), None]
        );
        silence.response_received();
        assert!(!silence.is_too_long());
        assert_eq!(
            [silence.take_unlogged_change(), silence.take_unlogged_change()],
            [Some(false), None]
        );
    }
}
