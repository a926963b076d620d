//! When a delivery is tried again, and when it is given up (docs/api.md, Webhooks).

use std::num::IntErrorKind;

use parcelo::Environment;
use sha2::{Digest, Sha256};
use ulid::Ulid;

use crate::clock::Millis;

/// The pause before each attempt; the first is made at once. 75 h 35 m 5 s in all.
const PRODUCTION: [i64; 10] = [
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
const SANDBOX: [i64; 3] = [0, 5 * Millis::SECOND, Millis::MINUTE];

/// The longest pause that an endpoint can ask for.
const LONGEST: i64 = 24 * Millis::HOUR;

/// From this failed attempt on, an event holds up no later one of its parcel.
pub const RELEASED_AFTER: u32 = 3;

const GONE: u16 = 410;
/// Too many requests, and unavailable: the two answers whose `Retry-After` is honoured.
const LATER: [u16; 2] = [429, 503];

/// An attempt at a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// Where the event happened.
    pub environment: Environment,
    /// The event.
    pub event: Ulid,
    /// 1 for the first.
    pub number: u32,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// When it was over.
    pub at: Millis,
    /// How many milliseconds it took.
    pub millis: i64,
    /// What the endpoint said.
    pub said: Result<Said, Undelivered>,
}

/// An endpoint's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The HTTP status.
    pub status: u16,
    /// `Retry-After`, as it came.
    pub retry_after: Option<String>,
    /// The beginning of the body.
    pub beginning: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Undelivered {
    /// The address is one that webhooks are not sent to.
    #[error("the address is not allowed: webhooks go to public addresses, in production by https")]
    NotAllowed,
    /// No connection came about.
    #[error("no connection to the endpoint: check its name, port and certificate")]
    NotConnected,
    /// It took too long.
    #[error("the endpoint did not answer within 15 s")]
    TimedOut,
    /// The connection broke.
    #[error("the connection broke before the answer")]
    Broken,
    /// It was not sent: what it tells cannot be read.
    #[error("the event cannot be read from the database, and was not sent")]
    Unreadable,
}

/// What becomes of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is done.
    Delivered,
    /// It is tried again.
    Again {
        /// When.
        at: Millis,
    },
    /// Its attempts are used up.
    GivenUp,
    /// The endpoint says that it is gone for good.
    Gone,
    /// It cannot be sent, which is not the endpoint's fault.
    Unreadable,
}

/// How often a delivery is tried.
pub const fn attempts(environment: Environment) -> usize {
    pauses(environment).len()
}

/// What becomes of a delivery after an attempt.
pub fn judge(attempt: Attempt, outcome: &Outcome) -> Verdict {
    match &outcome.said {
        Ok(said) if (200..300).contains(&said.status) => return Verdict::Delivered,
        Ok(said) if said.status == GONE => return Verdict::Gone,
        // Another attempt would find the same row.
        Err(Undelivered::Unreadable) => return Verdict::Unreadable,
        Ok(_) | Err(_) => {}
    }
    let made = usize::try_from(attempt.number).unwrap_or(usize::MAX);
    match pauses(attempt.environment).get(made) {
        Some(pause) => {
            let pause = jittered(*pause, attempt).max(asked_for(outcome));
            Verdict::Again { at: outcome.at.plus(pause) }
        }
        None => Verdict::GivenUp,
    }
}

const fn pauses(environment: Environment) -> &'static [i64] {
    match environment {
        Environment::Production => &PRODUCTION,
        Environment::Sandbox => &SANDBOX,
    }
}

/// At most a tenth shorter or longer, so that what failed together does not come back together.
/// It follows from the event's id, so it does not depend on which delivery is made first.
fn jittered(pause: i64, attempt: Attempt) -> i64 {
    let mut hash = Sha256::new();
    hash.update(attempt.event.to_bytes());
    hash.update(attempt.number.to_be_bytes());
    let [high, low, ..] = <[u8; 32]>::from(hash.finalize());
    let random = i64::from(u16::from_be_bytes([high, low]));
    let spread = pause / 5 * random / i64::from(u16::MAX);
    pause - pause / 10 + spread
}

/// The pause that the endpoint asked for, in seconds or as a date.
fn asked_for(outcome: &Outcome) -> i64 {
    let Ok(said) = &outcome.said else { return 0 };
    let Some(text) = said.retry_after.as_deref().filter(|_| LATER.contains(&said.status)) else {
        return 0;
    };
    let text = text.trim();
    let pause = match text.parse::<u32>() {
        Ok(seconds) => i64::from(seconds) * Millis::SECOND,
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => LONGEST,
        Err(_) => match httpdate::parse_http_date(text) {
            Ok(date) => Millis::from(chrono::DateTime::from(date)).0 - outcome.at.0,
            Err(_) => 0,
        },
    };
    pause.clamp(0, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Millis = Millis(1_768_057_500_000);

    fn attempt(environment: Environment, number: u32) -> Attempt {
        Attempt { environment, event: Ulid::from(u128::from(number) << 64), number }
    }

    fn outcome(status: u16, retry_after: Option<&str>) -> Outcome {
        let retry_after = retry_after.map(str::to_owned);
        Outcome { at: AT, millis: 1, said: Ok(Said { status, retry_after, beginning: vec![] }) }
    }

    fn pause(verdict: Verdict) -> Option<i64> {
        match verdict {
            Verdict::Again { at } => Some(at.0 - AT.0),
            Verdict::Delivered | Verdict::GivenUp | Verdict::Gone | Verdict::Unreadable => None,
        }
    }

    #[test]
    fn production_tries_for_75_hours_35_minutes_and_5_seconds() {
        assert_eq!(PRODUCTION.iter().sum::<i64>(), (75 * 3_600 + 35 * 60 + 5) * Millis::SECOND);
        assert_eq!(SANDBOX.iter().sum::<i64>(), 65 * Millis::SECOND);
        assert_eq!(attempts(Environment::Production), 10);
        assert_eq!(attempts(Environment::Sandbox), 3);
    }

    #[test]
    fn each_pause_is_the_tables_within_a_tenth() {
        for environment in Environment::ALL {
            let table = pauses(environment);
            for (made, pause_before_next) in table.iter().enumerate().skip(1) {
                let number = u32::try_from(made).unwrap();
                let verdict = judge(attempt(environment, number), &outcome(500, None));
                let off = pause(verdict).unwrap() - pause_before_next;
                assert!(
                    off.abs() <= pause_before_next / 10,
                    "{environment} {number}: {off} ms off"
                );
            }
            let last = u32::try_from(table.len()).unwrap();
            let verdict = judge(attempt(environment, last), &outcome(500, None));
            assert_eq!(verdict, Verdict::GivenUp, "{environment}");
        }
    }

    #[test]
    fn jitter_spreads_over_the_whole_fifth_and_is_the_events_own() {
        let off = |event: u128| {
            let attempt =
                Attempt { event: Ulid::from(event), ..attempt(Environment::Production, 3) };
            jittered(1_000, attempt) - 1_000
        };
        let all: Vec<_> = (0..1_000).map(off).collect();
        assert!(all.iter().all(|off| off.abs() <= 100));
        assert!(all.iter().min() < Some(&-95) && all.iter().max() > Some(&95));
        assert_eq!(off(7), off(7));
    }

    #[test]
    fn an_answer_is_a_delivery_a_failure_or_the_end() {
        let table = [
            (200, Verdict::Delivered),
            (204, Verdict::Delivered),
            (299, Verdict::Delivered),
            (410, Verdict::Gone),
        ];
        for (status, verdict) in table {
            let first = attempt(Environment::Sandbox, 1);
            assert_eq!(judge(first, &outcome(status, None)), verdict, "{status}");
        }
        for status in [199, 300, 301, 308, 400, 404, 429, 500, 503] {
            let first = attempt(Environment::Sandbox, 1);
            assert!(pause(judge(first, &outcome(status, None))).is_some(), "{status}");
        }
        for error in [Undelivered::TimedOut, Undelivered::NotAllowed] {
            let outcome = Outcome { at: AT, millis: 1, said: Err(error) };
            assert!(pause(judge(attempt(Environment::Sandbox, 1), &outcome)).is_some());
            assert_eq!(judge(attempt(Environment::Sandbox, 3), &outcome), Verdict::GivenUp);
        }
        let unreadable = Outcome { at: AT, millis: 0, said: Err(Undelivered::Unreadable) };
        assert_eq!(judge(attempt(Environment::Sandbox, 1), &unreadable), Verdict::Unreadable);
    }

    #[test]
    fn retry_after_makes_a_pause_longer_never_shorter() {
        let first = attempt(Environment::Production, 1);
        let own = pause(judge(first, &outcome(503, None))).unwrap();
        let table = [
            (503, "120", 120_000),
            (429, " 120 ", 120_000),
            (503, "Sat, 10 Jan 2026 15:06:00 GMT", 60_000),
            (503, "4294967295", LONGEST),
            (503, "4294967296", LONGEST),
            (429, "99999999999999999999999", LONGEST),
            (503, "", own),
            (503, "1", own),
            (503, "-1", own),
            (503, "Sat, 10 Jan 1970 15:06:00 GMT", own),
            (503, "soon", own),
            (500, "120", own),
        ];
        for (status, text, expected) in table {
            let verdict = judge(first, &outcome(status, Some(text)));
            assert_eq!(pause(verdict), Some(expected), "{status} {text}");
        }
    }
}
