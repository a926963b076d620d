//! The form that API keys and carrier keys share: a prefix that names the environment, 32 random base62 characters, and
//! 6 check characters, so that typos are found offline. A key that is parsed as opaque needs only the prefix.

use super::Environment;

const RANDOM: usize = 32;
const CHECK: u32 = 6;
/// Maximum length after the prefix: far more than that of any key, and less than that of a header.
const MAX: usize = 1_000;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The text of a key, and its environment. It has no `Debug`, so that it is never logged by mistake.
#[expect(missing_debug_implementations, reason = "it is secret")]
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey {
    text: Box<str>,
    environment: Environment,
}

impl SecretKey {
    /// Parses a key with one of these prefixes and correct check characters.
    pub fn parse(text: &str, prefix_of: impl Fn(Environment) -> &'static str) -> Option<Self> {
        let key = Self::parse_opaque(text, &prefix_of)?;
        key.is_well_formed(prefix_of(key.environment)).then_some(key)
    }

    /// Parses a key with one of these prefixes and any further characters that a header can contain.
    pub fn parse_opaque(
        text: &str,
        prefix_of: impl Fn(Environment) -> &'static str,
    ) -> Option<Self> {
        let prefix_is = |named: &Environment| text.starts_with(prefix_of(*named));
        let environment = Environment::ALL.into_iter().find(prefix_is)?;
        let rest = text.strip_prefix(prefix_of(environment))?;
        let is_opaque =
            (1..=MAX).contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_graphic());
        is_opaque.then(|| Self { text: text.into(), environment })
    }

    /// Returns `true` if the key has the form of the keys that the service issues, with correct check characters.
    pub fn is_well_formed(&self, prefix: &str) -> bool {
        let parts = self.text.strip_prefix(prefix).and_then(|rest| rest.split_at_checked(RANDOM));
        parts.is_some_and(|(random, check)| {
            random.bytes().all(|b| b.is_ascii_alphanumeric())
                && check_characters(prefix, random).eq(check.chars())
        })
    }

    /// Returns a key made from 32 random bytes, each encoded as one character.
    pub fn from_random(environment: Environment, prefix: &str, random: &[u8; RANDOM]) -> Self {
        let random: String = random.iter().map(|byte| base62(u32::from(*byte))).collect();
        let check: String = check_characters(prefix, &random).collect();
        Self { text: format!("{prefix}{random}{check}").into(), environment }
    }

    /// Returns the environment that the prefix names.
    pub fn environment(&self) -> Environment {
        self.environment
    }

    /// Returns the whole key.
    pub fn text(&self) -> &str {
        &self.text
    }
}

fn check_characters(prefix: &str, random: &str) -> impl Iterator<Item = char> {
    let mut hash = crc32fast::Hasher::new();
    hash.update(prefix.as_bytes());
    hash.update(random.as_bytes());
    let crc = hash.finalize();
    (0..CHECK).rev().map(move |place| base62(crc / 62_u32.pow(place)))
}

fn base62(number: u32) -> char {
    ALPHABET.get(number as usize % ALPHABET.len()).map_or('0', |byte| char::from(*byte))
}
