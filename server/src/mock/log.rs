//! The requests that a mock server remembers: a ring, bounded in number and in bytes.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use axum::body::Bytes;
use chrono::{DateTime, Utc};
use parcelo::{ApiKey, Operation};
use serde_json::Value;
use tokio::sync::watch;

use super::{expect::Expectations, order_names::OrderNames};

/// The most bytes of one body that are kept.
pub(super) const LONGEST_BODY: usize = 64 * 1024;
/// The most bytes of all bodies together; beyond it the oldest records lose theirs.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// A request and its answer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Recorded {
    /// When it came in, by the server's clock.
    pub at: DateTime<Utc>,
    /// The operation; none for what is no operation, such as a label link.
    pub operation: Option<Operation>,
    /// The HTTP method.
    pub method: String,
    /// The pattern of its path, as in `/api/v1/tracking/{trackingNumber}`; empty when no route has it.
    pub path: String,
    /// What stood in the braces.
    pub parameter: Option<String>,
    /// The API key's prefix and last four characters.
    pub api_key: Option<String>,
    /// The idempotency key, from body or header.
    pub idempotency_key: Option<String>,
    /// What was sent.
    pub request: Body,
    /// The status of the service's answer, whether or not a fault kept it from leaving; none when
    /// the operation was not carried out, or the client had gone.
    pub status: Option<u16>,
    /// The service's answer.
    pub answer: Body,
    /// The planned faults that it met, in words.
    pub faults: Vec<String>,
    pub(super) key: Option<ApiKey>,
    /// The orders that it is about.
    pub(super) orders: OrderNames,
}

/// A body as it is remembered. `Debug` shows its length only, for it may hold personal data.
#[derive(Clone, Default)]
pub struct Body {
    len: usize,
    kept: Bytes,
}

impl Body {
    /// Remembers a body's length, and of JSON that is not too long the bytes.
    pub(super) fn of(bytes: &Bytes) -> Self {
        let is_json = bytes.trim_ascii_start().first() == Some(&b'{');
        let is_kept = is_json && bytes.len() <= LONGEST_BODY;
        Self { len: bytes.len(), kept: if is_kept { bytes.clone() } else { Bytes::new() } }
    }

    /// Remembers that there was a body too long to keep.
    pub(super) fn long(len: usize) -> Self {
        Self { len, kept: Bytes::new() }
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The JSON in it; none for files, for more than 64 KiB, and once the log holds 32 MiB of newer
    /// bodies.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.kept).ok()
    }

    pub(super) fn kept(&self) -> &[u8] {
        &self.kept
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({} bytes)", self.len)
    }
}

/// The log of one server.
#[derive(Debug)]
pub(super) struct Log {
    ring: Mutex<Ring>,
    expectations: Mutex<Expectations>,
    added: watch::Sender<()>,
}

#[derive(Debug)]
struct Ring {
    most: usize,
    most_bytes: usize,
    records: VecDeque<Recorded>,
    bytes: usize,
    /// How many of the oldest records have lost their bodies.
    bare: usize,
}

impl Log {
    pub(super) fn of(most: usize) -> Self {
        let ring = Mutex::new(Ring::of(most, MOST_BYTES));
        Self { ring, expectations: Mutex::default(), added: watch::Sender::new(()) }
    }

    /// Whether requests need not be looked at: none is remembered, and none is expected.
    pub(super) fn is_off(&self) -> bool {
        self.locked().most == 0 && self.expectations().are_none()
    }

    /// What tests expect of requests to come.
    pub(super) fn expectations(&self) -> MutexGuard<'_, Expectations> {
        self.expectations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, record: Recorded) {
        let mut ring = self.locked();
        self.expectations().count(&record, &ring.records);
        ring.add(record);
        drop(ring);
        self.added.send_replace(());
    }

    /// What `read` makes of the records, oldest first.
    pub(super) fn read<T>(&self, read: impl FnOnce(&VecDeque<Recorded>) -> T) -> T {
        read(&self.locked().records)
    }

    /// Tells of every record that is added from now on.
    pub(super) fn watch(&self) -> watch::Receiver<()> {
        self.added.subscribe()
    }

    fn locked(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    fn of(most: usize, most_bytes: usize) -> Self {
        Self { most, most_bytes, records: VecDeque::new(), bytes: 0, bare: 0 }
    }

    fn add(&mut self, record: Recorded) {
        while self.records.len() >= self.most {
            let Some(oldest) = self.records.pop_front() else { return };
            self.bytes -= oldest.bytes();
            self.bare = self.bare.saturating_sub(1);
        }
        self.bytes += record.bytes();
        self.records.push_back(record);
        while self.bytes > self.most_bytes {
            let Some(oldest) = self.records.get_mut(self.bare) else { return };
            self.bytes -= oldest.bytes();
            oldest.forget_bodies();
            self.bare += 1;
        }
    }
}

impl Recorded {
    fn bytes(&self) -> usize {
        self.request.kept.len() + self.answer.kept.len()
    }

    fn forget_bodies(&mut self) {
        self.request.kept.clear();
        self.answer.kept.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(request: &'static str) -> Recorded {
        Recorded {
            at: DateTime::default(),
            operation: None,
            method: "GET".to_owned(),
            path: String::new(),
            parameter: None,
            api_key: None,
            idempotency_key: None,
            request: Body::of(&Bytes::from_static(request.as_bytes())),
            status: None,
            answer: Body::default(),
            faults: Vec::new(),
            key: None,
            orders: OrderNames::NONE,
        }
    }

    /// The length of each record's body, and whether its bytes are there.
    fn bodies(ring: &Ring) -> Vec<(usize, bool)> {
        ring.records.iter().map(|one| (one.request.len(), one.request.json().is_some())).collect()
    }

    #[test]
    fn the_oldest_go_first_and_their_bodies_before_them() {
        let (most, most_bytes) = (3, 11);
        let mut ring = Ring::of(most, most_bytes);
        let table: [(&str, &[(usize, bool)]); 6] = [
            (r#"{"a":1}"#, &[(7, true)]),
            ("{}", &[(7, true), (2, true)]),
            (r#"{"a":2}"#, &[(7, false), (2, true), (7, true)]),
            (r#"{"b":34}"#, &[(2, false), (7, false), (8, true)]),
            ("{}", &[(7, false), (8, true), (2, true)]),
            ("%PDF", &[(8, true), (2, true), (4, false)]),
        ];
        for (added, expected) in table {
            ring.add(record(added));
            assert_eq!(bodies(&ring), expected, "{added}");
            let held: usize = ring.records.iter().map(Recorded::bytes).sum();
            assert_eq!(ring.bytes, held);
            assert!(held <= most_bytes);
        }
    }

    #[test]
    fn a_log_of_nothing_holds_nothing() {
        let log = Log::of(0);
        log.add(record("{}"));
        assert!(log.is_off() && log.read(VecDeque::is_empty));
    }

    #[test]
    fn a_body_shows_its_length_only() {
        let body = Body::of(&Bytes::from_static(br#"{"fullName":"CANARY"}"#));
        assert_eq!(format!("{body:?}"), "Body(21 bytes)");
        let long = Body::of(&Bytes::from(["{", &" ".repeat(LONGEST_BODY)].concat()));
        assert_eq!((long.len(), long.kept.len()), (LONGEST_BODY + 1, 0));
    }
}
