//! API keys as they are stored: whose they are and what they may do. The key itself is nowhere;
//! there is only a keyed hash of it (docs/api.md, Keys, IP list, rate limit).

use std::fmt;

use ipnet::IpNet;
use parcelo::CountryCode;

use super::Tenant;
use crate::clock::Millis;

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
    /// The key's last four characters.
    pub last4: String,
    /// When it was made.
    pub created_at: Millis,
    /// When it stopped working.
    pub revoked_at: Option<Millis>,
}

// The hash is as good as the key to whoever also has the pepper: no log shows it.
impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewKey").field("id", &self.id).finish_non_exhaustive()
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
