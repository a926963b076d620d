//! The caller's name for one write, so that repeating it makes nothing twice (spec: Idempotency).

use sha2::{Digest, Sha256};

use super::{InvalidValue, macros::checked_text};

/// An idempotency key: 8-64 letters, digits, hyphens and underscores, chosen by the caller.
///
/// It is made with the request and not when sending, so that a process that crashed can send the
/// same request again. The server remembers it for 24 hours.
///
/// ```
/// # use parcelo::IdempotencyKey;
/// let key = IdempotencyKey::derive("shop-7", "order 1001");
/// assert_eq!(key, IdempotencyKey::derive("shop-7", "order 1001"));
/// assert_eq!(IdempotencyKey::parse(key.as_str())?, key);
/// # Ok::<(), parcelo::InvalidValue>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(Box<str>);

impl IdempotencyKey {
    /// The fewest characters of a key.
    pub const MIN: usize = 8;
    /// The most characters of a key.
    pub const MAX: usize = 64;

    /// Reads a key.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        let fits = (Self::MIN..=Self::MAX).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if fits { Ok(Self(text.into())) } else { Err(InvalidValue::IdempotencyKey) }
    }

    /// The key of `external_id` within `namespace`: the same two texts always give the same key, so
    /// running an import again creates nothing twice for 24 hours.
    pub fn derive(namespace: &str, external_id: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update((namespace.len() as u64).to_be_bytes());
        hash.update(namespace);
        hash.update(external_id);
        Self::of_bytes(hash.finalize().iter().take(24))
    }

    /// A key that nobody has used before.
    ///
    /// # Panics
    ///
    /// When the operating system gives no randomness, which leaves no safe way to go on.
    #[cfg(feature = "client")]
    pub fn random() -> Self {
        let mut bytes = [0_u8; 20];
        #[expect(
            clippy::expect_used,
            clippy::disallowed_methods,
            reason = "without randomness keys could collide; documented"
        )]
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        Self::of_bytes(bytes.iter())
    }

    fn of_bytes<'a>(bytes: impl Iterator<Item = &'a u8>) -> Self {
        let mut text = String::from("idk-");
        for byte in bytes {
            text.extend(char::from_digit((byte >> 4).into(), 16));
            text.extend(char::from_digit((byte & 15).into(), 16));
        }
        Self(text.into())
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

checked_text!(IdempotencyKey, r"^[A-Za-z0-9_-]{8,64}$", "order-2026-01-10-0001");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_to_sixty_four_plain_characters() {
        for good in ["12345678", "void-2026_01", &"k".repeat(64)] {
            assert!(IdempotencyKey::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "1234567", &"k".repeat(65), "with space", "ñandú-123", "a.b.c.d.e"] {
            assert!(IdempotencyKey::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_derived_key_separates_its_two_parts() {
        assert_ne!(IdempotencyKey::derive("ab", "c"), IdempotencyKey::derive("a", "bc"));
        assert!(IdempotencyKey::parse(IdempotencyKey::derive("", "").as_str()).is_ok());
    }
}
