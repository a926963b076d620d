//! API keys: their form, and the typo that can be seen offline (spec: Authentication).

use super::{Environment, InvalidValue};

const RANDOM: usize = 32;
const CHECK: u32 = 6;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// An API key: `pk_live_` or `pk_test_`, 32 random base62 characters, 6 of CRC-32.
///
/// It never shows itself: `Debug` prints `ApiKey(pk_test_***)`, and it cannot be serialised.
///
/// ```
/// # use parcelo::{ApiKey, Environment};
/// let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
/// assert_eq!(format!("{key:?}"), "ApiKey(pk_test_***)");
/// let typo = key.secret().replace("7", "8");
/// assert!(ApiKey::parse(&typo).is_err());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    text: Box<str>,
    environment: Environment,
}

impl ApiKey {
    /// Reads a key and checks its check characters, so a typo is told without asking the server.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        let environment = Environment::of_key(text).ok_or(InvalidValue::ApiKey)?;
        let body = text.get(environment.key_prefix().len()..).unwrap_or_default();
        let (random, check) = body.split_at_checked(RANDOM).ok_or(InvalidValue::ApiKey)?;
        if !random.bytes().all(|b| b.is_ascii_alphanumeric())
            || check_of(environment, random) != check
        {
            return Err(InvalidValue::ApiKey);
        }
        Ok(Self { text: text.into(), environment })
    }

    /// The key made of 32 random bytes, each of which becomes one character.
    pub fn from_random(environment: Environment, random: &[u8; RANDOM]) -> Self {
        let random: String = random.iter().map(|byte| base62(u32::from(*byte))).collect();
        let check = check_of(environment, &random);
        Self { text: format!("{}{random}{check}", environment.key_prefix()).into(), environment }
    }

    /// The environment the key belongs to.
    pub fn environment(&self) -> Environment {
        self.environment
    }

    /// The whole key, for the `X-API-Key` header and for showing it once. Keep it out of logs.
    pub fn secret(&self) -> &str {
        &self.text
    }
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ApiKey({}***)", self.environment.key_prefix())
    }
}

impl std::str::FromStr for ApiKey {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        Self::parse(text)
    }
}

fn check_of(environment: Environment, random: &str) -> String {
    let mut hash = crc32fast::Hasher::new();
    hash.update(environment.key_prefix().as_bytes());
    hash.update(random.as_bytes());
    let crc = hash.finalize();
    (0..CHECK).rev().map(|place| base62(crc / 62_u32.pow(place))).collect()
}

fn base62(number: u32) -> char {
    ALPHABET.get(number as usize % ALPHABET.len()).map_or('0', |byte| char::from(*byte))
}

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
    fn hostile_text_is_refused() {
        for text in ["", "pk_live_", "pk_test_ñññññññññññññññññññññññññññññññññññññ", "sk_live_x"]
        {
            assert!(ApiKey::parse(text).is_err(), "{text}");
        }
    }
}
