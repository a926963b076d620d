//! Credentials as they are stored: API keys, carrier keys and admin tokens, which differ in their scope.
//! Only a keyed hash of the secret is stored (docs/api.md, Keys, IP list, rate limit; Carrier events;
//! Admin API).

use std::fmt;

use ipnet::IpNet;
use parcelo_types::{ApiKey, CountryCode, Environment};
use parcelo_wire::{AdminToken, AllowedCountries, CarrierKey};

use super::{CarrierRowId, Tenant, secrets::HashedKey};
use crate::Millis;

/// Default number of seconds for which a replaced secret still works: a day.
pub const DEFAULT_OVERLAP_SECONDS: u32 = 24 * 60 * 60;
/// Maximum number of seconds for which a replaced secret may still work: a week.
pub const MAX_OVERLAP_SECONDS: u32 = 7 * DEFAULT_OVERLAP_SECONDS;
/// Maximum number of replaced secrets kept for a key: the latest. More would mean a rotation every few hours, and each
/// kept secret may have leaked.
pub const MAX_OLD_SECRETS: u32 = 15;

/// The destinations a key may create orders for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Countries {
    /// Every supported destination.
    All,
    /// These only.
    Only(Vec<CountryCode>),
}

impl Countries {
    /// Returns the codes on the wire; `["*"]` for every supported destination.
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

/// The scope of a kind of credential: the tenant, carrier or API that it gives access to.
pub trait Scope: Send + Sync + Sized + 'static {
    /// The part of the scope that is known before it is stored.
    type New: Send + 'static;
    /// The secret in the form that its holder has.
    type Secret: HashedKey;
    /// The prefix of its public ids.
    const ID_PREFIX: &str;

    /// Creates a secret from 32 random bytes.
    fn generate(new: &Self::New, random: &[u8; 32]) -> Self::Secret;
}

/// A credential that does not exist yet; `S` is the part of its scope that is known before it is stored.
#[derive(Clone)]
pub struct NewCredential<S> {
    /// The public id: `key_…`, `car_…` or `adt_…`.
    pub id: String,
    /// The name that its owner gave it; for a carrier key, the carrier's name.
    pub name: String,
    /// The keyed hash of the secret.
    pub hash: [u8; 32],
    /// The secret's last four characters.
    pub last4: String,
    /// The time of creation.
    pub created_at: Millis,
    /// The scope.
    pub scope: S,
}

/// A credential as it is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential<S> {
    /// The row id in the database.
    pub row: i64,
    /// The public id: `key_…`, `car_…` or `adt_…`.
    pub id: String,
    /// The name that its owner gave it; for a carrier key, the carrier's name.
    pub name: String,
    /// The keyed hash of the secret.
    pub hash: [u8; 32],
    /// The replaced secrets, the latest first. Only API keys have any.
    pub old_secrets: Vec<OldSecret>,
    /// The secret's last four characters.
    pub last4: String,
    /// The time of creation.
    pub created_at: Millis,
    /// The time of revocation.
    pub revoked_at: Option<Millis>,
    /// The scope.
    pub scope: S,
}

/// An API key as it is stored.
pub type ApiKeyRecord = Credential<ApiKeyScope>;
/// A carrier key as it is stored. Keys with the same name in an environment belong to the same carrier.
pub type CarrierKeyRecord = Credential<CarrierScope>;
/// An admin token as it is stored.
pub type AdminTokenRecord = Credential<AdminScope>;

/// The scope of an API key.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKeyScope {
    /// The tenant that owns it.
    pub tenant: Tenant,
    /// The account's name.
    pub account: String,
    /// The destinations it may create orders for.
    pub countries: Countries,
    /// The client addresses from which it works; any if empty.
    pub ip_list: Vec<IpNet>,
    /// Maximum number of requests in a second, if it is not the environment's usual limit.
    pub rate_limit: Option<u32>,
}

/// The scope of a carrier key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CarrierScope {
    /// The carrier that owns it.
    pub carrier: CarrierRowId,
    /// The environment whose parcels it may report on.
    pub environment: Environment,
}

/// The scope of an admin token: the whole admin API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdminScope;

impl Scope for ApiKeyScope {
    type New = Self;
    type Secret = ApiKey;
    const ID_PREFIX: &str = "key";

    fn generate(new: &Self, random: &[u8; 32]) -> ApiKey {
        ApiKey::from_random(new.tenant.environment, random)
    }
}

impl Scope for CarrierScope {
    /// Environment and name determine the carrier, which is created with its first key.
    type New = Environment;
    type Secret = CarrierKey;
    const ID_PREFIX: &str = "car";

    fn generate(environment: &Environment, random: &[u8; 32]) -> CarrierKey {
        CarrierKey::from_random(*environment, random)
    }
}

impl Scope for AdminScope {
    type New = Self;
    type Secret = AdminToken;
    const ID_PREFIX: &str = "adt";

    fn generate(_: &Self, random: &[u8; 32]) -> AdminToken {
        AdminToken::from_random(random)
    }
}

/// A secret that was replaced by a newer one of the same credential.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OldSecret {
    /// Its keyed hash.
    pub hash: [u8; 32],
    /// The time at which it stops working.
    pub until: Millis,
}

/// A new secret for a key that exists.
#[derive(Clone)]
pub struct NewSecret {
    /// The keyed hash of the whole key.
    pub hash: [u8; 32],
    /// The key's last four characters.
    pub last4: String,
    /// The time at which the secrets before it stop working, unless they stop earlier.
    pub old_until: Millis,
    /// The hash of the secret to replace; `None` for the current one, whatever it is.
    pub replaces: Option<[u8; 32]>,
}

impl<S> Credential<S> {
    /// Returns `true` if the secret with this hash is valid now.
    pub fn accepts_secret(&self, hash: &[u8; 32], now: Millis) -> bool {
        let is_old = |old: &OldSecret| old.hash == *hash && now < old.until;
        self.revoked_at.is_none() && (self.hash == *hash || self.old_secrets.iter().any(is_old))
    }

    /// Returns the time at which the last replaced secret stops working; `None` if none works now.
    pub fn old_secret_until(&self, now: Millis) -> Option<Millis> {
        let alive = self.old_secrets.iter().map(|old| old.until).filter(|until| now < *until);
        alive.max().filter(|_| self.revoked_at.is_none())
    }

    /// Returns the hashes of all its secrets, including those that no longer work.
    pub fn hashes(&self) -> impl Iterator<Item = [u8; 32]> {
        [self.hash].into_iter().chain(self.old_secrets.iter().map(|old| old.hash))
    }
}

// The hash is not logged: together with the database's secret, it is as good as the key.
impl<S> fmt::Debug for NewCredential<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewCredential").field("id", &self.id).finish_non_exhaustive()
    }
}

impl<S: fmt::Debug> fmt::Debug for Credential<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("id", &self.id)
            .field("scope", &self.scope)
            .field("revoked_at", &self.revoked_at)
            .finish_non_exhaustive()
    }
}

// The customer's name and addresses are not logged either.
impl fmt::Debug for ApiKeyScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKeyScope")
            .field("tenant", &self.tenant)
            .field("countries", &self.countries)
            .finish_non_exhaustive()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn record(old_secrets: Vec<OldSecret>, revoked_at: Option<Millis>) -> ApiKeyRecord {
        ApiKeyRecord {
            row: 1,
            id: "key_1".to_owned(),
            name: "Warehouse".to_owned(),
            hash: [0; 32],
            old_secrets,
            last4: "wXyZ".to_owned(),
            created_at: Millis(0),
            revoked_at,
            scope: ApiKeyScope {
                tenant: Tenant::from_number(2),
                account: "default".to_owned(),
                countries: Countries::All,
                ip_list: Vec::new(),
                rate_limit: None,
            },
        }
    }

    #[test]
    fn a_key_accepts_its_secret_and_old_ones_until_they_expire() {
        let old = |hash, until| OldSecret { hash: [hash; 32], until: Millis(until) };
        let key = record(vec![old(1, 20), old(2, 10)], None);
        let table = [(0, 99, true), (1, 19, true), (1, 20, false), (2, 9, true), (2, 10, false)];
        for (hash, now, opens) in table {
            assert_eq!(key.accepts_secret(&[hash; 32], Millis(now)), opens, "{hash} at {now}");
        }
        assert!(!key.accepts_secret(&[9; 32], Millis(0)));
        assert_eq!(key.old_secret_until(Millis(5)), Some(Millis(20)));
        assert_eq!(key.old_secret_until(Millis(20)), None);
        let revoked = record(key.old_secrets, Some(Millis(3)));
        assert!(!(0..3).any(|hash| revoked.accepts_secret(&[hash; 32], Millis(4))));
        assert_eq!(revoked.old_secret_until(Millis(5)), None);
        assert!(!format!("{revoked:?}").contains("hash"), "{revoked:?}");
    }

    #[test]
    fn debug_shows_no_hash() {
        let new = NewCredential {
            id: "key_1".to_owned(),
            name: "Warehouse".to_owned(),
            hash: [171; 32],
            last4: "wXyZ".to_owned(),
            created_at: Millis(0),
            scope: AdminScope,
        };
        assert_eq!(format!("{new:?}"), "NewCredential { id: \"key_1\", .. }");
    }

    #[test]
    fn all_countries_are_a_star_and_others_are_listed() {
        assert_eq!(Countries::All.to_wire(), ["*"]);
        let some = Countries::Only(vec![CountryCode::MX, CountryCode::EC]);
        assert_eq!(some.to_wire(), ["MX", "EC"]);
    }

    #[test]
    fn a_key_has_the_hashes_of_its_secret_and_of_all_old_ones() {
        let old = OldSecret { hash: [1; 32], until: Millis(0) };
        let hashes: Vec<_> = record(vec![old], None).hashes().collect();
        assert_eq!(hashes, [[0; 32], [1; 32]]);
    }
}
