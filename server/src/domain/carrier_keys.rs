//! Carrier keys as they are stored: whose they are. The key itself is nowhere; there is only a keyed
//! hash of it (docs/api.md, Carrier events).

use std::fmt;

use parcelo::Environment;

use super::CarrierNumber;
use crate::clock::Millis;

/// A carrier key that does not exist yet.
#[derive(Clone)]
pub struct NewCarrierKey {
    /// The public id: `car_…`.
    pub id: String,
    /// The environment whose parcels it may report on.
    pub environment: Environment,
    /// The carrier's name; keys of one name are one carrier's.
    pub name: String,
    /// The keyed hash of the key.
    pub hash: [u8; 32],
    /// The key's last four characters.
    pub last4: String,
    /// When it was made.
    pub created_at: Millis,
}

/// A carrier key.
#[derive(Clone, PartialEq, Eq)]
pub struct CarrierKeyRecord {
    /// Its number inside the database.
    pub row: i64,
    /// The public id: `car_…`.
    pub id: String,
    /// Whose it is.
    pub carrier: CarrierNumber,
    /// The environment whose parcels it may report on.
    pub environment: Environment,
    /// The carrier's name.
    pub name: String,
    /// The key's last four characters.
    pub last4: String,
    /// When it was made.
    pub created_at: Millis,
    /// When it stopped working.
    pub revoked_at: Option<Millis>,
}

// The hash is as good as the key to whoever also has the pepper: no log shows it.
impl fmt::Debug for NewCarrierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewCarrierKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl fmt::Debug for CarrierKeyRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CarrierKeyRecord")
            .field("id", &self.id)
            .field("environment", &self.environment)
            .field("revoked_at", &self.revoked_at)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_hash() {
        let key = NewCarrierKey {
            id: "car_1".to_owned(),
            environment: Environment::Sandbox,
            name: "Andes Cargo".to_owned(),
            hash: [171; 32],
            last4: "wXyZ".to_owned(),
            created_at: Millis(0),
        };
        assert_eq!(format!("{key:?}"), "NewCarrierKey { id: \"car_1\", .. }");
    }
}
