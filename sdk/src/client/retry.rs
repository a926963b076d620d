//! Whether a failed attempt is made again, and when. It decides; the call's [`course`](super::course) sleeps.

use std::time::Duration;

use fastrand::Rng;
use http::StatusCode;
use serde::{Deserialize, Deserializer, Serialize};
use tokio::time::Instant;

use super::{Phase, budget::Budget, seconds};
use crate::model::ErrorCode;

const LONGEST_SPREAD: Duration = Duration::from_millis(250);

/// How often a call is tried, and how patiently.
///
/// A call is tried again only when that is safe and can help: it never reached the service, or
/// repeating it changes nothing (a read, or a write with its idempotency key). The client waits
/// before each retry for as long as the service asks, else for a random, growing time.
///
/// All calls of a client and its clones share a budget for retries, so that a service that is down
/// does not get several times the load.
///
/// ```
/// # use std::time::Duration;
/// use parcelo::Retry;
///
/// let (first, longest) = (Duration::from_secs(1), Duration::from_secs(30));
/// let patient = Retry::standard().attempts(8).backoff(first, longest);
/// assert_eq!(Retry::none(), Retry::standard().attempts(1));
/// # assert_ne!(Retry::standard(), patient);
/// ```
///
/// In files of settings times are numbers of seconds, whole or not, and what is left out is as in
/// [`Retry::standard`]:
///
/// ```
/// # use std::time::Duration;
/// # use parcelo::Retry;
/// let json = r#"{"attempts": 8, "firstBackoff": 1, "maxBackoff": 30,
///     "maxRetryAfter": 60}"#;
/// let read: Retry = serde_json::from_str(json)?;
/// let (first, longest) = (Duration::from_secs(1), Duration::from_secs(30));
/// let same = Retry::standard().attempts(8).backoff(first, longest);
/// assert_eq!(read, same.max_retry_after(Duration::from_secs(60)));
/// let free: Retry = serde_json::from_str(r#"{"budgeted": false}"#)?;
/// assert_eq!(free, Retry::standard().unbudgeted());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Retry {
    #[serde(deserialize_with = "at_least_one")]
    attempts: u32,
    #[serde(with = "seconds")]
    first_backoff: Duration,
    #[serde(with = "seconds")]
    max_backoff: Duration,
    #[serde(with = "seconds")]
    max_retry_after: Duration,
    budgeted: bool,
}

fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    u32::deserialize(deserializer).map(|attempts| attempts.max(1))
}

impl Retry {
    /// Up to 4 attempts; between them up to 100, 200, 400 ms, and five times as long when the
    /// service is asked too often and does not say when to come back. Hints up to 30 s are followed.
    pub fn standard() -> Self {
        Self {
            attempts: 4,
            first_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(5),
            max_retry_after: Duration::from_secs(30),
            budgeted: true,
        }
    }

    /// One attempt.
    pub fn none() -> Self {
        Self::standard().attempts(1)
    }

    /// The most attempts of one call; 0 counts as 1.
    #[must_use]
    pub fn attempts(self, attempts: u32) -> Self {
        Self { attempts: attempts.max(1), ..self }
    }

    /// The longest first wait, which doubles with each attempt, and the longest of all. How long of
    /// it is waited is left to chance, to keep clients from coming back together.
    #[must_use]
    pub fn backoff(self, first: Duration, longest: Duration) -> Self {
        Self { first_backoff: first, max_backoff: longest, ..self }
    }

    /// The longest wait that the service may ask for; a call that is asked for more fails at once.
    #[must_use]
    pub fn max_retry_after(self, longest: Duration) -> Self {
        Self { max_retry_after: longest, ..self }
    }

    /// Retries whatever the client's budget for retries says, and without spending of it.
    #[must_use]
    pub fn unbudgeted(self) -> Self {
        Self { budgeted: false, ..self }
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self::standard()
    }
}

/// Why a call was not tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// The same request would get the same answer.
    Permanent,
    /// Sending it twice could do it twice.
    NotRepeatable,
    /// All attempts are used up.
    Attempts,
    /// The client has spent its budget for retries: most of its calls fail.
    Budget,
    /// The next attempt would begin after the call's time is over.
    Deadline,
    /// The service asked for more patience than the client has (30 s); see
    /// [`Error::retry_after`](crate::client::Error::retry_after).
    RetryAfterTooLong,
    /// The client's own limiter had no room, and the call shall not wait for it
    /// ([`RateLimit::fail_fast`](crate::client::RateLimit::fail_fast)).
    RateLimit,
    /// The idempotency key was first sent 24 hours ago: the service has forgotten it, and sending
    /// it again could do it twice.
    KeyExpired,
}

/// What a failure of one attempt means for the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureClass {
    /// Nothing was sent: no address, no connection. Always tried again.
    NotSent,
    /// A connection that had been used before was closed without a byte of an answer. Tried again
    /// at once, and like `MaybeSent` when it happens a second time.
    Stale,
    /// No whole answer came. Tried again when repeating it changes nothing.
    MaybeSent,
    /// The service failed (408, 500, 502, 503, 504). As `MaybeSent`.
    Server,
    /// Too many requests (429). Always tried again.
    Throttled,
    /// The same write is being executed (409 `IDEMPOTENCY_IN_PROGRESS`). As `MaybeSent`.
    Busy,
    /// The same request would get the same answer. Never tried again.
    Permanent,
}

impl FailureClass {
    pub(super) fn of_phase(phase: Phase) -> Self {
        match phase {
            Phase::NotSent => Self::NotSent,
            Phase::Refused | Phase::Untrusted | Phase::NotHttp => Self::Permanent,
            Phase::Stale => Self::Stale,
            Phase::MaybeSent | Phase::Timeout => Self::MaybeSent,
        }
    }

    pub(super) fn of_status(status: StatusCode, code: Option<ErrorCode>) -> Self {
        match status {
            StatusCode::TOO_MANY_REQUESTS => Self::Throttled,
            StatusCode::REQUEST_TIMEOUT
            | StatusCode::INTERNAL_SERVER_ERROR
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Self::Server,
            StatusCode::CONFLICT if code == Some(ErrorCode::IdempotencyInProgress) => Self::Busy,
            _ => Self::Permanent,
        }
    }
}

/// An attempt that failed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Failed {
    /// 1 for the first attempt.
    pub(super) number: u32,
    pub(super) class: FailureClass,
    /// Whether doing it twice is as good as once.
    pub(super) repeatable: bool,
    /// An earlier attempt of the same call met a stale connection.
    pub(super) stale_before: bool,
    /// How long the service asks to wait.
    pub(super) hint: Option<Duration>,
    pub(super) now: Instant,
    /// What is left of the call's time.
    pub(super) left: Duration,
    /// What is left of the idempotency key's life.
    pub(super) key_left: Option<Duration>,
}

impl Failed {
    /// True for the one retry that costs neither time nor tokens. A pool may hold several dead
    /// connections; only the first counts as one.
    pub(super) fn is_free(&self) -> bool {
        self.class == FailureClass::Stale && !self.stale_before
    }

    /// The tokens that the next attempt costs.
    pub(super) fn cost(&self) -> u32 {
        match self.class {
            _ if self.is_free() => 0,
            FailureClass::Throttled => 5,
            FailureClass::NotSent
            | FailureClass::Stale
            | FailureClass::MaybeSent
            | FailureClass::Server
            | FailureClass::Busy
            | FailureClass::Permanent => 14,
        }
    }
}

/// What to do after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    Wait(Duration),
    GiveUp(StopReason),
}

/// Decides for a client and its clones, which share its budget.
#[derive(Debug, Default)]
pub(super) struct Decider {
    rng: Rng,
    budget: Budget,
}

impl Decider {
    pub(super) fn decide(&mut self, retry: Retry, failed: &Failed) -> Decision {
        if let Some(reason) = obstacle(retry, failed) {
            return Decision::GiveUp(reason);
        }
        let wait = wait(retry, failed, &mut self.rng);
        if wait >= failed.left {
            Decision::GiveUp(StopReason::Deadline)
        } else if failed.key_left.is_some_and(|left| wait >= left) {
            Decision::GiveUp(StopReason::KeyExpired)
        } else if retry.budgeted && !self.budget.spend(failed.cost(), failed.now) {
            Decision::GiveUp(StopReason::Budget)
        } else {
            Decision::Wait(wait)
        }
    }

    /// A success gives back what its last retry cost, or one token if it needed none.
    pub(super) fn succeeded(&mut self, last_cost: Option<u32>) {
        self.budget.refund(last_cost.unwrap_or(1));
    }

    pub(super) fn random(&mut self) -> u64 {
        self.rng.u64(..)
    }
}

fn obstacle(retry: Retry, failed: &Failed) -> Option<StopReason> {
    let safe = match failed.class {
        FailureClass::Permanent => return Some(StopReason::Permanent),
        FailureClass::NotSent | FailureClass::Throttled => true,
        FailureClass::Stale
        | FailureClass::MaybeSent
        | FailureClass::Server
        | FailureClass::Busy => failed.repeatable,
    };
    if !safe {
        Some(StopReason::NotRepeatable)
    } else if failed.number >= retry.attempts {
        Some(StopReason::Attempts)
    } else if failed.hint.is_some_and(|hint| hint > retry.max_retry_after) {
        Some(StopReason::RetryAfterTooLong)
    } else {
        None
    }
}

fn wait(retry: Retry, failed: &Failed, rng: &mut Rng) -> Duration {
    if failed.is_free() {
        return Duration::ZERO;
    }
    let base = match (failed.class, failed.hint) {
        (FailureClass::Throttled, None) => retry.first_backoff.saturating_mul(5),
        _ => retry.first_backoff,
    };
    let doubled = 2_u32.saturating_pow(failed.number.saturating_sub(1));
    let backoff = up_to(base.saturating_mul(doubled).min(retry.max_backoff), rng);
    match failed.hint {
        // The spread keeps clients that were given the same hint from coming back together.
        Some(hint) => hint.max(backoff).saturating_add(up_to((hint / 10).min(LONGEST_SPREAD), rng)),
        None => backoff,
    }
}

fn up_to(most: Duration, rng: &mut Rng) -> Duration {
    // Beyond a year it makes no difference, and the product stays in range.
    most.min(Duration::from_secs(31_536_000)).mul_f64(rng.f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[expect(clippy::disallowed_methods, reason = "a moment to count from; any will do")]
    fn failed(class: FailureClass) -> Failed {
        Failed {
            number: 1,
            class,
            repeatable: true,
            stale_before: false,
            hint: None,
            now: Instant::now(),
            left: MINUTE,
            key_left: None,
        }
    }

    fn decider() -> Decider {
        Decider { rng: Rng::with_seed(7), budget: Budget::default() }
    }

    fn decided(failed: &Failed) -> Decision {
        decider().decide(Retry::standard(), failed)
    }

    #[test]
    fn every_signal_is_retried_exactly_when_that_is_safe() {
        use FailureClass::{Busy, MaybeSent, NotSent, Permanent, Server, Stale, Throttled};
        use StopReason::{NotRepeatable, Permanent as Same};
        // class, given up when repeatable, given up when not
        let table = [
            (NotSent, None, None),
            (Stale, None, Some(NotRepeatable)),
            (MaybeSent, None, Some(NotRepeatable)),
            (Server, None, Some(NotRepeatable)),
            (Throttled, None, None),
            (Busy, None, Some(NotRepeatable)),
            (Permanent, Some(Same), Some(Same)),
        ];
        for (class, keyed, unkeyed) in table {
            for (repeatable, expected) in [(true, keyed), (false, unkeyed)] {
                let reason = match decided(&Failed { repeatable, ..failed(class) }) {
                    Decision::Wait(_) => None,
                    Decision::GiveUp(reason) => Some(reason),
                };
                assert_eq!(reason, expected, "{class:?}, repeatable: {repeatable}");
            }
        }
    }

    #[test]
    fn every_status_has_its_class() {
        let busy = Some(ErrorCode::IdempotencyInProgress);
        let table: [(&[u16], Option<ErrorCode>, FailureClass); 5] = [
            (&[408, 500, 502, 503, 504], None, FailureClass::Server),
            (&[429], Some(ErrorCode::RateLimitExceeded), FailureClass::Throttled),
            (&[409], busy, FailureClass::Busy),
            (&[409], Some(ErrorCode::IdempotencyConflict), FailureClass::Permanent),
            (
                &[301, 307, 400, 401, 403, 404, 405, 410, 413, 415, 501, 505],
                busy,
                FailureClass::Permanent,
            ),
        ];
        for (statuses, code, class) in table {
            for status in statuses {
                let status = StatusCode::from_u16(*status).unwrap();
                assert_eq!(FailureClass::of_status(status, code), class, "{status}");
            }
        }
    }

    #[test]
    fn every_phase_has_its_class() {
        let table = [
            (Phase::NotSent, FailureClass::NotSent),
            (Phase::Untrusted, FailureClass::Permanent),
            (Phase::Stale, FailureClass::Stale),
            (Phase::MaybeSent, FailureClass::MaybeSent),
            (Phase::Timeout, FailureClass::MaybeSent),
        ];
        for (phase, class) in table {
            assert_eq!(FailureClass::of_phase(phase), class);
        }
    }

    #[test]
    fn backoff_doubles_up_to_five_seconds_and_is_longer_when_throttled() {
        let table = [
            (FailureClass::Server, 1, 100),
            (FailureClass::Server, 3, 400),
            (FailureClass::Server, 7, 5000),
            (FailureClass::Server, 4_000_000_000, 5000),
            (FailureClass::NotSent, 2, 200),
            (FailureClass::Throttled, 1, 500),
            (FailureClass::Throttled, 2, 1000),
        ];
        for (class, number, most) in table {
            let failed = Failed { number, ..failed(class) };
            let mut rng = Rng::with_seed(7);
            let waits: Vec<u128> =
                (0..1000).map(|_| wait(Retry::standard(), &failed, &mut rng).as_millis()).collect();
            let (least, longest) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
            assert!(*longest < most && *longest > most * 9 / 10, "{class:?} {number}: {longest}");
            assert!(*least < most / 10, "{class:?} {number}: {least}");
        }
    }

    #[test]
    fn a_hint_is_the_least_wait_and_spreads_by_a_tenth() {
        let hinted = |ms| Failed {
            hint: Some(Duration::from_millis(ms)),
            ..failed(FailureClass::Throttled)
        };
        for (hint, most) in [(1000, 1100), (10_000, 10_250)] {
            for seed in 0..100 {
                let failed = hinted(hint);
                let wait = wait(Retry::standard(), &failed, &mut Rng::with_seed(seed)).as_millis();
                assert!((u128::from(hint)..=most).contains(&wait), "{hint}: {wait}");
            }
        }
    }

    #[test]
    fn a_stale_connection_is_replaced_at_once_but_only_once_for_nothing() {
        let stale = failed(FailureClass::Stale);
        assert_eq!(decided(&stale), Decision::Wait(Duration::ZERO));
        let again = Failed { stale_before: true, number: 2, ..stale };
        let mut rng = Rng::with_seed(7);
        let longest = (0..1000).map(|_| wait(Retry::standard(), &again, &mut rng)).max();
        assert!(longest > Some(Duration::from_millis(180)), "{longest:?}");
        assert_eq!((stale.cost(), again.cost()), (0, 14));
    }

    #[test]
    fn it_gives_up_in_time() {
        let server = failed(FailureClass::Server);
        let hint = |secs| Some(Duration::from_secs(secs));
        let table = [
            (Failed { number: 4, ..server }, StopReason::Attempts),
            (Failed { hint: hint(31), ..server }, StopReason::RetryAfterTooLong),
            (Failed { hint: Some(Duration::MAX), ..server }, StopReason::RetryAfterTooLong),
            (Failed { hint: hint(20), left: hint(20).unwrap(), ..server }, StopReason::Deadline),
            (Failed { left: Duration::ZERO, ..server }, StopReason::Deadline),
            (Failed { left: Duration::ZERO, ..failed(FailureClass::Stale) }, StopReason::Deadline),
            (Failed { key_left: Some(Duration::ZERO), ..server }, StopReason::KeyExpired),
        ];
        for (failed, reason) in table {
            assert_eq!(decided(&failed), Decision::GiveUp(reason), "{failed:?}");
        }
        let one = decider().decide(Retry::none(), &failed(FailureClass::Server));
        assert_eq!(one, Decision::GiveUp(StopReason::Attempts));
    }

    #[test]
    fn every_class_has_its_price_and_a_spent_budget_ends_retries() {
        use FailureClass::{Busy, MaybeSent, NotSent, Server, Stale, Throttled};
        let (all, throttled) = (500 / 14, 500 / 5);
        let table = [
            (NotSent, all),
            (MaybeSent, all),
            (Server, all),
            (Busy, all),
            (Throttled, throttled),
            (Stale, usize::MAX),
        ];
        for (class, retries) in table {
            let mut decider = decider();
            let failed = failed(class);
            let granted = (0..1000)
                .take_while(|_| decider.decide(Retry::standard(), &failed) != spent())
                .count();
            assert_eq!(granted, retries.min(1000), "{class:?}");
            let free = decider.decide(Retry::standard().unbudgeted(), &failed);
            assert!(matches!(free, Decision::Wait(_)), "{class:?}");
        }
    }

    fn spent() -> Decision {
        Decision::GiveUp(StopReason::Budget)
    }

    #[test]
    fn a_success_gives_back_what_its_last_retry_cost_or_one() {
        let (mut decider, failed) = (decider(), failed(FailureClass::Server));
        while decider.decide(Retry::standard(), &failed) != spent() {}
        decider.succeeded(Some(failed.cost()));
        assert_ne!(decider.decide(Retry::standard(), &failed), spent());
        assert_eq!(decider.decide(Retry::standard(), &failed), spent());
        // 500 is 35 retries and 10 tokens.
        for _ in 0..4 {
            decider.succeeded(None);
        }
        assert_ne!(decider.decide(Retry::standard(), &failed), spent());
    }

    #[test]
    fn every_setting_counts() {
        let (short, long) = (Duration::from_millis(10), Duration::from_millis(20));
        let retry = Retry::standard().attempts(100).backoff(short, long).max_retry_after(short);
        let server = failed(FailureClass::Server);
        for number in 1..100 {
            let failed = Failed { number, ..server };
            let Decision::Wait(wait) = decider().decide(retry, &failed) else { panic!() };
            assert!(wait <= long, "{wait:?}");
        }
        let hinted = Failed { hint: Some(long), ..server };
        let reason = Decision::GiveUp(StopReason::RetryAfterTooLong);
        assert_eq!(decider().decide(retry, &hinted), reason);
        let huge = Retry::standard().backoff(Duration::MAX, Duration::MAX);
        decider().decide(huge.max_retry_after(Duration::MAX), &hinted);
    }
}
