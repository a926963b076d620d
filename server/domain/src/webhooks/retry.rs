//! Decides when a delivery is tried again or given up (docs/api.md, Webhooks).

use std::num::IntErrorKind;

use parcelo_types::Environment;
use sha2::{Digest, Sha256};
use ulid::Ulid;

use crate::Millis;

/// The pause before each attempt, in milliseconds; the first attempt is immediate. The pauses add up to 75 h 35 m 5 s,
/// or more if an endpoint asks for it: a `Retry-After` can extend each pause to up to 24 h.
const PRODUCTION_PAUSES: [i64; 10] = [
    0,
    5 * Millis::SECOND,
    5 * Millis::MINUTE,
    30 * Millis::MINUTE,
    2 * Millis::HOUR,
    5 * Millis::HOUR,
    10 * Millis::HOUR,
    14 * Millis::HOUR,
    20 * Millis::HOUR,
    24 * Millis::HOUR,
];
const SANDBOX_PAUSES: [i64; 3] = [0, 5 * Millis::SECOND, Millis::MINUTE];

/// Maximum pause that an endpoint can ask for, in milliseconds.
const MAX_RETRY_AFTER_MILLIS: i64 = 24 * Millis::HOUR;

/// Number of failed attempts after which an event no longer blocks later ones of its parcel.
pub const UNBLOCKED_AFTER_FAILURES: u32 = 3;

const GONE: u16 = 410;
/// Statuses whose `Retry-After` is honoured: too many requests, and unavailable.
const RETRY_AFTER_STATUSES: [u16; 2] = [429, 503];

/// An attempt to deliver an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryAttempt {
    /// The environment in which the event happened.
    pub environment: Environment,
    /// The event.
    pub event: Ulid,
    /// The number of the attempt: 1 for the first.
    pub number: u32,
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptResult {
    /// The end of the attempt.
    pub at: Millis,
    /// The duration in milliseconds.
    pub millis: i64,
    /// The endpoint's response.
    pub response: Result<EndpointResponse, DeliveryError>,
}

/// An endpoint's response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointResponse {
    /// The HTTP status.
    pub status: u16,
    /// The text of `Retry-After`.
    pub retry_after: Option<String>,
    /// The first bytes of the body.
    pub body_prefix: Vec<u8>,
}

/// A reason why there is no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// The address is one that webhooks are not sent to.
    #[error("the address is not allowed: webhooks go to public addresses, in production by https")]
    NotAllowed,
    /// No connection could be made.
    #[error("no connection to the endpoint: check its name, port and certificate")]
    NotConnected,
    /// Its certificate is not trusted.
    #[error(
        "the endpoint's certificate is not trusted: it is self-signed, has expired, is for another name, or lacks a part of \
         its chain"
    )]
    Untrusted,
    /// It took too long.
    #[error("the endpoint did not answer within 15 s")]
    TimedOut,
    /// The connection broke.
    #[error("the connection broke before the answer")]
    Broken,
    /// It was not sent, because its content cannot be read.
    #[error("the event cannot be read from the database, and was not sent")]
    Unreadable,
}

/// The decision on a delivery after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    /// The delivery succeeded.
    Delivered,
    /// The delivery is tried again.
    Retry {
        /// The time of the next attempt.
        at: Millis,
    },
    /// Its attempts are used up.
    GivenUp,
    /// The endpoint is gone permanently.
    Gone,
    /// Its content cannot be read, which is not the endpoint's fault.
    Unreadable,
}

/// Decides on a delivery after an attempt.
pub fn decide_retry(attempt: DeliveryAttempt, outcome: &AttemptResult) -> RetryDecision {
    match &outcome.response {
        Ok(response) if (200..300).contains(&response.status) => return RetryDecision::Delivered,
        Ok(response) if response.status == GONE => return RetryDecision::Gone,
        // Another attempt would find the same row.
        Err(DeliveryError::Unreadable) => return RetryDecision::Unreadable,
        Ok(_) | Err(_) => {}
    }
    let attempts_made = usize::try_from(attempt.number).unwrap_or(usize::MAX);
    match pauses(attempt.environment).get(attempts_made) {
        Some(pause) => {
            let pause = with_jitter(*pause, attempt).max(requested_pause(outcome));
            RetryDecision::Retry { at: outcome.at.plus(pause) }
        }
        None => RetryDecision::GivenUp,
    }
}

const fn pauses(environment: Environment) -> &'static [i64] {
    match environment {
        Environment::Production => &PRODUCTION_PAUSES,
        Environment::Sandbox => &SANDBOX_PAUSES,
    }
}

/// Makes a pause up to a tenth shorter or longer, so that deliveries that failed together are not retried
/// together. The jitter derives from the event's id, so it does not depend on the order of deliveries.
fn with_jitter(pause: i64, attempt: DeliveryAttempt) -> i64 {
    let mut hash = Sha256::new();
    hash.update(attempt.event.to_bytes());
    hash.update(attempt.number.to_be_bytes());
    let [high, low, ..] = <[u8; 32]>::from(hash.finalize());
    let random = i64::from(u16::from_be_bytes([high, low]));
    let spread = pause / 5 * random / i64::from(u16::MAX);
    pause - pause / 10 + spread
}

/// Returns the pause that the endpoint asked for, in seconds or as a date.
fn requested_pause(outcome: &AttemptResult) -> i64 {
    let Ok(response) = &outcome.response else { return 0 };
    let Some(text) =
        response.retry_after.as_deref().filter(|_| RETRY_AFTER_STATUSES.contains(&response.status))
    else {
        return 0;
    };
    let text = text.trim();
    let pause = match text.parse::<u32>() {
        Ok(seconds) => i64::from(seconds) * Millis::SECOND,
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => MAX_RETRY_AFTER_MILLIS,
        Err(_) => match httpdate::parse_http_date(text) {
            Ok(date) => Millis::from(chrono::DateTime::from(date)).0 - outcome.at.0,
            Err(_) => 0,
        },
    };
    pause.clamp(0, MAX_RETRY_AFTER_MILLIS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Millis = Millis(1_768_057_500_000);

    fn attempt(environment: Environment, number: u32) -> DeliveryAttempt {
        DeliveryAttempt { environment, event: Ulid::from(u128::from(number) << 64), number }
    }

    fn outcome(status: u16, retry_after: Option<&str>) -> AttemptResult {
        let retry_after = retry_after.map(str::to_owned);
        AttemptResult {
            at: AT,
            millis: 1,
            response: Ok(EndpointResponse { status, retry_after, body_prefix: vec![] }),
        }
    }

    fn pause(decision: RetryDecision) -> Option<i64> {
        match decision {
            RetryDecision::Retry { at } => Some(at.0 - AT.0),
            RetryDecision::Delivered
            | RetryDecision::GivenUp
            | RetryDecision::Gone
            | RetryDecision::Unreadable => None,
        }
    }

    #[test]
    fn production_tries_for_75_hours_35_minutes_and_5_seconds() {
        assert_eq!(
            PRODUCTION_PAUSES.iter().sum::<i64>(),
            (75 * 3_600 + 35 * 60 + 5) * Millis::SECOND
        );
        assert_eq!(SANDBOX_PAUSES.iter().sum::<i64>(), 65 * Millis::SECOND);
        assert_eq!(pauses(Environment::Production).len(), 10);
        assert_eq!(pauses(Environment::Sandbox).len(), 3);
    }

    #[test]
    fn each_pause_is_within_a_tenth_of_the_table() {
        for environment in Environment::ALL {
            let table = pauses(environment);
            for (made, pause_before_next) in table.iter().enumerate().skip(1) {
                let number = u32::try_from(made).unwrap();
                let decision = decide_retry(attempt(environment, number), &outcome(500, None));
                let off = pause(decision).unwrap() - pause_before_next;
                assert!(
                    off.abs() <= pause_before_next / 10,
                    "{environment} {number}: {off} ms off"
                );
            }
            let last = u32::try_from(table.len()).unwrap();
            let decision = decide_retry(attempt(environment, last), &outcome(500, None));
            assert_eq!(decision, RetryDecision::GivenUp, "{environment}");
        }
    }

    #[test]
    fn jitter_spreads_over_a_fifth_and_depends_on_the_event() {
        let off = |event: u128| {
            let attempt =
                DeliveryAttempt { event: Ulid::from(event), ..attempt(Environment::Production, 3) };
            with_jitter(1_000, attempt) - 1_000
        };
        let all: Vec<_> = (0..1_000).map(off).collect();
        assert!(all.iter().all(|off| off.abs() <= 100));
        assert!(all.iter().min() < Some(&-95) && all.iter().max() > Some(&95));
        assert_eq!(off(7), off(7));
    }

    #[test]
    fn statuses_are_delivered_retried_or_gone() {
        let table = [
            (200, RetryDecision::Delivered),
            (204, RetryDecision::Delivered),
            (299, RetryDecision::Delivered),
            (410, RetryDecision::Gone),
        ];
        for (status, decision) in table {
            let first = attempt(Environment::Sandbox, 1);
            assert_eq!(decide_retry(first, &outcome(status, None)), decision, "{status}");
        }
        for status in [199, 300, 301, 308, 400, 404, 429, 500, 503] {
            let first = attempt(Environment::Sandbox, 1);
            assert!(pause(decide_retry(first, &outcome(status, None))).is_some(), "{status}");
        }
        for error in [DeliveryError::TimedOut, DeliveryError::NotAllowed] {
            let outcome = AttemptResult { at: AT, millis: 1, response: Err(error) };
            assert!(pause(decide_retry(attempt(Environment::Sandbox, 1), &outcome)).is_some());
            assert_eq!(
                decide_retry(attempt(Environment::Sandbox, 3), &outcome),
                RetryDecision::GivenUp
            );
        }
        let unreadable =
            AttemptResult { at: AT, millis: 0, response: Err(DeliveryError::Unreadable) };
        assert_eq!(
            decide_retry(attempt(Environment::Sandbox, 1), &unreadable),
            RetryDecision::Unreadable
        );
    }

    #[test]
    fn retry_after_can_only_lengthen_a_pause() {
        let first = attempt(Environment::Production, 1);
        let own = pause(decide_retry(first, &outcome(503, None))).unwrap();
        let table = [
            (503, "120", 120_000),
            (429, " 120 ", 120_000),
            (503, "Sat, 10 Jan 2026 15:06:00 GMT", 60_000),
            (503, "4294967295", MAX_RETRY_AFTER_MILLIS),
            (503, "4294967296", MAX_RETRY_AFTER_MILLIS),
            (429, "99999999999999999999999", MAX_RETRY_AFTER_MILLIS),
            (503, "", own),
            (503, "1", own),
            (503, "-1", own),
            (503, "Sat, 10 Jan 1970 15:06:00 GMT", own),
            (503, "soon", own),
            (500, "120", own),
        ];
        for (status, text, expected) in table {
            let decision = decide_retry(first, &outcome(status, Some(text)));
            assert_eq!(pause(decision), Some(expected), "{status} {text}");
        }
    }
}
