//! Waiting for one's turn: calls of a client and its clones stand in one line, first come, first
//! served. When a turn comes is decided by [`limiter`](super::limiter).

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync,
    time::{Instant, sleep_until, timeout_at},
};

use super::{
    StopReason, clock,
    limiter::{Admission, Heard, Limiter},
};

/// How a client keeps to the rate limit of its key.
///
/// The service counts the requests of a key in windows of a second and refuses those beyond its
/// limit. The client spreads its requests evenly instead, learns limit and windows from every
/// answer, and so is hardly ever refused. Clones of a client share their turns.
///
/// ```
/// use parcelo::RateLimit;
///
/// let (patient, impatient) = (RateLimit::adaptive(), RateLimit::adaptive().fail_fast());
/// assert_eq!(RateLimit::default(), patient);
/// assert_ne!(patient, impatient);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    pace: Pace,
    patience: Patience,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    Adaptive,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    Wait,
    FailFast,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self::adaptive()
    }
}

impl RateLimit {
    /// Even gaps between requests, corrected by the service's answers. A call waits for its turn as
    /// long as its time allows.
    pub fn adaptive() -> Self {
        Self { pace: Pace::Adaptive, patience: Patience::Wait }
    }

    /// No gaps: a request goes at once, and the service refuses what is too much.
    pub fn off() -> Self {
        Self { pace: Pace::Off, patience: Patience::Wait }
    }

    /// A call that would have to wait for its turn fails at once, with
    /// [`Error::retry_after`](crate::Error::retry_after).
    #[must_use]
    pub fn fail_fast(self) -> Self {
        Self { patience: Patience::FailFast, ..self }
    }
}

/// The line of a client and its clones.
#[derive(Debug)]
pub(super) struct Line {
    limiter: Mutex<Limiter>,
    /// Held by whoever is first in line.
    place: sync::Mutex<()>,
}

/// Why a call does not get its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) reason: StopReason,
    /// When to come back.
    pub(super) wait: Option<Duration>,
}

impl Line {
    pub(super) fn new(limit: u32) -> Self {
        Self { limiter: Mutex::new(Limiter::new(limit)), place: sync::Mutex::default() }
    }

    /// Waits until the next request may go.
    pub(super) async fn turn(&self, mode: RateLimit, deadline: Instant) -> Result<(), Refused> {
        match (mode.pace, mode.patience) {
            (Pace::Off, _) => Ok(()),
            (Pace::Adaptive, Patience::FailFast) => self.turn_now(),
            (Pace::Adaptive, Patience::Wait) => self.turn_by(deadline).await,
        }
    }

    fn turn_now(&self) -> Result<(), Refused> {
        let now = clock::now();
        let refused = |wait| Err(Refused { reason: StopReason::RateLimit, wait });
        let Ok(_place) = self.place.try_lock() else { return refused(None) };
        match self.with(|limiter| limiter.admit(now)) {
            Admission::Go => Ok(()),
            Admission::Wait(turn) => refused(Some(turn.saturating_duration_since(now))),
        }
    }

    async fn turn_by(&self, deadline: Instant) -> Result<(), Refused> {
        let late = |wait| Refused { reason: StopReason::Deadline, wait };
        let _place = match self.place.try_lock() {
            Ok(place) => place,
            Err(_) => timeout_at(deadline, self.place.lock()).await.map_err(|_| late(None))?,
        };
        loop {
            let now = clock::now();
            match self.with(|limiter| limiter.admit(now)) {
                Admission::Go => return Ok(()),
                Admission::Wait(turn) if turn >= deadline => {
                    return Err(late(Some(turn.saturating_duration_since(now))));
                }
                Admission::Wait(turn) => sleep_until(turn).await,
            }
        }
    }

    /// Corrects the pace by an answer.
    pub(super) fn hear(&self, heard: &Heard) {
        self.with(|limiter| limiter.hear(heard));
    }

    fn with<T>(&self, look: impl FnOnce(&mut Limiter) -> T) -> T {
        // The limiter is plain numbers, as good after a panic as before.
        look(&mut self.limiter.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
