//! The form that API keys and carrier keys share: a prefix that names the environment, 32 random
//! base62 characters, and 6 that check the rest, so that a typo is seen offline.

use super::Environment;

const RANDOM: usize = 32;
const CHECK: u32 = 6;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The text of a key, and the environment it is for. It has no `Debug`: it never shows itself.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct SecretKey {
    text: Box<str>,
    environment: Environment,
}

impl SecretKey {
    /// Reads a key whose prefixes are `prefix_of`.
    pub(super) fn parse(
        text: &str,
        prefix_of: impl Fn(Environment) -> &'static str,
    ) -> Option<Self> {
        let environment =
            Environment::ALL.into_iter().find(|named| text.starts_with(prefix_of(*named)))?;
        let prefix = prefix_of(environment);
        let (random, check) = text.strip_prefix(prefix)?.split_at_checked(RANDOM)?;
        let sound =
            random.bytes().all(|b| b.is_ascii_alphanumeric()) && check_of(prefix, random) == check;
        sound.then(|| Self { text: text.into(), environment })
    }

    /// The key made of 32 random bytes, each of which becomes one character.
    pub(super) fn from_random(
        environment: Environment,
        prefix: &str,
        random: &[u8; RANDOM],
    ) -> Self {
        let random: String = random.iter().map(|byte| base62(u32::from(*byte))).collect();
        let check = check_of(prefix, &random);
        Self { text: format!("{prefix}{random}{check}").into(), environment }
    }

    pub(super) fn environment(&self) -> Environment {
        self.environment
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

fn check_of(prefix: &str, random: &str) -> String {
    let mut hash = crc32fast::Hasher::new();
    hash.update(prefix.as_bytes());
    hash.update(random.as_bytes());
    let crc = hash.finalize();
    (0..CHECK).rev().map(|place| base62(crc / 62_u32.pow(place))).collect()
}

fn base62(number: u32) -> char {
    ALPHABET.get(number as usize % ALPHABET.len()).map_or('0', |byte| char::from(*byte))
}
