//! API keys (spec: Authentication).

use super::{Environment, InvalidValue, macros::secret_text, secret_key::SecretKey};

/// An API key: `pk_live_` or `pk_test_`, 32 random base62 characters, 6 of CRC-32 (docs/api.md, Keys,
/// address lists, rate limits).
///
/// It never shows itself: `Debug` prints `ApiKey(pk_test_***)`, and it cannot be serialised. It is read from text, also
/// by serde, and an error does not repeat that.
///
/// ```
/// # use parcelo::{ApiKey, Environment};
/// let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
/// assert_eq!(format!("{key:?}"), "ApiKey(pk_test_***)");
/// let typo = key.secret().replace("7", "8");
/// assert!(ApiKey::parse(&typo).is_err());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(SecretKey);

impl ApiKey {
    /// Reads a key and checks its check characters, so that a typo is found without asking the server.
    ///
    /// Errors: [`InvalidValue::ApiKey`], which does not repeat the text.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        SecretKey::parse(text, Environment::key_prefix).map(Self).ok_or(InvalidValue::ApiKey)
    }

    /// The key made of 32 random bytes, each of which becomes one character.
    pub fn from_random(environment: Environment, random: &[u8; 32]) -> Self {
        Self(SecretKey::from_random(environment, environment.key_prefix(), random))
    }

    /// The environment the key belongs to.
    pub fn environment(&self) -> Environment {
        self.0.environment()
    }

    /// The whole key, for the `X-API-Key` header and for showing it once. Keep it out of logs.
    pub fn secret(&self) -> &str {
        self.0.text()
    }
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ApiKey({}***)", self.environment().key_prefix())
    }
}

secret_text!(ApiKey);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_one_wrong_character_is_seen() {
        let key = ApiKey::from_random(
            Environment::Production,
            &std::array::from_fn(|i| u8::try_from(i).unwrap()),
        );
        assert!(key.secret().starts_with("pk_live_"));
        assert_eq!(ApiKey::parse(key.secret()).as_ref(), Ok(&key));
        for place in 0..key.secret().len() {
            let mut typo = key.secret().to_owned();
            let other = if typo.as_bytes()[place] == b'x' { "y" } else { "x" };
            typo.replace_range(place..=place, other);
            assert!(ApiKey::parse(&typo).is_err(), "{typo}");
        }
    }

    #[test]
    fn a_key_is_read_by_serde_and_an_error_does_not_repeat_it() {
        let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
        let read = |text: &str| serde_json::from_value::<ApiKey>(text.into());
        assert_eq!(read(key.secret()).unwrap(), key);
        assert_eq!(key.secret().parse(), Ok(key.clone()));
        let typo = key.secret().replace('7', "8");
        assert!(!read(&typo).unwrap_err().to_string().contains("888"));
    }

    #[test]
    fn hostile_text_is_refused() {
        for text in ["", "pk_live_", "pk_test_ñññññññññññññññññññññññññññññññññññññ", "sk_live_x"]
        {
            assert!(ApiKey::parse(text).is_err(), "{text}");
        }
    }
}
