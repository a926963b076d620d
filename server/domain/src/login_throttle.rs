//! Limits attempts to sign in. Failures are counted by account and by client network. After a few free failures, each
//! further failure makes the next attempt wait longer.
//!
//! Strangers cannot lock out an account's owner this way, because clients that are signed in to the account, or whose
//! network has signed in to it before, are counted separately and wait a few seconds at most.

use std::net::IpAddr;

use hashlink::LruCache;

use super::access::client_network;
use crate::Millis;

/// Maximum number of counts, and of known networks, that are remembered. To evict an entry, an attacker has to fail
/// this often under other names, and each failure takes time.
const MAX_COUNTS: usize = 10_000;
/// Time after the last failure at which all failures are forgotten, in milliseconds.
pub const FAILURE_LIFETIME_MILLIS: i64 = Millis::HOUR;
/// Maximum length of an account's name in characters. Longer names are counted under their first characters.
const MAX_NAME_CHARS: usize = 100;

/// The number of free failures, and the pauses after further ones.
struct Pauses {
    /// The number of failures without a pause.
    free: u32,
    /// The pause after the last free failure in milliseconds; each further failure doubles it.
    first: i64,
    /// The longest pause, in milliseconds.
    longest: i64,
}

const NETWORK: Pauses = Pauses { free: 5, first: Millis::MINUTE, longest: 15 * Millis::MINUTE };
// More free failures than for a network, so that typos in an office do not slow down its account elsewhere.
const ACCOUNT: Pauses = Pauses { free: 10, first: Millis::MINUTE, longest: 15 * Millis::MINUTE };
// A neighbour behind the same router must neither lock the owner out nor guess without limit. At one
// attempt in five seconds, a password of twelve characters cannot be guessed in a lifetime.
const KNOWN_NETWORK: Pauses =
    Pauses { free: 5, first: Millis::SECOND, longest: 5 * Millis::SECOND };

/// An attempt to sign in.
#[derive(Debug, Clone, Copy)]
pub struct LoginAttempt<'a> {
    /// The account that is named; it may not exist.
    pub account: &'a str,
    /// The client's address.
    pub client: IpAddr,
    /// `true` if the request has a session of this account.
    pub is_signed_in: bool,
}

/// A key under which failures are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FailureKey {
    /// A network of clients.
    Network(IpAddr),
    /// The name of an account.
    Account(String),
    /// An account, and a network that has signed in to it.
    KnownNetwork(String, IpAddr),
}

/// The number of failed attempts, and the time of the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failures {
    /// The number of failed attempts.
    pub count: u32,
    /// The time of the last one.
    pub last: Millis,
}

/// An admitted attempt, which counts as a failure until it is taken back.
#[derive(Debug)]
#[must_use = "an attempt that did not fail has to be taken back"]
pub struct PendingLogin(pub Vec<FailureKey>);

impl LoginAttempt<'_> {
    /// Returns the key for the account and the network together.
    pub fn known_network_key(self) -> FailureKey {
        let (account, network) = account_and_network(self);
        FailureKey::KnownNetwork(account, network)
    }

    /// Returns the keys under which it is counted. `is_known` means that its network has signed in to its account.
    pub fn failure_keys(self, is_known: bool) -> Vec<FailureKey> {
        if is_known || self.is_signed_in {
            return vec![self.known_network_key()];
        }
        let (account, network) = account_and_network(self);
        vec![FailureKey::Network(network), FailureKey::Account(account)]
    }
}

impl FailureKey {
    /// Returns how many milliseconds the next attempt has to wait after these failures.
    fn wait_millis(&self, failures: Failures, now: Millis) -> i64 {
        let pauses = match self {
            Self::Network(_) => NETWORK,
            Self::Account(_) => ACCOUNT,
            Self::KnownNetwork(..) => KNOWN_NETWORK,
        };
        let passed = now.0 - failures.last.0;
        // A clock that was set back must not lock anyone out.
        if passed < 0 { 0 } else { pauses.pause_after(failures.count) - passed }
    }
}

/// Returns the failures including one more attempt, or how many seconds that attempt has to wait.
pub fn count_attempt(
    previous: &[(&FailureKey, Option<Failures>)],
    now: Millis,
) -> Result<Vec<Failures>, u32> {
    let waits =
        previous.iter().filter_map(|(by, failures)| Some(by.wait_millis((*failures)?, now)));
    let wait = waits.max().unwrap_or(0);
    if wait > 0 {
        let seconds = (wait + Millis::SECOND - 1) / Millis::SECOND;
        return Err(u32::try_from(seconds).unwrap_or(u32::MAX));
    }
    let counted = previous.iter().map(|(_, failures)| {
        let before = failures.filter(|failures| !failures.are_expired(now));
        let count = before.map_or(0, |failures| failures.count).saturating_add(1);
        Failures { count, last: now }
    });
    Ok(counted.collect())
}

/// The failures and the known networks of a single server. Several servers keep them in their database.
#[derive(Debug)]
pub struct LoginThrottle {
    failures: LruCache<FailureKey, Failures>,
    known_networks: LruCache<(String, IpAddr), ()>,
}

impl Default for LoginThrottle {
    fn default() -> Self {
        Self { failures: LruCache::new(MAX_COUNTS), known_networks: LruCache::new(MAX_COUNTS) }
    }
}

impl LoginThrottle {
    /// Admits an attempt, or returns how many seconds it has to wait. It counts as a failure at once, so that
    /// concurrent attempts get no further than sequential attempts.
    pub fn begin(&mut self, attempt: LoginAttempt<'_>, now: Millis) -> Result<PendingLogin, u32> {
        // `get` marks it as recently used.
        let is_known = self.known_networks.get(&account_and_network(attempt)).is_some();
        let counted = attempt.failure_keys(is_known);
        let previous: Vec<_> =
            counted.iter().map(|by| (by, self.failures.peek(by).copied())).collect();
        let failures = count_attempt(&previous, now)?;
        for (by, failures) in counted.iter().zip(failures) {
            self.failures.insert(by.clone(), failures);
        }
        Ok(PendingLogin(counted))
    }

    /// Takes back the failure of an attempt that succeeded, or whose outcome is unknown.
    pub fn take_back(&mut self, PendingLogin(counted): PendingLogin) {
        for by in counted {
            if let Some(failures) = self.failures.get_mut(&by) {
                failures.count = failures.count.saturating_sub(1);
            }
        }
    }

    /// Remembers the network of a successful sign-in, whose further attempts are counted separately.
    pub fn record_sign_in(&mut self, attempt: LoginAttempt<'_>) {
        self.known_networks.insert(account_and_network(attempt), ());
    }
}

impl Pauses {
    fn pause_after(&self, failures: u32) -> i64 {
        let Some(further) = failures.checked_sub(self.free) else { return 0 };
        let doubled = 1_i64.checked_shl(further).filter(|factor| *factor > 0);
        doubled.map_or(self.longest, |factor| self.first.saturating_mul(factor)).min(self.longest)
    }
}

impl Failures {
    fn are_expired(&self, now: Millis) -> bool {
        now.0 - self.last.0 >= FAILURE_LIFETIME_MILLIS
    }
}

fn account_and_network(attempt: LoginAttempt<'_>) -> (String, IpAddr) {
    (attempt.account.chars().take(MAX_NAME_CHARS).collect(), client_network(attempt.client))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from<'a>(account: &'a str, client: &str) -> LoginAttempt<'a> {
        LoginAttempt { account, client: client.parse().unwrap(), is_signed_in: false }
    }

    /// Fails, or returns how many seconds to wait.
    fn fail(throttle: &mut LoginThrottle, attempt: LoginAttempt<'_>, now: i64) -> u32 {
        throttle.begin(attempt, Millis(now * 1_000)).err().unwrap_or(0)
    }

    #[test]
    fn each_failure_of_a_network_after_the_fifth_waits_longer() {
        let (mut throttle, mut now) = (LoginThrottle::default(), 0);
        for account in 0..5 {
            let account = account.to_string();
            assert_eq!(fail(&mut throttle, from(&account, "203.0.113.7"), now), 0);
        }
        for minutes in [1, 2, 4, 8, 15, 15] {
            assert_eq!(fail(&mut throttle, from("a", "203.0.113.7"), now), minutes * 60);
            now += i64::from(minutes) * 60 - 1;
            assert_eq!(
                fail(&mut throttle, from("b", "203.0.113.7"), now),
                1,
                "an attempt that has to wait"
            );
            now += 1;
            assert_eq!(
                fail(&mut throttle, from("c", "203.0.113.7"), now),
                0,
                "does not count as a failure"
            );
        }
        assert_eq!(fail(&mut throttle, from("d", "203.0.113.8"), now), 0, "another network may");
        now += 3_600;
        for _ in 0..5 {
            assert_eq!(fail(&mut throttle, from("e", "203.0.113.7"), now), 0, "it is forgotten");
        }
    }

    #[test]
    fn guesses_from_many_networks_are_counted_by_account() {
        let mut throttle = LoginThrottle::default();
        for client in 0..10 {
            assert_eq!(fail(&mut throttle, from("shop", &format!("203.0.113.{client}")), 0), 0);
        }
        assert_eq!(fail(&mut throttle, from("shop", "198.51.100.1"), 0), 60);
        assert_eq!(fail(&mut throttle, from("other", "198.51.100.1"), 0), 0);
        assert_eq!(fail(&mut throttle, from("shop", "198.51.100.2"), 60), 0);
        assert_eq!(fail(&mut throttle, from("shop", "198.51.100.3"), 60), 120);
    }

    #[test]
    fn a_session_or_a_known_network_is_not_locked_out() {
        let mut throttle = LoginThrottle::default();
        let owner = from("shop", "2001:db8:1:2::1");
        let pending = throttle.begin(owner, Millis(0)).unwrap();
        throttle.take_back(pending);
        throttle.record_sign_in(owner);
        let signed_in = LoginAttempt { is_signed_in: true, ..from("shop", "203.0.113.200") };
        for client in 0..100 {
            fail(&mut throttle, from("shop", &format!("203.0.113.{client}")), 0);
            // The neighbours' failures at other accounts count against the network, not against the owner.
            fail(&mut throttle, from("other", "2001:db8:1:2::9"), 0);
        }
        assert_eq!(fail(&mut throttle, from("shop", "198.51.100.1"), 0), 60);
        for known in [from("shop", "2001:db8:1:2::7"), signed_in] {
            for _ in 0..5 {
                assert_eq!(fail(&mut throttle, known, 0), 0, "{known:?}");
            }
            for seconds in [1, 2, 4, 5, 5] {
                let now = 10 * i64::from(seconds);
                assert!(fail(&mut throttle, known, now) <= 5, "{known:?} {seconds}");
            }
        }
    }

    #[test]
    fn successes_do_not_count_and_do_not_wipe_out_failures() {
        let mut throttle = LoginThrottle::default();
        for _ in 0..100 {
            let pending = throttle.begin(from("mine", "203.0.113.7"), Millis(0)).unwrap();
            throttle.take_back(pending);
        }
        for account in 0..5 {
            fail(&mut throttle, from(&account.to_string(), "203.0.113.7"), 0);
        }
        throttle.record_sign_in(from("mine", "203.0.113.7"));
        assert_eq!(fail(&mut throttle, from("mine", "203.0.113.7"), 0), 0);
        assert_eq!(fail(&mut throttle, from("other", "203.0.113.7"), 0), 60);
    }

    #[test]
    fn concurrent_attempts_get_no_more_tries_than_sequential_ones() {
        let mut throttle = LoginThrottle::default();
        let all: Vec<_> =
            (0..1_000).map(|_| throttle.begin(from("a", "203.0.113.7"), Millis(0))).collect();
        assert_eq!(all.iter().filter(|pending| pending.is_ok()).count(), 5);
    }

    #[test]
    fn a_clock_that_was_set_back_locks_no_one_out() {
        let mut throttle = LoginThrottle::default();
        for _ in 0..5 {
            fail(&mut throttle, from("a", "203.0.113.7"), 90);
        }
        assert_eq!(fail(&mut throttle, from("a", "203.0.113.7"), 80), 0);
    }

    #[test]
    fn throttle_memory_is_bounded() {
        let mut throttle = LoginThrottle::default();
        let long = "ñ".repeat(10_000);
        assert!(account_and_network(from(&long, "::1")).0.len() <= 4 * MAX_NAME_CHARS);
        for number in 0..30_000_u32 {
            let account = number.to_string();
            fail(
                &mut throttle,
                from(&account, &format!("2001:db8:0:{number:x}::1", number = number % 65_536)),
                0,
            );
            throttle.record_sign_in(from(&account, "::1"));
        }
        assert_eq!(
            (throttle.failures.len(), throttle.known_networks.len()),
            (MAX_COUNTS, MAX_COUNTS)
        );
    }
}
