//! Idempotency: compares a request with the stored record of the same idempotency key
//! (spec: Idempotency; docs/api.md, Idempotency).

use parcelo_types::{IdempotencyKey, Operation, internal::Fingerprint};
use sha2::{Digest, Sha256};

use super::Tenant;
use crate::Millis;

/// Time for which a key is remembered after its first use, in milliseconds.
pub const LIFETIME_MILLIS: i64 = 24 * Millis::HOUR;

/// A hash of API key, operation and idempotency key. An idempotency key is unique within the other two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordKey(pub [u8; 16]);

impl RecordKey {
    /// Returns the record key of a caller's key.
    pub fn new(api_key: i64, operation: Operation, key: &IdempotencyKey) -> Self {
        let mut hash = Sha256::new();
        hash.update(api_key.to_be_bytes());
        hash.update(operation.path());
        hash.update([0]);
        hash.update(key.as_str());
        let mut half = [0; 16];
        half.iter_mut().zip(hash.finalize()).for_each(|(to, from)| *to = from);
        Self(half)
    }
}

/// A completed write and its response.
#[derive(Clone, PartialEq, Eq)]
pub struct IdempotencyRecord {
    /// The key in its scope.
    pub key: RecordKey,
    /// The tenant that owns it.
    pub tenant: Tenant,
    /// The fingerprint of the request.
    pub fingerprint: Fingerprint,
    /// The time of the first request.
    pub first_seen: Millis,
    /// The body of the response.
    pub body: Vec<u8>,
}

impl IdempotencyRecord {
    /// Returns the time at which the record expires.
    pub const fn expires_at(&self) -> Millis {
        self.first_seen.plus(LIFETIME_MILLIS)
    }
}

// The response is not logged, because it contains a label link, which gives anyone access to the label.
impl std::fmt::Debug for IdempotencyRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdempotencyRecord")
            .field("tenant", &self.tenant)
            .field("first_seen", &self.first_seen)
            .finish_non_exhaustive()
    }
}

/// The decision on a request with an idempotency key.
#[derive(Debug, PartialEq, Eq)]
pub enum ReplayDecision {
    /// The key is new, or its record has expired.
    Fresh,
    /// The same request was executed before.
    Replay(IdempotencyRecord),
    /// The key was used with another request.
    Conflict(IdempotencyRecord),
}

/// Returns `true` if a record whose first request came at `first_seen` is still valid.
pub const fn is_within_lifetime(first_seen: Millis, now: Millis) -> bool {
    now.0 < first_seen.plus(LIFETIME_MILLIS).0
}

/// Decides whether a request is new, a replay or a conflict, by the record that was found under its key.
pub fn decide_replay(
    found: Option<IdempotencyRecord>,
    fingerprint: &Fingerprint,
    now: Millis,
) -> ReplayDecision {
    match found {
        Some(record) if is_within_lifetime(record.first_seen, now) => {
            if record.fingerprint == *fingerprint {
                ReplayDecision::Replay(record)
            } else {
                ReplayDecision::Conflict(record)
            }
        }
        _ => ReplayDecision::Fresh,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> IdempotencyRecord {
        IdempotencyRecord {
            key: RecordKey([1; 16]),
            tenant: Tenant::from_number(3),
            fingerprint: [7; 32],
            first_seen: Millis(1_000),
            body: b"{}".to_vec(),
        }
    }

    #[test]
    fn a_key_is_replayed_or_conflicts_and_expires_after_24_hours() {
        let last = Millis(1_000 + LIFETIME_MILLIS - 1);
        assert_eq!(decide_replay(None, &[7; 32], last), ReplayDecision::Fresh);
        assert_eq!(decide_replay(Some(record()), &[7; 32], last), ReplayDecision::Replay(record()));
        assert_eq!(
            decide_replay(Some(record()), &[8; 32], last),
            ReplayDecision::Conflict(record())
        );
        assert_eq!(decide_replay(Some(record()), &[7; 32], last.plus(1)), ReplayDecision::Fresh);
    }

    #[test]
    fn a_record_key_depends_on_api_key_operation_and_key() {
        let key = IdempotencyKey::parse("same-key-1").unwrap();
        let one = RecordKey::new(1, Operation::CreateOrder, &key);
        assert_eq!(one, RecordKey::new(1, Operation::CreateOrder, &key));
        assert_ne!(one, RecordKey::new(2, Operation::CreateOrder, &key));
        assert_ne!(one, RecordKey::new(1, Operation::VoidOrders, &key));
        assert_ne!(
            one,
            RecordKey::new(
                1,
                Operation::CreateOrder,
                &IdempotencyKey::parse("same-key-2").unwrap()
            )
        );
    }
}
