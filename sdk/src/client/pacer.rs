//! Waiting under the rate limit. Calls with the same API key queue, first come, first served.
//! [`limiter`](super::limiter) decides when a turn comes.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

use super::{
    Error, ErrorKind, StopReason,
    call_state::CallState,
    clock,
    error::Texts,
    limiter::{Admission, Limiter, RateLimitFeedback, Ticket},
};

/// The settings by which a client stays within the rate limit of its key.
///
/// The service counts the requests of a key in windows of a second and refuses those above its limit. After a pause the
/// client sends at once as many as the window admits; it spreads the following ones evenly. It learns the limit and the
/// windows from every response, so that it is hardly ever refused. Clones of a client share one limiter.
///
/// ```
/// use parcelo::RateLimit;
///
/// let (waits, fails) = (RateLimit::adaptive(), RateLimit::adaptive().fail_fast());
/// assert_eq!(RateLimit::default(), waits);
/// assert_ne!(waits, fails);
/// let one_of_four_workers = RateLimit::adaptive().share(0.25).burst(4);
/// # assert_ne!(one_of_four_workers, waits);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RateLimit {
    pacing: Pacing,
    when_full: WhenFull,
    burst: u32,
    share: f64,
}

/// Minimum share of a limit: one request in 20 s of 50 a second.
const MIN_SHARE: f64 = 0.001;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pacing {
    Adaptive,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WhenFull {
    Wait,
    Fail,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self::adaptive()
    }
}

impl RateLimit {
    /// Stays within the limit that the service's responses state. A call waits for its turn as long as its timeout allows.
    pub fn adaptive() -> Self {
        let (pacing, when_full) = (Pacing::Adaptive, WhenFull::Wait);
        Self { pacing, when_full, burst: u32::MAX, share: 1.0 }
    }

    /// Sends every request at once and lets the service refuse those above the limit. While the service asks for a
    /// longer wait than [`Retry::max_retry_after`](crate::client::Retry::max_retry_after), nothing is sent.
    pub fn off() -> Self {
        Self { pacing: Pacing::Off, ..Self::adaptive() }
    }

    /// Makes a call that would have to wait for its turn fail at once, with
    /// [`Error::retry_after`](crate::client::Error::retry_after).
    #[must_use]
    pub fn fail_fast(self) -> Self {
        Self { when_full: WhenFull::Fail, ..self }
    }

    /// Limits the requests that go at once after a pause: without it they are as many as the window admits (10 before
    /// the first response has described one), and with 1 all are spread evenly. It is a setting of the limiter, so
    /// [`ClientBuilder::rate_limit`] sets it and [`Client::with_rate_limit`] does not change it.
    ///
    /// [`Client::with_rate_limit`]: crate::client::Client::with_rate_limit
    /// [`ClientBuilder::rate_limit`]: crate::client::ClientBuilder::rate_limit
    #[must_use]
    pub fn burst(self, requests: u32) -> Self {
        Self { burst: requests, ..self }
    }

    /// Uses only a part of the key's limit, between 0.001 and 1, because other processes use the same key: with a
    /// share each they do not get in each other's way. Like [`RateLimit::burst`], it is set when a client is built.
    #[must_use]
    pub fn share(self, part: f64) -> Self {
        // `clamp` would keep NaN, and this does not.
        Self { share: if part > MIN_SHARE { part.min(1.0) } else { MIN_SHARE }, ..self }
    }
}

/// The queue of the calls with an API key.
#[derive(Debug)]
pub(super) struct Pacer {
    /// Never held across an await: a future that is no longer polled would block every other call.
    limiter: Mutex<Limiter>,
}

/// The reason why a call must not be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotAdmitted {
    pub(super) reason: StopReason,
    /// The wait until its turn; `None` if the call's time is over.
    pub(super) retry_after: Option<Duration>,
}

impl NotAdmitted {
    pub(super) fn into_error(self, state: &CallState) -> Error {
        const NO_CAPACITY: Texts = (
            "The client's own rate limiter had no capacity in time.",
            "El limitador de solicitudes del propio cliente no tuvo capacidad a tiempo.",
        );
        const BANNED: Texts = (
            "The service has asked for no more requests until later, and the call must not wait that long.",
            "El servicio pidió no enviar más solicitudes por ahora, y la llamada no puede esperar tanto.",
        );
        const OUT_OF_TIME: Texts = (
            "The call's time ran out before it could be sent.",
            "El tiempo de la llamada se agotó antes de poder enviarla.",
        );
        let (kind, texts) = match self.retry_after {
            Some(_) if self.reason == StopReason::RetryAfterTooLong => {
                (ErrorKind::RateLimited, BANNED)
            }
            Some(_) => (ErrorKind::RateLimited, NO_CAPACITY),
            None => (ErrorKind::Timeout, OUT_OF_TIME),
        };
        state.error(kind, texts).with(|inner| {
            inner.retry_after = self.retry_after;
            inner.nothing_sent = true;
            inner.stop_reason = Some(self.reason);
        })
    }
}

/// The limits of the time that a call waits for its turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitLimits {
    pub(super) deadline: Instant,
    /// Maximum wait that the service may ask for.
    pub(super) max_retry_after: Duration,
}

impl WaitLimits {
    /// Fails if the service has asked for a longer wait than that.
    fn check_ban(self, limiter: &Limiter, now: Instant) -> Result<(), NotAdmitted> {
        let ban = limiter.ban(now);
        if ban <= self.max_retry_after {
            return Ok(());
        }
        Err(NotAdmitted { reason: StopReason::RetryAfterTooLong, retry_after: Some(ban) })
    }
}

/// Maximum sleep of a queued call before it checks its turn again, because its turn may come sooner than was known when
/// it joined: others leave the queue, and the service raises the limit or asks to stop. It learns of them at most a
/// second late.
const MAX_SLEEP: Duration = Duration::from_secs(1);

impl Pacer {
    pub(super) fn new(requests_per_second: u32, settings: &RateLimit) -> Self {
        let limiter = Limiter::new(requests_per_second, settings.share, settings.burst);
        Self { limiter: Mutex::new(limiter) }
    }

    /// Waits until the next request may be sent. Returns `true` if it had to wait.
    pub(super) async fn acquire(
        &self,
        mode: &RateLimit,
        limits: WaitLimits,
    ) -> Result<bool, NotAdmitted> {
        let queued = match mode.pacing {
            Pacing::Off => {
                self.with_limiter(|limiter| limits.check_ban(limiter, clock::now()))?;
                None
            }
            Pacing::Adaptive => self.enter(mode.when_full, limits)?,
        };
        match queued {
            Some(queued) => queued.wait(limits).await.map(|()| true),
            None => Ok(false),
        }
    }

    /// Takes a turn at once, or joins the queue if the turn is expected in time.
    fn enter(
        &self,
        when_full: WhenFull,
        limits: WaitLimits,
    ) -> Result<Option<QueuedCall<'_>>, NotAdmitted> {
        let now = clock::now();
        let (latest, reason) = match when_full {
            WhenFull::Fail => (now, StopReason::RateLimit),
            WhenFull::Wait => (limits.deadline, StopReason::Deadline),
        };
        self.with_limiter(|limiter| {
            limits.check_ban(limiter, now)?;
            match limiter.admit(now) {
                Admission::Go => Ok(None),
                Admission::Wait(due) if due >= latest => Err(not_before(due, now, reason)),
                Admission::Wait(due) => {
                    Ok(Some(QueuedCall { pacer: self, ticket: limiter.join_queue(due) }))
                }
            }
        })
    }

    /// Adjusts the pace to a response.
    pub(super) fn observe(&self, feedback: &RateLimitFeedback) {
        self.with_limiter(|limiter| limiter.observe(feedback));
    }

    fn with_limiter<T>(&self, action: impl FnOnce(&mut Limiter) -> T) -> T {
        // The limiter is plain numbers, which stay valid after a panic elsewhere.
        action(&mut self.limiter.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn not_before(due: Instant, now: Instant, reason: StopReason) -> NotAdmitted {
    NotAdmitted { reason, retry_after: Some(due.saturating_duration_since(now)) }
}

/// A call in the queue; dropping it leaves the queue.
#[derive(Debug)]
struct QueuedCall<'a> {
    pacer: &'a Pacer,
    ticket: Ticket,
}

impl QueuedCall<'_> {
    async fn wait(mut self, limits: WaitLimits) -> Result<(), NotAdmitted> {
        loop {
            sleep_until(self.ticket.due.min(clock::from_now(MAX_SLEEP))).await;
            let now = clock::now();
            let admission = self.pacer.with_limiter(|limiter| {
                limits.check_ban(limiter, now)?;
                Ok(limiter.check(&mut self.ticket, now))
            });
            match admission? {
                Admission::Go => return Ok(()),
                Admission::Wait(_) if now >= limits.deadline => {
                    return Err(NotAdmitted { reason: StopReason::Deadline, retry_after: None });
                }
                Admission::Wait(due) if due >= limits.deadline => {
                    return Err(not_before(due, now, StopReason::Deadline));
                }
                Admission::Wait(_) => {}
            }
        }
    }
}

impl Drop for QueuedCall<'_> {
    fn drop(&mut self) {
        self.pacer.with_limiter(|limiter| limiter.leave_queue(&self.ticket));
    }
}
