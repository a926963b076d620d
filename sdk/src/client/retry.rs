//! The decision whether a failed attempt is made again, and when. [`execute`](super::execute) waits.

use std::time::Duration;

use fastrand::Rng;
use http::StatusCode;
use parcelo_types::ErrorCode;
use tokio::time::Instant;

use super::{
    Phase, Retry, StopReason,
    retry_budget::{RETRY_COST_TOKENS, RetryBudget},
};

/// A 429 without `Retry-After` is waited for 5 times as long: the window that is full lasts a second, so 100 ms
/// later it would mostly still be full.
const THROTTLED_BACKOFF_FACTOR: u32 = 5;
/// Maximum jitter, which is a random tenth of `Retry-After`. Clients that were given the same time must not come back
/// together; a quarter of a second spreads them well enough, and more would only be slow.
const MAX_RETRY_AFTER_JITTER: Duration = Duration::from_millis(250);
/// Maximum number of connections that are kept open while they are idle. A service that restarts closes all of them at
/// the same moment, and each takes a call with it. So a call's first retry after that needs no tokens if there are none
/// left, as often as connections can have been idle: in an outage that is at most 5 % more load, with the budget.
pub(super) const MAX_IDLE_CONNECTIONS: usize = 64;
/// After a 429 the service is up, and it said how long to wait, so such a retry is more likely to succeed.
const THROTTLED_RETRY_COST_TOKENS: u32 = 5;
/// Tokens that a call which succeeds without a retry gives back.
const SUCCESS_REFUND_TOKENS: u32 = 1;
/// Waits are capped before the random factor is applied, which keeps the product in range.
const MAX_WAIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The class of a failed attempt, which decides about the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureClass {
    /// Nothing was sent: the address could not be resolved or connected to. Always tried again.
    NotSent,
    /// The connection was closed without a byte of a response, as happens to an idle one in the pool. If repeating the
    /// request changes nothing, tried again without a wait the first time; after that like `MaybeSent`.
    Stale,
    /// No whole response arrived. Tried again if repeating the request changes nothing.
    MaybeSent,
    /// The service, or a proxy in front of it, failed (408, 425, and 5xx except 501, 505 and 511). As `MaybeSent`.
    Server,
    /// Too many requests (429). Always tried again.
    Throttled,
    /// The same write is in progress (409 `IDEMPOTENCY_IN_PROGRESS`). As `MaybeSent`.
    Busy,
    /// The same request would get the same response. Never tried again.
    Permanent,
    /// The attempt was not made: the client's own rate limiter, the call's time or the key's age did not allow it, or the
    /// API key could not be read.
    /// Nothing was sent, and the call ends.
    NotAdmitted,
}

impl FailureClass {
    pub(super) fn from_phase(phase: Phase) -> Self {
        match phase {
            Phase::NotSent => Self::NotSent,
            Phase::Refused | Phase::Untrusted | Phase::NotHttp | Phase::Redirected => {
                Self::Permanent
            }
            Phase::Stale => Self::Stale,
            Phase::MaybeSent | Phase::Timeout => Self::MaybeSent,
        }
    }

    pub(super) fn from_status(status: StatusCode, code: Option<ErrorCode>) -> Self {
        match status {
            StatusCode::TOO_MANY_REQUESTS => Self::Throttled,
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY => Self::Server,
            StatusCode::CONFLICT if code == Some(ErrorCode::IdempotencyInProgress) => Self::Busy,
            // These statuses are about the request, or about a network that requires its user to log in.
            StatusCode::NOT_IMPLEMENTED
            | StatusCode::HTTP_VERSION_NOT_SUPPORTED
            | StatusCode::NETWORK_AUTHENTICATION_REQUIRED => Self::Permanent,
            // Proxies have additional statuses, such as 520 to 530 and 561.
            status if status.is_server_error() => Self::Server,
            _ => Self::Permanent,
        }
    }
}

/// An attempt that failed.
#[derive(Debug, Clone, Copy)]
pub(super) struct FailedAttempt {
    /// 1 for the first attempt.
    pub(super) number: u32,
    pub(super) class: FailureClass,
    /// Set if sending the request twice has the effect of sending it once.
    pub(super) is_repeatable: bool,
    /// An earlier attempt of the same call met a stale connection.
    pub(super) was_stale: bool,
    /// The wait that the service asks for.
    pub(super) retry_after: Option<Duration>,
    pub(super) now: Instant,
    /// The time left until the call's deadline.
    pub(super) time_left: Duration,
    /// The time left until the service forgets the idempotency key.
    pub(super) key_time_left: Option<Duration>,
}

impl FailedAttempt {
    /// Returns `true` for the one retry without a wait. A dead connection in the pool says nothing about the service.
    /// It costs tokens nevertheless, which a success gives back: a service that closes every new connection looks the
    /// same.
    fn is_immediate(&self) -> bool {
        self.class == FailureClass::Stale && !self.was_stale
    }

    /// Returns the tokens that the next attempt costs.
    pub(super) fn cost(&self) -> u32 {
        match self.class {
            FailureClass::Throttled => THROTTLED_RETRY_COST_TOKENS,
            FailureClass::NotSent
            | FailureClass::Stale
            | FailureClass::MaybeSent
            | FailureClass::Server
            | FailureClass::Busy
            | FailureClass::Permanent
            | FailureClass::NotAdmitted => RETRY_COST_TOKENS,
        }
    }
}

/// The decision after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    Wait(Duration),
    GiveUp(StopReason),
}

/// The retry policy of all clients that share a transport.
#[derive(Debug, Default)]
pub(super) struct RetryPolicy {
    rng: Rng,
    /// The number of idle connections that there may be: a call that succeeds leaves one.
    idle_connections: usize,
}

impl RetryPolicy {
    /// Decides whether a retry is safe, can help and would be in time, and when it would be made.
    pub(super) fn plan(&mut self, retry: &Retry, failed: &FailedAttempt) -> Decision {
        if let Some(reason) = stop_reason(retry, failed) {
            return Decision::GiveUp(reason);
        }
        let wait = wait(retry, failed, &mut self.rng);
        if wait >= failed.time_left {
            Decision::GiveUp(StopReason::Deadline)
        } else if failed.key_time_left.is_some_and(|left| wait >= left) {
            Decision::GiveUp(StopReason::KeyExpired)
        } else {
            Decision::Wait(wait)
        }
    }

    /// Returns `true` if a planned retry can be paid for.
    pub(super) fn pay(
        &mut self,
        retry: &Retry,
        failed: &FailedAttempt,
        budget: &mut RetryBudget,
    ) -> bool {
        !retry.budgeted
            || budget.spend(failed.cost(), failed.now)
            || self.replaces_idle_connection(failed)
    }

    /// Returns `true` if the connection that failed may have been an idle one.
    fn replaces_idle_connection(&mut self, failed: &FailedAttempt) -> bool {
        let can = failed.is_immediate() && self.idle_connections > 0;
        self.idle_connections -= usize::from(can);
        can
    }

    /// Refunds the cost of the last retry after a success. If all retries were refunded, a service that responds to every
    /// third attempt would never use up the budget.
    pub(super) fn record_success(
        &mut self,
        last_retry_cost: Option<u32>,
        budget: &mut RetryBudget,
    ) {
        budget.refund(last_retry_cost.unwrap_or(SUCCESS_REFUND_TOKENS));
        // A success after a retry gives nothing back, because a service that closes every other connection must use up
        // the budget.
        if last_retry_cost.is_none() {
            self.idle_connections = MAX_IDLE_CONNECTIONS.min(self.idle_connections + 1);
        }
    }

    pub(super) fn random(&mut self) -> u64 {
        self.rng.u64(..)
    }
}

fn stop_reason(retry: &Retry, failed: &FailedAttempt) -> Option<StopReason> {
    let is_safe = match failed.class {
        FailureClass::Permanent | FailureClass::NotAdmitted => {
            return Some(StopReason::Permanent);
        }
        FailureClass::NotSent | FailureClass::Throttled => true,
        FailureClass::Stale
        | FailureClass::MaybeSent
        | FailureClass::Server
        | FailureClass::Busy => failed.is_repeatable,
    };
    if !is_safe {
        Some(StopReason::NotRepeatable)
    } else if failed.number >= retry.attempts {
        Some(StopReason::Attempts)
    } else if failed.retry_after.is_some_and(|asked| asked > retry.max_retry_after) {
        Some(StopReason::RetryAfterTooLong)
    } else {
        None
    }
}

/// Returns the wait with full jitter, as in "Exponential Backoff And Jitter" of the AWS Architecture Blog: a random
/// time below a bound that doubles. It is at least as long as the service asks.
fn wait(retry: &Retry, failed: &FailedAttempt, rng: &mut Rng) -> Duration {
    if failed.is_immediate() {
        return Duration::ZERO;
    }
    let is_throttled = failed.class == FailureClass::Throttled && failed.retry_after.is_none();
    let factor = if is_throttled { THROTTLED_BACKOFF_FACTOR } else { 1 };
    let first = retry.first_backoff.saturating_mul(factor);
    let doubled = 2_u32.saturating_pow(failed.number.saturating_sub(1));
    let backoff = random_below(first.saturating_mul(doubled).min(retry.max_backoff), rng);
    match failed.retry_after {
        Some(asked) => {
            let jitter = random_below((asked / 10).min(MAX_RETRY_AFTER_JITTER), rng);
            asked.max(backoff).saturating_add(jitter)
        }
        None => backoff,
    }
}

fn random_below(bound: Duration, rng: &mut Rng) -> Duration {
    bound.min(MAX_WAIT).mul_f64(rng.f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::retry_budget::BudgetSize;

    const MINUTE: Duration = Duration::from_secs(60);

    #[expect(clippy::disallowed_methods, reason = "a moment to count from; any will do")]
    fn failed(class: FailureClass) -> FailedAttempt {
        FailedAttempt {
            number: 1,
            class,
            is_repeatable: true,
            was_stale: false,
            retry_after: None,
            now: Instant::now(),
            time_left: MINUTE,
            key_time_left: None,
        }
    }

    /// A policy and a budget, as a client has them.
    struct Fixture {
        policy: RetryPolicy,
        budget: RetryBudget,
    }

    impl Fixture {
        fn decide(&mut self, retry: &Retry, failed: &FailedAttempt) -> Decision {
            match self.policy.plan(retry, failed) {
                Decision::Wait(_) if !self.policy.pay(retry, failed, &mut self.budget) => spent(),
                decision => decision,
            }
        }

        fn record_success(&mut self, last_retry_cost: Option<u32>) {
            self.policy.record_success(last_retry_cost, &mut self.budget);
        }
    }

    fn policy() -> Fixture {
        let policy = RetryPolicy { rng: Rng::with_seed(7), ..RetryPolicy::default() };
        Fixture { policy, budget: RetryBudget::new(&BudgetSize::default()) }
    }

    fn decide(failed: &FailedAttempt) -> Decision {
        policy().decide(&Retry::standard(), failed)
    }

    #[test]
    fn every_failure_is_retried_only_when_that_is_safe() {
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
            for (is_repeatable, expected) in [(true, keyed), (false, unkeyed)] {
                let reason = match decide(&FailedAttempt { is_repeatable, ..failed(class) }) {
                    Decision::Wait(_) => None,
                    Decision::GiveUp(reason) => Some(reason),
                };
                assert_eq!(reason, expected, "{class:?}, repeatable: {is_repeatable}");
            }
        }
    }

    #[test]
    fn every_status_has_its_class() {
        let busy = Some(ErrorCode::IdempotencyInProgress);
        let table: [(&[u16], Option<ErrorCode>, FailureClass); 5] = [
            (&[408, 425, 500, 502, 503, 504, 506, 520, 524, 561, 599], None, FailureClass::Server),
            (&[429], Some(ErrorCode::RateLimitExceeded), FailureClass::Throttled),
            (&[409], busy, FailureClass::Busy),
            (&[409], Some(ErrorCode::IdempotencyConflict), FailureClass::Permanent),
            (
                &[301, 307, 400, 401, 403, 404, 405, 410, 413, 415, 501, 505, 511, 600, 999],
                busy,
                FailureClass::Permanent,
            ),
        ];
        for (statuses, code, class) in table {
            for status in statuses {
                let status = StatusCode::from_u16(*status).unwrap();
                assert_eq!(FailureClass::from_status(status, code), class, "{status}");
            }
        }
    }

    #[test]
    fn every_phase_has_its_class() {
        let table = [
            (Phase::NotSent, FailureClass::NotSent),
            (Phase::Refused, FailureClass::Permanent),
            (Phase::Untrusted, FailureClass::Permanent),
            (Phase::NotHttp, FailureClass::Permanent),
            (Phase::Stale, FailureClass::Stale),
            (Phase::MaybeSent, FailureClass::MaybeSent),
            (Phase::Timeout, FailureClass::MaybeSent),
            (Phase::Redirected, FailureClass::Permanent),
        ];
        for (phase, class) in table {
            assert_eq!(FailureClass::from_phase(phase), class);
        }
    }

    #[test]
    fn backoff_doubles_to_five_seconds_and_is_longer_if_throttled() {
        let table = [
            (FailureClass::Server, 1, 100),
            (FailureClass::Server, 3, 400),
            (FailureClass::Server, 7, 5000),
            (FailureClass::Server, 4_000_000_000, 5000),
            (FailureClass::NotSent, 2, 200),
            (FailureClass::Throttled, 1, 500),
            (FailureClass::Throttled, 2, 1000),
        ];
        for (class, number, max) in table {
            let failed = FailedAttempt { number, ..failed(class) };
            let mut rng = Rng::with_seed(7);
            let waits: Vec<u128> = (0..1000)
                .map(|_| wait(&Retry::standard(), &failed, &mut rng).as_millis())
                .collect();
            let (least, longest) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
            assert!(*longest < max && *longest > max * 9 / 10, "{class:?} {number}: {longest}");
            assert!(*least < max / 10, "{class:?} {number}: {least}");
        }
    }

    #[test]
    fn retry_after_is_a_minimum_wait_with_10_percent_jitter() {
        let asked_to_wait = |ms| FailedAttempt {
            retry_after: Some(Duration::from_millis(ms)),
            ..failed(FailureClass::Throttled)
        };
        for (retry_after, max) in [(1000, 1100), (10_000, 10_250)] {
            for seed in 0..100 {
                let failed = asked_to_wait(retry_after);
                let wait = wait(&Retry::standard(), &failed, &mut Rng::with_seed(seed)).as_millis();
                assert!((u128::from(retry_after)..=max).contains(&wait), "{retry_after}: {wait}");
            }
        }
    }

    #[test]
    fn a_stale_connection_is_replaced_at_once_only_once() {
        let stale = failed(FailureClass::Stale);
        assert_eq!(decide(&stale), Decision::Wait(Duration::ZERO));
        let again = FailedAttempt { was_stale: true, number: 2, ..stale };
        let mut rng = Rng::with_seed(7);
        let longest = (0..1000).map(|_| wait(&Retry::standard(), &again, &mut rng)).max();
        assert!(longest > Some(Duration::from_millis(180)), "{longest:?}");
    }

    #[test]
    fn retries_stop_before_the_deadline() {
        let server = failed(FailureClass::Server);
        let asked = |wait| FailedAttempt { retry_after: Some(wait), ..server };
        let (time_left, stale) = (Duration::from_secs(20), failed(FailureClass::Stale));
        let key_time_left = Some(Duration::ZERO);
        let table = [
            (FailedAttempt { number: 4, ..server }, StopReason::Attempts),
            (asked(Duration::from_secs(31)), StopReason::RetryAfterTooLong),
            (asked(Duration::MAX), StopReason::RetryAfterTooLong),
            (FailedAttempt { time_left, ..asked(time_left) }, StopReason::Deadline),
            (FailedAttempt { time_left: Duration::ZERO, ..server }, StopReason::Deadline),
            (FailedAttempt { time_left: Duration::ZERO, ..stale }, StopReason::Deadline),
            (FailedAttempt { key_time_left, ..server }, StopReason::KeyExpired),
        ];
        for (failed, reason) in table {
            assert_eq!(decide(&failed), Decision::GiveUp(reason), "{failed:?}");
        }
        let one = policy().decide(&Retry::none(), &failed(FailureClass::Server));
        assert_eq!(one, Decision::GiveUp(StopReason::Attempts));
    }

    #[test]
    fn every_class_has_its_cost_and_an_empty_budget_ends_retries() {
        use FailureClass::{Busy, MaybeSent, NotSent, Server, Stale, Throttled};
        let (all, throttled) = (500 / 14, 500 / 5);
        let table = [
            (NotSent, all),
            (MaybeSent, all),
            (Server, all),
            (Busy, all),
            (Throttled, throttled),
            (Stale, all),
        ];
        for (class, retries) in table {
            let mut policy = policy();
            let failed = failed(class);
            assert_eq!(granted(&mut policy, &failed), retries, "{class:?}");
            let free = policy.decide(&Retry::standard().unbudgeted(), &failed);
            assert!(matches!(free, Decision::Wait(_)), "{class:?}");
        }
    }

    #[test]
    fn only_an_idle_connection_is_replaced_once_without_tokens() {
        let (mut policy, stale) = (policy(), failed(FailureClass::Stale));
        for _ in 0..1000 {
            policy.record_success(None);
        }
        policy.record_success(Some(stale.cost()));
        let by_tokens = 500 / 14;
        assert_eq!(granted(&mut policy, &failed(FailureClass::MaybeSent)), by_tokens);
        let again = FailedAttempt { was_stale: true, number: 2, ..stale };
        assert_eq!(granted(&mut policy, &again), 0, "a call has one such retry");
        assert_eq!(granted(&mut policy, &stale), MAX_IDLE_CONNECTIONS);
        assert_eq!(granted(&mut policy, &stale), 0);
    }

    fn spent() -> Decision {
        Decision::GiveUp(StopReason::Budget)
    }

    /// Returns the number of retries until the budget is spent.
    fn granted(policy: &mut Fixture, failed: &FailedAttempt) -> usize {
        let decisions = (0..1000).map(|_| policy.decide(&Retry::standard(), failed));
        decisions.take_while(|decision| *decision != spent()).count()
    }

    #[test]
    fn a_success_refunds_the_cost_of_its_last_retry() {
        let (mut policy, failed) = (policy(), failed(FailureClass::Server));
        while policy.decide(&Retry::standard(), &failed) != spent() {}
        policy.record_success(Some(failed.cost()));
        assert_ne!(policy.decide(&Retry::standard(), &failed), spent());
        assert_eq!(policy.decide(&Retry::standard(), &failed), spent());
        // 500 is 35 retries and 10 tokens.
        for _ in 0..4 {
            policy.record_success(None);
        }
        assert_ne!(policy.decide(&Retry::standard(), &failed), spent());
    }

    #[test]
    fn every_setting_takes_effect() {
        let (short, long) = (Duration::from_millis(10), Duration::from_millis(20));
        let retry = Retry::standard().attempts(100).backoff(short, long).max_retry_after(short);
        let server = failed(FailureClass::Server);
        for number in 1..100 {
            let failed = FailedAttempt { number, ..server };
            let Decision::Wait(wait) = policy().decide(&retry, &failed) else { panic!() };
            assert!(wait <= long, "{wait:?}");
        }
        let asked_to_wait = FailedAttempt { retry_after: Some(long), ..server };
        let reason = Decision::GiveUp(StopReason::RetryAfterTooLong);
        assert_eq!(policy().decide(&retry, &asked_to_wait), reason);
        let huge = Retry::standard().backoff(Duration::MAX, Duration::MAX);
        policy().decide(&huge.max_retry_after(Duration::MAX), &asked_to_wait);
    }
}
