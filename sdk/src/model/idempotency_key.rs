//! The caller's name for one write, so that repeating it makes nothing twice (spec: Idempotency).

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use chrono::{DateTime, TimeDelta, Utc};
use sha2::{Digest, Sha256};

use super::{InvalidValue, macros::checked_text};

/// An idempotency key: 8-64 letters, digits, hyphens and underscores, chosen by the caller
/// (docs/api.md, Idempotency).
///
/// It is made with the request and not when sending, so that a process that crashed can send the
/// same request again. The server remembers it for 24 hours; the client refuses to send a key that
/// was first sent before that. A key and its clones know when that was; keys are equal when their
/// texts are.
///
/// ```
/// # use parcelo::IdempotencyKey;
/// let key = IdempotencyKey::derive("shop-7", "order 1001");
/// assert_eq!(key, IdempotencyKey::derive("shop-7", "order 1001"));
/// assert_eq!(IdempotencyKey::parse(key.as_str())?, key);
/// # Ok::<(), parcelo::InvalidValue>(())
/// ```
#[derive(Clone)]
pub struct IdempotencyKey(Arc<Inner>);

struct Inner {
    text: Box<str>,
    /// Unix milliseconds, or `NEVER`.
    first_sent: AtomicI64,
}

const NEVER: i64 = i64::MIN;

impl IdempotencyKey {
    /// The fewest characters of a key.
    pub const MIN: usize = 8;
    /// The most characters of a key.
    pub const MAX: usize = 64;
    /// How long the server remembers a key after it was first sent.
    pub const LIFE: TimeDelta = TimeDelta::hours(24);

    /// Reads a key, exactly as it is: nothing is trimmed.
    ///
    /// Errors: [`InvalidValue::IdempotencyKey`].
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        let fits = (Self::MIN..=Self::MAX).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if fits { Ok(Self::new(text.into())) } else { Err(InvalidValue::IdempotencyKey) }
    }

    /// The key of `external_id` within `namespace`: the same two texts always give the same key, so
    /// running an import again creates nothing twice for 24 hours. The namespace keeps two shops, or
    /// creating and voiding, apart.
    ///
    /// ```
    /// # use parcelo::IdempotencyKey;
    /// let order = IdempotencyKey::derive("shop-7", "1001");
    /// assert_ne!(order, IdempotencyKey::derive("shop-8", "1001"));
    /// assert_ne!(order, IdempotencyKey::derive("shop-7 void", "1001"));
    /// ```
    pub fn derive(namespace: &str, external_id: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update((namespace.len() as u64).to_be_bytes());
        hash.update(namespace);
        hash.update(external_id);
        Self::of_bytes(hash.finalize().iter().take(24))
    }

    /// A key that nobody has used before: 160 random bits. Write it down with the request before it is
    /// sent, or a crash leaves nobody who knows it.
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
        Self::new(text.into())
    }

    fn new(text: Box<str>) -> Self {
        Self(Arc::new(Inner { text, first_sent: AtomicI64::new(NEVER) }))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// When it was first sent, as far as this process knows.
    pub fn first_sent(&self) -> Option<DateTime<Utc>> {
        match self.0.first_sent.load(Ordering::Relaxed) {
            NEVER => None,
            millis => DateTime::from_timestamp_millis(millis),
        }
    }

    /// The key, already sent at a time: for a process that goes on where another one stopped.
    ///
    /// ```
    /// # use parcelo::IdempotencyKey;
    /// let key = IdempotencyKey::parse("order-2026-01-10-0001")?;
    /// let key = key.sent_before("2026-01-10T15:05:00Z".parse().unwrap());
    /// assert_eq!(key.first_sent().unwrap().to_rfc3339(), "2026-01-10T15:05:00+00:00");
    /// # Ok::<(), parcelo::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn sent_before(self, at: DateTime<Utc>) -> Self {
        let key = Self::new(self.as_str().into());
        key.0.first_sent.store(at.timestamp_millis(), Ordering::Relaxed);
        key
    }

    /// Notes that the key is about to be sent, and tells when it was for the first time.
    #[cfg(feature = "client")]
    pub(crate) fn send_at(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        let (sent, now_millis) = (&self.0.first_sent, now.timestamp_millis());
        match sent.compare_exchange(NEVER, now_millis, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => now,
            Err(first) => DateTime::from_timestamp_millis(first).unwrap_or(now),
        }
    }
}

impl std::fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("IdempotencyKey").field(&self.as_str()).finish()
    }
}

impl PartialEq for IdempotencyKey {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for IdempotencyKey {}

impl std::hash::Hash for IdempotencyKey {
    fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
        self.as_str().hash(hasher);
    }
}

checked_text!(
    IdempotencyKey,
    format!("^[A-Za-z0-9_-]{{{},{}}}$", Self::MIN, Self::MAX),
    "order-2026-01-10-0001"
);

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

    #[cfg(feature = "client")]
    #[test]
    fn a_key_and_its_clones_remember_when_they_were_first_sent() {
        let at = |seconds: i64| DateTime::from_timestamp_millis(seconds * 1000).unwrap();
        let key = IdempotencyKey::parse("order-0001").unwrap();
        let clone = key.clone();
        assert_eq!(key.first_sent(), None);
        assert_eq!((key.send_at(at(7)), clone.send_at(at(9))), (at(7), at(7)));
        assert_eq!(clone.first_sent(), Some(at(7)));
        let again = IdempotencyKey::parse("order-0001").unwrap();
        assert!(again == key && again.first_sent().is_none());
        assert_eq!(key.clone().sent_before(at(3)).first_sent(), Some(at(3)));
        assert_eq!(key.first_sent(), Some(at(7)));
    }
}
