//! Whether a failed attempt is made again, and when. It decides; [`send`](super::send) sleeps.

use std::time::Duration;

use fastrand::Rng;
use http::StatusCode;

use super::Phase;
use crate::ErrorCode;

const BASE: Duration = Duration::from_millis(100);
const THROTTLED_BASE: Duration = Duration::from_millis(500);
const LONGEST_BACKOFF: Duration = Duration::from_secs(5);
const LONGEST_HINT: Duration = Duration::from_secs(30);
const LONGEST_SPREAD: Duration = Duration::from_millis(250);

/// How often a call is tried.
///
/// A call is tried again only when that is safe and can help: it never reached the service, or
/// repeating it changes nothing (a read, or a write with its idempotency key). The client waits
/// before each retry for as long as the service asks, else for a random, growing time.
///
/// ```
/// use parcelo::Retry;
///
/// let (standard, patient) = (Retry::standard(), Retry::standard().attempts(8));
/// assert_eq!(Retry::none(), Retry::standard().attempts(1));
/// # assert_ne!(standard, patient);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    attempts: u32,
}

impl Retry {
    /// Up to 4 attempts.
    pub fn standard() -> Self {
        Self { attempts: 4 }
    }

    /// One attempt.
    pub fn none() -> Self {
        Self { attempts: 1 }
    }

    /// The most attempts of one call; 0 counts as 1.
    #[must_use]
    pub fn attempts(self, attempts: u32) -> Self {
        Self { attempts: attempts.max(1) }
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
    /// The next attempt would begin after the call's time is over.
    Deadline,
    /// The service asked for more patience than the client has (30 s); see
    /// [`Error::retry_after`](crate::Error::retry_after).
    HintTooLong,
}

/// What a failure means for the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    NotSent,
    Stale,
    MaybeSent,
    Server,
    Throttled,
    Busy,
    Permanent,
}

impl Class {
    pub(super) fn of_phase(phase: Phase) -> Self {
        match phase {
            Phase::NotSent => Self::NotSent,
            Phase::Untrusted => Self::Permanent,
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
    pub(super) class: Class,
    /// Whether doing it twice is as good as once.
    pub(super) repeatable: bool,
    /// An earlier attempt of the same call met a stale connection.
    pub(super) stale_before: bool,
    /// How long the service asks to wait.
    pub(super) hint: Option<Duration>,
    /// What is left of the call's time.
    pub(super) left: Duration,
}

/// What to do after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    Wait(Duration),
    GiveUp(StopReason),
}

pub(super) fn decide(retry: Retry, failed: &Failed, rng: &mut Rng) -> Decision {
    if let Some(reason) = obstacle(retry, failed) {
        return Decision::GiveUp(reason);
    }
    let wait = wait(failed, rng);
    if wait < failed.left { Decision::Wait(wait) } else { Decision::GiveUp(StopReason::Deadline) }
}

fn obstacle(retry: Retry, failed: &Failed) -> Option<StopReason> {
    let safe = match failed.class {
        Class::Permanent => return Some(StopReason::Permanent),
        Class::NotSent | Class::Throttled => true,
        Class::Stale | Class::MaybeSent | Class::Server | Class::Busy => failed.repeatable,
    };
    if !safe {
        Some(StopReason::NotRepeatable)
    } else if failed.number >= retry.attempts {
        Some(StopReason::Attempts)
    } else if failed.hint.is_some_and(|hint| hint > LONGEST_HINT) {
        Some(StopReason::HintTooLong)
    } else {
        None
    }
}

fn wait(failed: &Failed, rng: &mut Rng) -> Duration {
    // A pool may hold several dead connections; only the first costs nothing.
    if failed.class == Class::Stale && !failed.stale_before {
        return Duration::ZERO;
    }
    let base = match (failed.class, failed.hint) {
        (Class::Throttled, None) => THROTTLED_BASE,
        _ => BASE,
    };
    let doubled = 2_u32.saturating_pow(failed.number.saturating_sub(1));
    let backoff = up_to(base.saturating_mul(doubled).min(LONGEST_BACKOFF), rng);
    match failed.hint {
        // The spread keeps clients that were given the same hint from coming back together.
        Some(hint) => hint.max(backoff) + up_to((hint / 10).min(LONGEST_SPREAD), rng),
        None => backoff,
    }
}

fn up_to(most: Duration, rng: &mut Rng) -> Duration {
    most.mul_f64(rng.f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn failed(class: Class) -> Failed {
        Failed { number: 1, class, repeatable: true, stale_before: false, hint: None, left: MINUTE }
    }

    fn decided(failed: &Failed) -> Decision {
        decide(Retry::standard(), failed, &mut Rng::with_seed(7))
    }

    /// The longest of a thousand waits, in milliseconds; none when one of them is a giving up.
    fn longest(failed: &Failed) -> Option<u128> {
        let mut rng = Rng::with_seed(7);
        (0..1000)
            .map(|_| match decide(Retry::standard(), failed, &mut rng) {
                Decision::Wait(wait) => Some(wait.as_millis()),
                Decision::GiveUp(_) => None,
            })
            .collect::<Option<Vec<_>>>()
            .and_then(|waits| waits.into_iter().max())
    }

    #[test]
    fn every_signal_is_retried_exactly_when_that_is_safe() {
        use Class::{Busy, MaybeSent, NotSent, Permanent, Server, Stale, Throttled};
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
        let table: [(&[u16], Option<ErrorCode>, Class); 5] = [
            (&[408, 500, 502, 503, 504], None, Class::Server),
            (&[429], Some(ErrorCode::RateLimitExceeded), Class::Throttled),
            (&[409], busy, Class::Busy),
            (&[409], Some(ErrorCode::IdempotencyConflict), Class::Permanent),
            (&[301, 307, 400, 401, 403, 404, 405, 410, 413, 415, 501, 505], busy, Class::Permanent),
        ];
        for (statuses, code, class) in table {
            for status in statuses {
                let status = StatusCode::from_u16(*status).unwrap();
                assert_eq!(Class::of_status(status, code), class, "{status}");
            }
        }
    }

    #[test]
    fn every_phase_has_its_class() {
        let table = [
            (Phase::NotSent, Class::NotSent),
            (Phase::Untrusted, Class::Permanent),
            (Phase::Stale, Class::Stale),
            (Phase::MaybeSent, Class::MaybeSent),
            (Phase::Timeout, Class::MaybeSent),
        ];
        for (phase, class) in table {
            assert_eq!(Class::of_phase(phase), class);
        }
    }

    #[test]
    fn backoff_doubles_up_to_five_seconds_and_is_longer_when_throttled() {
        let table = [
            (Class::Server, 1, 100),
            (Class::Server, 3, 400),
            (Class::Server, 7, 5000),
            (Class::Server, 4_000_000_000, 5000),
            (Class::NotSent, 2, 200),
            (Class::Throttled, 1, 500),
            (Class::Throttled, 2, 1000),
        ];
        for (class, number, most) in table {
            let failed = Failed { number, ..failed(class) };
            let mut rng = Rng::with_seed(7);
            let waits: Vec<u128> = (0..1000).map(|_| wait(&failed, &mut rng).as_millis()).collect();
            let (least, longest) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
            assert!(*longest < most && *longest > most * 9 / 10, "{class:?} {number}: {longest}");
            assert!(*least < most / 10, "{class:?} {number}: {least}");
        }
    }

    #[test]
    fn a_hint_is_the_least_wait_and_spreads_by_a_tenth() {
        let hinted =
            |ms| Failed { hint: Some(Duration::from_millis(ms)), ..failed(Class::Throttled) };
        for (hint, most) in [(1000, 1100), (10_000, 10_250)] {
            for seed in 0..100 {
                let wait = wait(&hinted(hint), &mut Rng::with_seed(seed)).as_millis();
                assert!((u128::from(hint)..=most).contains(&wait), "{hint}: {wait}");
            }
        }
    }

    #[test]
    fn a_stale_connection_is_replaced_at_once_but_only_once_for_nothing() {
        let stale = failed(Class::Stale);
        assert_eq!(decided(&stale), Decision::Wait(Duration::ZERO));
        assert!(longest(&Failed { stale_before: true, number: 2, ..stale }) > Some(180));
    }

    #[test]
    fn it_gives_up_in_time() {
        let server = failed(Class::Server);
        let hint = |secs| Some(Duration::from_secs(secs));
        let table = [
            (Failed { number: 4, ..server }, StopReason::Attempts),
            (Failed { hint: hint(31), ..server }, StopReason::HintTooLong),
            (Failed { hint: Some(Duration::MAX), ..server }, StopReason::HintTooLong),
            (Failed { hint: hint(20), left: hint(20).unwrap(), ..server }, StopReason::Deadline),
            (Failed { left: Duration::ZERO, ..server }, StopReason::Deadline),
            (Failed { left: Duration::ZERO, ..failed(Class::Stale) }, StopReason::Deadline),
        ];
        for (failed, reason) in table {
            assert_eq!(decided(&failed), Decision::GiveUp(reason), "{failed:?}");
        }
        let one = decide(Retry::none(), &failed(Class::Server), &mut Rng::with_seed(7));
        assert_eq!(one, Decision::GiveUp(StopReason::Attempts));
    }
}
