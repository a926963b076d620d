//! Carrier keys, with which carriers authenticate when they report scans.

use parcelo_types::{
    Environment,
    internal::{SecretKey, secret_text},
};

use crate::InvalidCredential;

/// A carrier key: `ck_live_` or `ck_test_`, then the same as in an [`ApiKey`](parcelo_types::ApiKey).
///
/// It is never printed: `Debug` shows `CarrierKey(ck_test_***)`, and it cannot be serialised.
///
/// ```
/// # use parcelo_types::{ApiKey, Environment};
/// # use parcelo_wire::CarrierKey;
/// let key = CarrierKey::from_random(Environment::Sandbox, &[7; 32]);
/// assert_eq!(format!("{key:?}"), "CarrierKey(ck_test_***)");
/// assert_eq!(CarrierKey::parse(key.secret())?, key);
/// assert!(ApiKey::parse(key.secret()).is_err());
/// # Ok::<(), parcelo_wire::InvalidCredential>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct CarrierKey(SecretKey);

impl CarrierKey {
    /// Parses a key and verifies its check characters, so that typos are found without asking the server.
    pub fn parse(text: &str) -> Result<Self, InvalidCredential> {
        SecretKey::parse(text, Self::prefix).map(Self).ok_or(InvalidCredential::CarrierKey)
    }

    /// Returns a key made from 32 random bytes, each encoded as one character.
    pub fn from_random(environment: Environment, random: &[u8; 32]) -> Self {
        Self(SecretKey::from_random(environment, Self::prefix(environment), random))
    }

    /// Returns the prefix of the carrier keys of an environment.
    pub const fn prefix(environment: Environment) -> &'static str {
        match environment {
            Environment::Production => "ck_live_",
            Environment::Sandbox => "ck_test_",
        }
    }

    /// Returns the environment that the key belongs to.
    pub fn environment(&self) -> Environment {
        self.0.environment()
    }

    /// Returns the whole key, for the `X-Carrier-Key` header and for showing it once. Keep it out of logs.
    pub fn secret(&self) -> &str {
        self.0.text()
    }
}

impl std::fmt::Debug for CarrierKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CarrierKey({}***)", Self::prefix(self.environment()))
    }
}

secret_text!(CarrierKey, InvalidCredential);

#[cfg(test)]
mod tests {
    use parcelo_types::ApiKey;

    use super::*;

    #[test]
    fn a_carrier_key_is_not_an_api_key_and_a_typo_is_detected() {
        for environment in Environment::ALL {
            let key = CarrierKey::from_random(environment, &[9; 32]);
            assert!(key.secret().starts_with(CarrierKey::prefix(environment)));
            assert_eq!(CarrierKey::parse(key.secret()).as_ref(), Ok(&key));
            assert_eq!(key.environment(), environment);
            let typo = key.secret().replacen('9', "8", 1);
            let as_api_key = key.secret().replacen("ck_", "pk_", 1);
            for wrong in [&typo, &as_api_key, "", "ck_live_", "ck_test_ñ"] {
                assert_eq!(CarrierKey::parse(wrong).ok(), None, "{wrong}");
            }
            assert!(ApiKey::parse(&as_api_key).unwrap().looks_mistyped(), "it covers the prefix");
        }
    }
}
