//! API keys as they are stored: whose they are and what they may do. The key itself is nowhere;
//! there is only a keyed hash of it (docs/api.md, Keys, IP list, rate limit).

use std::fmt;

use ipnet::IpNet;
use parcelo::{CountryCode, admin::AllowedCountries};

use super::Tenant;
use crate::clock::Millis;

/// For how many seconds a replaced secret still works unless the operator says otherwise: a day.
pub(crate) const DEFAULT_OVERLAP_SECONDS: u32 = 24 * 60 * 60;
/// The most seconds that a replaced secret may still work: a week.
pub(crate) const MAX_OVERLAP_SECONDS: u32 = 7 * DEFAULT_OVERLAP_SECONDS;
/// Replaced secrets kept for each key: the latest. More at once would mean a rotation every few
/// hours, and each one is a door that somebody may have left open.
pub(crate) const OLD_SECRETS: u32 = 15;

/// The destinations a key may create orders for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Countries {
    /// Every supported destination.
    All,
    /// These only.
    Only(Vec<CountryCode>),
}

impl Countries {
    /// Whether an order to `country` may be created.
    pub fn allow(&self, country: CountryCode) -> bool {
        match self {
            Self::All => true,
            Self::Only(list) => list.contains(&country),
        }
    }

    /// The codes on the wire; `["*"]` for every supported destination.
    pub fn to_wire(&self) -> Vec<&'static str> {
        match self {
            Self::All => vec!["*"],
            Self::Only(list) => list.iter().map(CountryCode::as_str).collect(),
        }
    }
}

impl From<AllowedCountries> for Countries {
    fn from(allowed: AllowedCountries) -> Self {
        match allowed {
            AllowedCountries::All => Self::All,
            AllowedCountries::Only(countries) => Self::Only(countries),
        }
    }
}

/// An API key that does not exist yet.
#[derive(Clone)]
pub struct NewKey {
    /// The public id: `key_…`.
    pub id: String,
    /// Whose it is.
    pub tenant: Tenant,
    /// What its owner calls it.
    pub name: String,
    /// The destinations it may create orders for.
    pub countries: Countries,
    /// The client addresses it works from; empty is any.
    pub ip_list: Vec<IpNet>,
    /// Requests a second, when it is not the environment's usual limit.
    pub rate_limit: Option<u32>,
    /// The keyed hash of the key.
    pub hash: [u8; 32],
    /// The key's last four characters.
    pub last4: String,
    /// When it was made.
    pub created_at: Millis,
}

/// An API key.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// Its number inside the database.
    pub row: i64,
    /// The public id: `key_…`.
    pub id: String,
    /// Whose it is.
    pub tenant: Tenant,
    /// The account's name.
    pub account: String,
    /// What its owner calls it.
    pub name: String,
    /// The destinations it may create orders for.
    pub countries: Countries,
    /// The client addresses it works from; empty is any.
    pub ip_list: Vec<IpNet>,
    /// Requests a second, when it is not the environment's usual limit.
    pub rate_limit: Option<u32>,
    /// The keyed hash of the key.
    pub hash: [u8; 32],
    /// The secrets before the present one, the latest first.
    pub old_secrets: Vec<OldSecret>,
    /// The key's last four characters.
    pub last4: String,
    /// When it was made.
    pub created_at: Millis,
    /// When it stopped working.
    pub revoked_at: Option<Millis>,
}

/// A secret that was replaced by a newer one of the same key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OldSecret {
    /// Its keyed hash.
    pub hash: [u8; 32],
    /// When it stops working.
    pub until: Millis,
}

/// A new secret for a key that exists.
#[derive(Clone)]
pub struct NewSecret {
    /// The keyed hash of the whole key.
    pub hash: [u8; 32],
    /// The key's last four characters.
    pub last4: String,
    /// When the secrets before it stop working, unless their own time is over earlier.
    pub old_until: Millis,
}

impl KeyRecord {
    /// Whether the secret with this hash opens the key now.
    pub fn is_opened_by(&self, hash: &[u8; 32], now: Millis) -> bool {
        let is_old = |old: &OldSecret| old.hash == *hash && now < old.until;
        self.revoked_at.is_none() && (self.hash == *hash || self.old_secrets.iter().any(is_old))
    }

    /// When the last secret before the present one stops working; none when none works now.
    pub fn old_secret_until(&self, now: Millis) -> Option<Millis> {
        let alive = self.old_secrets.iter().map(|old| old.until).filter(|until| now < *until);
        alive.max().filter(|_| self.revoked_at.is_none())
    }

    /// The hashes of all its secrets, also of those whose time is over.
    pub fn hashes(&self) -> impl Iterator<Item = [u8; 32]> {
        [self.hash].into_iter().chain(self.old_secrets.iter().map(|old| old.hash))
    }
}

// The hash is as good as the key to whoever also has the pepper: no log shows it.
impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl fmt::Debug for OldSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OldSecret").field("until", &self.until).finish_non_exhaustive()
    }
}

impl fmt::Debug for NewSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewSecret").field("old_until", &self.old_until).finish_non_exhaustive()
    }
}

impl fmt::Debug for KeyRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRecord")
            .field("id", &self.id)
            .field("tenant", &self.tenant)
            .field("countries", &self.countries)
            .field("revoked_at", &self.revoked_at)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_countries_allows_what_is_on_it() {
        let only = Countries::Only(vec![CountryCode::EC]);
        assert!(only.allow(CountryCode::EC));
        assert!(!only.allow(CountryCode::MX));
        assert!(Countries::All.allow(CountryCode::MX));
    }

    fn record(old_secrets: Vec<OldSecret>, revoked_at: Option<Millis>) -> KeyRecord {
        KeyRecord {
            row: 1,
            id: "key_1".to_owned(),
            tenant: Tenant::of_number(2),
            account: "default".to_owned(),
            name: "Warehouse".to_owned(),
            countries: Countries::All,
            ip_list: Vec::new(),
            rate_limit: None,
            hash: [0; 32],
            old_secrets,
            last4: "wXyZ".to_owned(),
            created_at: Millis(0),
            revoked_at,
        }
    }

    #[test]
    fn a_key_is_opened_by_its_secret_and_by_each_old_one_until_its_time_is_over() {
        let old = |hash, until| OldSecret { hash: [hash; 32], until: Millis(until) };
        let key = record(vec![old(1, 20), old(2, 10)], None);
        let table = [(0, 99, true), (1, 19, true), (1, 20, false), (2, 9, true), (2, 10, false)];
        for (hash, now, opens) in table {
            assert_eq!(key.is_opened_by(&[hash; 32], Millis(now)), opens, "{hash} at {now}");
        }
        assert!(!key.is_opened_by(&[9; 32], Millis(0)));
        assert_eq!(key.old_secret_until(Millis(5)), Some(Millis(20)));
        assert_eq!(key.old_secret_until(Millis(20)), None);
        let revoked = record(key.old_secrets, Some(Millis(3)));
        assert!(!(0..3).any(|hash| revoked.is_opened_by(&[hash; 32], Millis(4))));
        assert_eq!(revoked.old_secret_until(Millis(5)), None);
        assert!(!format!("{revoked:?}").contains("hash"), "{revoked:?}");
    }

    #[test]
    fn debug_shows_no_hash() {
        let key = NewKey {
            id: "key_1".to_owned(),
            tenant: Tenant::of_number(2),
            name: "Warehouse".to_owned(),
            countries: Countries::All,
            ip_list: Vec::new(),
            rate_limit: None,
            hash: [171; 32],
            last4: "wXyZ".to_owned(),
            created_at: Millis(0),
        };
        assert_eq!(format!("{key:?}"), "NewKey { id: \"key_1\", .. }");
    }
}
