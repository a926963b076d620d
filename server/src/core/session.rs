//! Being signed in to the dashboard: for how long, how often it may be tried, what a password is.

use std::{collections::VecDeque, fmt, net::IpAddr};

use super::{AccountKey, Tenant};
use crate::clock::Millis;
use parcelo::{Environment, rules::is_invisible};

/// How long one stays signed in.
pub const LASTS: i64 = 12 * Millis::HOUR;
/// How often one address may try to sign in within [`SPAN`].
pub const TRIES: usize = 5;
/// The time in which tries are counted together.
pub const SPAN: i64 = Millis::MINUTE;
/// The fewest characters of a password.
pub const SHORTEST: usize = 12;
/// The most characters of a password.
pub const LONGEST: usize = 200;

/// An account that somebody may sign in to.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The account.
    pub account: AccountKey,
    /// Its password, hashed.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("account", &self.account).finish_non_exhaustive()
    }
}

/// Somebody who is signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The account.
    pub account: AccountKey,
    /// The account's name.
    pub name: String,
    /// When it is over.
    pub ends_at: Millis,
}

impl Session {
    /// Whether it is not over yet.
    pub fn is_alive(&self, now: Millis) -> bool {
        now < self.ends_at
    }

    /// The account in an environment.
    pub const fn tenant(&self, environment: Environment) -> Tenant {
        Tenant { account: self.account, environment }
    }
}

/// Whether a text can be a password: long enough to be hard to guess, one line, and not blank.
pub fn is_password(text: &str) -> bool {
    let is_blank = text.chars().all(|c| c.is_whitespace() || c.is_control() || is_invisible(c));
    let is_line = !text.contains(['\n', '\r']);
    (SHORTEST..=LONGEST).contains(&text.chars().count()) && is_line && !is_blank
}

/// Whose tries are counted together: an address, and of IPv6 the network that one household has.
pub fn tries_of(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// When one address has tried to sign in.
#[derive(Debug, Clone, Default)]
pub struct Tries(VecDeque<Millis>);

impl Tries {
    /// Counts a try, or says how many seconds to wait before the next one.
    pub fn take(&mut self, now: Millis) -> Result<(), u32> {
        // A clock that was set back must not lock anybody out.
        self.0.retain(|at| (0..SPAN).contains(&(now.0 - at.0)));
        match self.0.front() {
            Some(first) if self.0.len() >= TRIES => {
                let wait = first.plus(SPAN).0 - now.0;
                Err(u32::try_from((wait + Millis::SECOND - 1) / Millis::SECOND).unwrap_or(1))
            }
            Some(_) | None => {
                self.0.push_back(now);
                Ok(())
            }
        }
    }

    /// Whether all of them are forgotten.
    pub fn are_over(&self, now: Millis) -> bool {
        self.0.back().is_none_or(|last| !(0..SPAN).contains(&(now.0 - last.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sixth_try_within_a_minute_waits_until_the_first_is_a_minute_old() {
        let mut tries = Tries::default();
        for second in 0..5 {
            assert_eq!(tries.take(Millis(second * 1_000)), Ok(()));
        }
        assert_eq!(tries.take(Millis(5_000)), Err(55));
        assert_eq!(tries.take(Millis(59_001)), Err(1));
        assert_eq!(tries.take(Millis(60_000)), Ok(()), "and those refused did not count");
        assert_eq!(tries.take(Millis(60_500)), Err(1));
        assert!(!tries.are_over(Millis(119_999)) && tries.are_over(Millis(120_000)));
    }

    #[test]
    fn a_clock_that_was_set_back_locks_nobody_out() {
        let mut tries = Tries::default();
        (0..5).for_each(|_| tries.take(Millis(90_000)).unwrap());
        assert_eq!(tries.take(Millis(80_000)), Ok(()));
    }

    #[test]
    fn addresses_of_one_household_are_counted_together() {
        let of = |text: &str| tries_of(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2:3::1"), of("2001:db8:1:2::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:10.0.0.7"), of("10.0.0.7"));
        assert_ne!(of("10.0.0.7"), of("10.0.0.8"));
    }

    #[test]
    fn a_password_is_one_line_of_12_to_200_characters() {
        assert!(is_password("ñandú en Quito") && is_password(&"a".repeat(200)));
        let long = "a".repeat(201);
        let blank = [" ".repeat(12), "\u{A0}\t\u{200B}".repeat(4)];
        for bad in ["", "eleven char", "twelve chars\nand more", &long, &blank[0], &blank[1]] {
            assert!(!is_password(bad), "{bad:?}");
        }
    }
}
