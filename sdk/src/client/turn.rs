//! Waiting for one's turn: calls of a client and its clones stand in one line, first come, first
//! served. When a turn comes is decided by [`limiter`](super::limiter).

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

use super::{
    StopReason, clock,
    limiter::{Admission, Heard, Limiter, Place},
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
    /// [`Error::retry_after`](crate::client::Error::retry_after).
    #[must_use]
    pub fn fail_fast(self) -> Self {
        Self { patience: Patience::FailFast, ..self }
    }
}

/// The line of a client and its clones.
#[derive(Debug)]
pub(super) struct Line {
    /// Never held across an await: a future that nobody polls any more must hold up nobody.
    limiter: Mutex<Limiter>,
}

/// Why a call does not get its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) reason: StopReason,
    /// When to come back; none when its time was over, whatever the line.
    pub(super) wait: Option<Duration>,
}

/// How long somebody in line sleeps at most before looking again: turns may come sooner than was known.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

impl Line {
    pub(super) fn new(limit: u32) -> Self {
        Self { limiter: Mutex::new(Limiter::new(limit)) }
    }

    /// Waits until the next request may go; true when it had to wait.
    pub(super) async fn turn(&self, mode: RateLimit, deadline: Instant) -> Result<bool, Refused> {
        let waiting = match (mode.pace, mode.patience) {
            (Pace::Off, _) => None,
            (Pace::Adaptive, Patience::FailFast) => {
                self.arrive(clock::now(), StopReason::RateLimit)?
            }
            (Pace::Adaptive, Patience::Wait) => self.arrive(deadline, StopReason::Deadline)?,
        };
        match waiting {
            Some(waiting) => waiting.until_its_turn(deadline).await.map(|()| true),
            None => Ok(false),
        }
    }

    /// Goes at once, or takes a place whose turn is expected before `latest`.
    fn arrive(&self, latest: Instant, reason: StopReason) -> Result<Option<Waiting<'_>>, Refused> {
        let now = clock::now();
        self.with(|limiter| match limiter.admit(now) {
            Admission::Go => Ok(None),
            Admission::Wait(due) if due >= latest => Err(refused(reason, due, now)),
            Admission::Wait(due) => Ok(Some(Waiting { line: self, place: limiter.join(due) })),
        })
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

fn refused(reason: StopReason, due: Instant, now: Instant) -> Refused {
    Refused { reason, wait: Some(due.saturating_duration_since(now)) }
}

/// Somebody in line, who leaves it when dropped.
#[derive(Debug)]
struct Waiting<'a> {
    line: &'a Line,
    place: Place,
}

impl Waiting<'_> {
    async fn until_its_turn(mut self, deadline: Instant) -> Result<(), Refused> {
        loop {
            sleep_until(self.place.due.min(clock::after(LONGEST_SLEEP))).await;
            let now = clock::now();
            match self.line.with(|limiter| limiter.look(&mut self.place, now)) {
                Admission::Go => return Ok(()),
                Admission::Wait(_) if now >= deadline => {
                    return Err(Refused { reason: StopReason::Deadline, wait: None });
                }
                Admission::Wait(due) if due >= deadline => {
                    return Err(refused(StopReason::Deadline, due, now));
                }
                Admission::Wait(_) => {}
            }
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.line.with(|limiter| limiter.leave(&self.place));
    }
}
