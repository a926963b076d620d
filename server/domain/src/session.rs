//! Sessions of the dashboard, their lifetimes, and the rules for passwords.

use std::{fmt, net::IpAddr};

use super::{AccountRowId, Tenant};
use crate::Millis;
use parcelo_types::{Environment, internal::is_invisible};

/// Lifetime of a session, in milliseconds.
pub const SESSION_LIFETIME_MILLIS: i64 = 12 * Millis::HOUR;
/// Minimum length of a password in characters.
pub const MIN_PASSWORD_CHARS: usize = 12;
/// Maximum length of a password in characters.
pub const MAX_PASSWORD_CHARS: usize = 200;

/// An account with the hash of its password, as it is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordLogin {
    /// The account.
    pub account: AccountRowId,
    /// The hash of its password.
    pub password: String,
}

impl fmt::Debug for PasswordLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PasswordLogin").field("account", &self.account).finish_non_exhaustive()
    }
}

/// A session to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewSession {
    /// The hash of its token.
    pub hash: [u8; 32],
    /// The beginning of the session.
    pub begins_at: Millis,
    /// The end of the session.
    pub ends_at: Millis,
    /// The address of the client that signed in.
    pub client: IpAddr,
}

/// A session of the dashboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The account.
    pub account: AccountRowId,
    /// The account's name.
    pub name: String,
    /// The end of the session.
    pub ends_at: Millis,
}

impl Session {
    /// Returns `true` until it ends.
    pub fn is_alive(&self, now: Millis) -> bool {
        now < self.ends_at
    }

    /// Returns the tenant of the account in an environment.
    pub const fn tenant(&self, environment: Environment) -> Tenant {
        Tenant { account: self.account, environment }
    }
}

/// Returns `true` if a text can be a password: long enough to be hard to guess, one line, and not blank.
pub fn is_valid_password(text: &str) -> bool {
    let is_blank = text.chars().all(|c| c.is_whitespace() || c.is_control() || is_invisible(c));
    let is_line = !text.contains(['\n', '\r']);
    (MIN_PASSWORD_CHARS..=MAX_PASSWORD_CHARS).contains(&text.chars().count())
        && is_line
        && !is_blank
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_one_line_of_12_to_200_characters() {
        assert!(is_valid_password("ñandú en Quito") && is_valid_password(&"a".repeat(200)));
        let long = "a".repeat(201);
        let blank = [" ".repeat(12), "\u{A0}\t\u{200B}".repeat(4)];
        for bad in ["", "eleven char", "twelve chars\nand more", &long, &blank[0], &blank[1]] {
            assert!(!is_valid_password(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_session_lives_until_its_end() {
        let (account, name) = (AccountRowId(1), "Shop".to_owned());
        let session = Session { account, name, ends_at: Millis(10) };
        assert_eq!([9, 10, 11].map(|now| session.is_alive(Millis(now))), [true, false, false]);
    }
}
