//! The request log of a mock server: a ring buffer, limited in records and in bytes.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use super::{expect::Expectations, recorded_request::RecordedRequest};

/// Maximum size of all headers and bodies together, so that a long load test does not fill the memory. Beyond it the
/// oldest records lose theirs.
const MAX_LOG_BYTES: usize = 32 * 1024 * 1024;

/// The request log of one server.
#[derive(Debug)]
pub(super) struct RequestLog {
    ring: Mutex<RingBuffer>,
    expectations: Mutex<Expectations>,
    added: watch::Sender<()>,
}

#[derive(Debug)]
struct RingBuffer {
    max_records: usize,
    max_bytes: usize,
    records: VecDeque<RecordedRequest>,
    bytes: usize,
    /// The number of oldest records that have lost their headers and bodies.
    without_contents: usize,
}

impl RequestLog {
    pub(super) fn new(max_records: usize) -> Self {
        let ring = Mutex::new(RingBuffer::new(max_records, MAX_LOG_BYTES));
        Self { ring, expectations: Mutex::default(), added: watch::Sender::new(()) }
    }

    /// Returns `true` if requests need not be recorded: the log keeps none, and no test expects any.
    pub(super) fn is_off(&self) -> bool {
        self.lock().max_records == 0 && self.expectations().is_empty()
    }

    /// Returns the test's expectations of requests.
    pub(super) fn expectations(&self) -> MutexGuard<'_, Expectations> {
        self.expectations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, record: RecordedRequest) {
        let mut ring = self.lock();
        self.expectations().count(&record, &ring.records);
        ring.add(record);
        drop(ring);
        self.added.send_replace(());
    }

    /// Reads the records, oldest first, under the lock.
    pub(super) fn read<T>(&self, read: impl FnOnce(&VecDeque<RecordedRequest>) -> T) -> T {
        read(&self.lock().records)
    }

    /// Returns a channel that notifies of every record added from now on.
    pub(super) fn watch(&self) -> watch::Receiver<()> {
        self.added.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, RingBuffer> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RingBuffer {
    fn new(max_records: usize, max_bytes: usize) -> Self {
        Self { max_records, max_bytes, records: VecDeque::new(), bytes: 0, without_contents: 0 }
    }

    /// Adds a record, and removes the oldest beyond the limits.
    fn add(&mut self, record: RecordedRequest) {
        while self.records.len() >= self.max_records {
            let Some(oldest) = self.records.pop_front() else { return };
            self.bytes -= oldest.kept_bytes();
            self.without_contents = self.without_contents.saturating_sub(1);
        }
        self.bytes += record.kept_bytes();
        self.records.push_back(record);
        while self.bytes > self.max_bytes {
            let Some(oldest) = self.records.get_mut(self.without_contents) else { return };
            self.bytes -= oldest.kept_bytes();
            oldest.drop_contents();
            self.without_contents += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::{
        body::Bytes,
        http::{HeaderMap, HeaderValue},
    };
    use chrono::DateTime;

    use super::*;
    use crate::mock::{
        Body,
        order_names::OrderNames,
        recorded_request::{Headers, MAX_BODY_BYTES},
    };

    fn record(request: &'static str) -> RecordedRequest {
        RecordedRequest {
            at: DateTime::default(),
            operation: None,
            method: "GET".to_owned(),
            path: String::new(),
            parameter: None,
            api_key: None,
            idempotency_key: None,
            headers: Headers::default(),
            request: Body::from_bytes(&Bytes::from_static(request.as_bytes())),
            status: None,
            answer: Body::default(),
            faults: Vec::new(),
            key: None,
            orders: OrderNames::EMPTY,
        }
    }

    /// Returns the length of each record's body, and `true` if its bytes are kept.
    fn bodies(ring: &RingBuffer) -> Vec<(usize, bool)> {
        ring.records.iter().map(|one| (one.request.len(), one.request.json().is_some())).collect()
    }

    #[test]
    fn the_oldest_lose_their_bodies_first_and_are_removed_first() {
        let (max_records, max_bytes) = (3, 11);
        let mut ring = RingBuffer::new(max_records, max_bytes);
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
            let held: usize = ring.records.iter().map(RecordedRequest::kept_bytes).sum();
            assert_eq!(ring.bytes, held);
            assert!(held <= max_bytes);
        }
    }

    #[test]
    fn headers_count_in_bytes_and_are_dropped_with_the_bodies() {
        let mut headers = HeaderMap::new();
        headers.append("x-shop", HeaderValue::from_static("1"));
        headers.append("x-shop", HeaderValue::from_static("2"));
        let mut ring = RingBuffer::new(9, 40); // each record has 13 bytes of headers, and a body of 20
        for _ in 0..2 {
            let headers = Headers::new(&headers, |_, _| None);
            ring.add(RecordedRequest { headers, ..record(r#"{"some":"twenty so"}"#) });
        }
        let kept: Vec<_> = ring.records.iter().map(|one| one.header("X-Shop")).collect();
        assert_eq!((kept, ring.bytes), (vec![None, Some("1, 2")], 33));
    }

    #[test]
    fn debug_shows_only_a_bodys_length() {
        let body = Body::from_bytes(&Bytes::from_static(br#"{"fullName":"CANARY"}"#));
        assert_eq!(format!("{body:?}"), "Body(21 bytes)");
        let long = Body::from_bytes(&Bytes::from(["{", &" ".repeat(MAX_BODY_BYTES)].concat()));
        assert_eq!((long.len(), long.kept().len()), (MAX_BODY_BYTES + 1, 0));
    }
}
