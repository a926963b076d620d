//! The caller's name for one write, so that repeating the write has no further effect (spec: Idempotency).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use sha2::{Digest, Sha256};

use super::{
    InvalidValue,
    hex::hex,
    key_state::{AttemptOutcome, KeyState, MAX_SENT_AGE, Memory, Moment},
    macros::checked_text,
};

/// An idempotency key: 8-64 letters, digits, hyphens and underscores, chosen by the caller
/// (docs/api.md, Idempotency).
///
/// It is made with the request and not when sending, so that a process that crashed can send the
/// same request again. The server remembers it for 24 hours; the client stops sending it ten minutes
/// earlier, so that no attempt reaches a server that has just forgotten the key.
///
/// A key and its clones remember when it was first sent, and whether the write may have been executed. Other keys
/// do not, even with the same text: a key that is derived, parsed or read by serde starts with no history. A process
/// that continues another one's work takes that history over with the request ([`Saved`](super::Saved)) or as a
/// [`KeyState`].
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
    memory: Mutex<Memory>,
    /// The key of the whole write, if this is the key of one of its requests: it remembers the outcome of each.
    whole: Option<IdempotencyKey>,
}

impl IdempotencyKey {
    /// Minimum length of a key, in characters.
    #[doc(hidden)]
    pub const MIN: usize = 8;
    /// Maximum length of a key, in characters.
    #[doc(hidden)]
    pub const MAX: usize = 64;
    /// Time for which the server remembers a key after it was first sent.
    #[doc(hidden)]
    pub const LIFETIME: TimeDelta = TimeDelta::hours(24);

    /// Parses a key. The text is not trimmed.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        let fits = (Self::MIN..=Self::MAX).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if fits { Ok(Self::new(text.into())) } else { Err(InvalidValue::IDEMPOTENCY_KEY) }
    }

    /// Returns the key of `external_id` within `namespace`: the same two texts always give the same key, so running an
    /// import again creates nothing twice for 24 hours. The namespace keeps two shops, or creating and voiding, apart.
    ///
    /// Each call makes a key with a separate memory: keep the key, or the request that contains it, for as long as you
    /// may send it again.
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
        Self::from_bytes(hash.finalize().iter().take(24))
    }

    /// Returns a new key: 160 random bits. Store it with the request before it is sent: after a crash it would be lost.
    ///
    /// # Panics
    ///
    /// If the operating system has no randomness: keys could collide.
    #[cfg(feature = "getrandom")]
    pub fn random() -> Self {
        let mut bytes = [0_u8; 20];
        #[expect(
            clippy::expect_used,
            clippy::disallowed_methods,
            reason = "without randomness keys could collide; documented"
        )]
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        Self::from_bytes(&bytes)
    }

    fn from_bytes<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> Self {
        Self::new(format!("idk-{}", hex(bytes)).into())
    }

    fn new(text: Box<str>) -> Self {
        Self(Arc::new(Inner { text, memory: Mutex::default(), whole: None }))
    }

    /// Returns the key of a part of this key's write. Its memory starts as a copy of this key's, and this key learns
    /// its outcome.
    pub(super) fn part(&self, operation: &str, contents: &str) -> Self {
        let text = Self::derive(&format!("{operation} {self}"), contents).as_str().into();
        let memory = Mutex::new(self.memory().merged_with(&KeyState::default()));
        Self(Arc::new(Inner { text, memory, whole: Some(self.clone()) }))
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // It is plain data, which a panic leaves valid.
        self.0.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the key as text.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Returns the time when it was first sent, as far as this process knows.
    pub fn first_sent(&self) -> Option<DateTime<Utc>> {
        self.memory().first_sent()
    }

    /// Returns `false` only if no request with this key can have been executed, as far as this process knows: nothing
    /// was sent, or a response says that nothing was done.
    ///
    /// An unknown outcome stays unknown after the call. It is settled by a response that says that the write was
    /// executed, that the key belongs to another request (if that one had the unknown outcome, it was executed), or that
    /// the service looked the key up and refused the same request. Once it was executed, this stays true. Any other
    /// refusal, such as of the API key or of too many requests, settles nothing.
    pub fn may_have_executed(&self) -> bool {
        self.state().may_have_executed()
    }

    /// Returns what this process knows about the key, to be saved for a process that may have to continue.
    pub fn state(&self) -> KeyState {
        self.memory().state()
    }

    /// Returns the key with the state that an earlier process saved, added to its own: the earlier first attempt
    /// counts, and an unknown outcome stays unknown. Clones made before do not share the added state.
    ///
    /// ```
    /// # use parcelo::IdempotencyKey;
    /// # use parcelo::model::KeyState;
    /// # let at = "2026-01-10T15:05:00Z".parse().unwrap();
    /// # let written = serde_json::to_string(&KeyState::sent_at(at)).unwrap();
    /// let state: KeyState = serde_json::from_str(&written).unwrap();
    /// let key = IdempotencyKey::parse("order-2026-01-10-0001")?.with_state(&state);
    /// assert_eq!(key.first_sent(), state.first_sent());
    /// assert!(key.may_have_executed());
    /// # Ok::<(), parcelo::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn with_state(self, state: &KeyState) -> Self {
        let memory = Mutex::new(self.memory().merged_with(state));
        Self(Arc::new(Inner { text: self.as_str().into(), memory, whole: self.0.whole.clone() }))
    }

    /// Returns the key, first sent at `at` or later with an unknown outcome: for a process that continues where another
    /// one stopped, and that has no [`KeyState`] of it. Give the earliest possible time, such as when the order was
    /// saved; a key that knows an earlier one keeps that.
    ///
    /// Such a process knows the key's age by the wall clock alone, and one with a state by the dates of
    /// the service's responses too: if the wall clock was set back in between, the key looks younger by that much.
    ///
    /// ```
    /// # use parcelo::IdempotencyKey;
    /// let key = IdempotencyKey::parse("order-2026-01-10-0001")?;
    /// let key = key.first_sent_at("2026-01-10T15:05:00Z".parse().unwrap());
    /// assert_eq!(key.first_sent().unwrap().to_rfc3339(), "2026-01-10T15:05:00+00:00");
    /// # Ok::<(), parcelo::InvalidValue>(())
    /// ```
    #[must_use]
    pub fn first_sent_at(self, at: DateTime<Utc>) -> Self {
        self.with_state(&KeyState::sent_at(at))
    }
}

/// The history of a key, which the client alone writes.
#[doc(hidden)]
impl IdempotencyKey {
    /// Records that an attempt to send the key begins.
    pub fn begin_attempt(&self, monotonic: Option<TimeDelta>, now: impl Fn() -> Moment) {
        for mut memory in self.memories() {
            memory.begin_attempt(monotonic, &now);
        }
    }

    /// Records that an attempt has ended; `request` returns the digest of its request.
    pub fn end_attempt(&self, outcome: AttemptOutcome, request: impl Fn() -> String) {
        for mut memory in self.memories() {
            memory.end_attempt(outcome, &request);
        }
    }

    /// Records the time on the service's clock, from a response.
    pub fn note_service_time(&self, date: DateTime<Utc>) {
        for mut memory in self.memories() {
            memory.note_service_time(date);
        }
    }

    /// Returns the memory of this key, then that of the whole write that it is a part of.
    fn memories(&self) -> impl Iterator<Item = MutexGuard<'_, Memory>> {
        std::iter::successors(Some(self), |key| key.0.whole.as_ref()).map(Self::memory)
    }

    /// Returns the time left in which the key may be sent: all of it if the key has not been sent yet.
    pub fn time_left(&self, now: impl FnOnce() -> Moment) -> std::time::Duration {
        let memory = self.memory();
        // Most keys were never sent before, and no clock needs to be read.
        let age = memory.first_sent().and_then(|_| memory.age(&now()));
        let age = age.unwrap_or_default().max(TimeDelta::zero());
        (MAX_SENT_AGE - age).to_std().unwrap_or_default()
    }

    /// Returns the time for which the service may still execute an attempt after the key has expired; `None` if it
    /// cannot.
    pub fn time_under_way(&self, now: &Moment) -> Option<std::time::Duration> {
        let left = self.memory().time_under_way(now).to_std().ok()?;
        Some(left).filter(|left| !left.is_zero())
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

impl Ord for IdempotencyKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl PartialOrd for IdempotencyKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl std::hash::Hash for IdempotencyKey {
    fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
        self.as_str().hash(hasher);
    }
}

checked_text!(
    IdempotencyKey,
    // A blank one counts as absent, in the body and in the headers.
    format!("^\\s*$|^[A-Za-z0-9_-]{{{},{}}}$", Self::MIN, Self::MAX),
    "order-2026-01-10-0001"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_derived_key_separates_its_two_parts() {
        assert_ne!(IdempotencyKey::derive("ab", "c"), IdempotencyKey::derive("a", "bc"));
        assert!(IdempotencyKey::parse(IdempotencyKey::derive("", "").as_str()).is_ok());
    }

    #[test]
    fn only_a_key_and_its_clones_share_their_state() {
        let key = IdempotencyKey::derive("shop", "1");
        let sent = key.clone().first_sent_at(DateTime::from_timestamp(7, 0).unwrap());
        assert_eq!(sent.clone().first_sent(), DateTime::from_timestamp(7, 0));
        assert!(sent.clone().may_have_executed() && !key.may_have_executed());
        let again = IdempotencyKey::derive("shop", "1");
        assert!(again == sent && !again.may_have_executed() && again.first_sent().is_none());
        assert_eq!(serde_json::to_value(&sent).unwrap(), serde_json::json!(again.as_str()));
        assert_eq!(again.with_state(&sent.state()).state(), sent.state());
    }
}
