//! Admin tokens, which authenticate an operator to the admin API.

use parcelo_types::{
    Environment,
    internal::{SecretKey, secret_text},
};

use crate::InvalidCredential;

const PREFIX: &str = "adm_";

/// An admin token: `adm_`, then the same as in an [`ApiKey`](parcelo_types::ApiKey). It belongs to the operator and is
/// valid in both environments and for every account.
///
/// It is never printed: `Debug` shows `AdminToken(adm_***)`, and it cannot be serialised.
///
/// ```
/// # use parcelo_wire::AdminToken;
/// let token = AdminToken::from_random(&[7; 32]);
/// assert_eq!(format!("{token:?}"), "AdminToken(adm_***)");
/// assert_eq!(AdminToken::parse(token.secret())?, token);
/// # Ok::<(), parcelo_wire::InvalidCredential>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct AdminToken(SecretKey);

impl AdminToken {
    /// Parses a token and verifies its check characters, so that typos are found without asking the server.
    pub fn parse(text: &str) -> Result<Self, InvalidCredential> {
        SecretKey::parse(text, |_| PREFIX).map(Self).ok_or(InvalidCredential::AdminToken)
    }

    /// Returns a token made from 32 random bytes, each encoded as one character.
    pub fn from_random(random: &[u8; 32]) -> Self {
        // `SecretKey` requires an environment, which tokens do not have.
        Self(SecretKey::from_random(Environment::Production, PREFIX, random))
    }

    /// Returns the whole token, for the `Authorization` header and for showing it once. Keep it out of logs.
    pub fn secret(&self) -> &str {
        self.0.text()
    }
}

impl std::fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AdminToken({PREFIX}***)")
    }
}

secret_text!(AdminToken, InvalidCredential);

#[cfg(test)]
mod tests {
    use parcelo_types::ApiKey;

    use super::*;

    #[test]
    fn a_token_is_not_a_key_and_a_typo_is_detected() {
        let token = AdminToken::from_random(&[9; 32]);
        let typo = token.secret().replacen('9', "8", 1);
        for wrong in [&typo, "", "adm_", "adm_ñ", &token.secret().replacen("adm_", "pk_live_", 1)]
        {
            assert_eq!(AdminToken::parse(wrong).ok(), None, "{wrong}");
            let key = ApiKey::parse(wrong).ok();
            assert!(key.is_none_or(|key| key.looks_mistyped()), "{wrong}");
        }
        assert_eq!(ApiKey::parse(token.secret()).ok(), None);
    }
}
