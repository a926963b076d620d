//! API keys (spec: Authentication).

use super::{Environment, InvalidValue, macros::secret_text, secret_key::SecretKey};

/// An API key: `pk_live_` or `pk_test_`, and what the service makes of the rest.
///
/// It never shows itself: `Debug` prints `ApiKey(pk_test_***)`, and it cannot be serialised. It is read from text, also
/// by serde, and an error does not repeat that.
///
/// ```
/// # use parcelo::ApiKey;
/// let key = ApiKey::parse("pk_test_dummy")?; // for a stub of the service, in your own tests
/// assert_eq!(format!("{key:?}"), "ApiKey(pk_test_***)");
/// assert!(key.looks_mistyped());
/// # Ok::<(), parcelo::InvalidValue>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(SecretKey);

impl ApiKey {
    /// Reads a key. Its prefix is required, and the rest must be visible ASCII; only the service knows whether it is
    /// in force.
    ///
    /// Errors: [`InvalidValue::ApiKey`], which does not repeat the text.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        let key = SecretKey::parse_opaque(text, Environment::key_prefix);
        key.map(Self).ok_or(InvalidValue::ApiKey)
    }

    /// Returns true if it is not a key as the service issues them today: 32 letters and digits after the prefix, and 6
    /// that check them (docs/api.md, Keys, address lists, rate limits).
    ///
    /// A hint, for a warning beside the field of a form: a key that was made up for a test looks mistyped too, and so
    /// might one of a later service.
    pub fn looks_mistyped(&self) -> bool {
        !self.0.is_sound(self.environment().key_prefix())
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
    fn any_one_wrong_character_looks_mistyped() {
        let key = ApiKey::from_random(
            Environment::Production,
            &std::array::from_fn(|i| u8::try_from(i).unwrap()),
        );
        assert!(key.secret().starts_with("pk_live_"));
        assert_eq!(ApiKey::parse(key.secret()).as_ref(), Ok(&key));
        assert!(!key.looks_mistyped());
        for place in 0..key.secret().len() {
            let mut typo = key.secret().to_owned();
            let other = if typo.as_bytes()[place] == b'x' { "y" } else { "x" };
            typo.replace_range(place..=place, other);
            let read = ApiKey::parse(&typo);
            assert_eq!(read.is_ok(), place >= "pk_live_".len(), "{typo}");
            assert!(read.is_ok_and(|key| key.looks_mistyped()) || place < 8, "{typo}");
        }
    }

    #[test]
    fn a_key_is_read_by_serde_and_an_error_does_not_repeat_it() {
        let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
        let read = |text: &str| serde_json::from_value::<ApiKey>(text.into());
        assert_eq!(read(key.secret()).unwrap(), key);
        assert_eq!(key.secret().parse(), Ok(key.clone()));
        let typo = key.secret().replace("pk_", "kp_");
        assert!(!read(&typo).unwrap_err().to_string().contains("777"));
    }

    #[test]
    fn what_follows_the_prefix_is_the_service_s_affair() {
        let long = format!("pk_live_{}", "7".repeat(1_000));
        for text in ["pk_test_dummy", "pk_live_a.new-form/of~keys=", &long] {
            let key = ApiKey::parse(text).unwrap();
            assert!(key.secret() == text && key.looks_mistyped(), "{text}");
        }
        assert_eq!(ApiKey::parse("pk_live_1").unwrap().environment(), Environment::Production);
    }

    #[test]
    fn hostile_text_is_refused() {
        let long = format!("pk_live_{}", "7".repeat(1_001));
        for text in ["", "pk_live_", "pk_test_ñ", "sk_live_x", "pk_test_a b", "pk_test_a\n", &long]
        {
            assert!(ApiKey::parse(text).is_err(), "{text}");
        }
    }
}
