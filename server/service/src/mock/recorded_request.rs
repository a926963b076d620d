//! A record of the log: a request and its response.

use std::fmt;

use axum::body::Bytes;
use chrono::{DateTime, Utc};
use parcelo_types::{ApiKey, Operation};
use serde_json::Value;

use super::order_names::OrderNames;

/// Maximum size of a body that is kept.
pub(super) const MAX_BODY_BYTES: usize = 64 * 1024;

/// A request and its response.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RecordedRequest {
    /// The time of its arrival, by the server's clock.
    pub at: DateTime<Utc>,
    /// The operation; `None` for a request without one, such as a label link.
    pub operation: Option<Operation>,
    /// The HTTP method.
    pub method: String,
    /// The path's pattern, such as `/api/v1/tracking/{trackingNumber}`; empty if no route matched.
    pub path: String,
    /// The path's parameter: what matched the braces.
    pub parameter: Option<String>,
    /// The API key's prefix and last four characters.
    pub api_key: Option<String>,
    /// The idempotency key, from body or header.
    pub idempotency_key: Option<String>,
    /// The request's body.
    pub request: Body,
    /// The status of the service's response, whether or not a fault suppressed it; `None` if the operation was not
    /// executed, or the client left early.
    pub status: Option<u16>,
    /// The body of the service's response.
    pub answer: Body,
    /// Descriptions of the planned faults that were injected.
    pub faults: Vec<String>,
    pub(super) key: Option<ApiKey>,
    /// The orders that the request is about.
    pub(super) orders: OrderNames,
}

impl RecordedRequest {
    /// Returns the number of bytes that its bodies take in the log.
    pub(super) fn kept_bytes(&self) -> usize {
        self.request.kept.len() + self.answer.kept.len()
    }

    pub(super) fn drop_bodies(&mut self) {
        self.request.kept.clear();
        self.answer.kept.clear();
    }
}

/// A logged body. `Debug` shows only its length, since it may hold personal data.
#[derive(Clone, Default)]
pub struct Body {
    len: usize,
    kept: Bytes,
}

impl Body {
    /// Keeps a body's length, and its bytes if it is JSON of at most [`MAX_BODY_BYTES`].
    pub(super) fn from_bytes(bytes: &Bytes) -> Self {
        let is_json = bytes.trim_ascii_start().first() == Some(&b'{');
        let is_kept = is_json && bytes.len() <= MAX_BODY_BYTES;
        Self { len: bytes.len(), kept: if is_kept { bytes.clone() } else { Bytes::new() } }
    }

    /// Keeps only the length of a body that is too long.
    pub(super) fn too_long(len: usize) -> Self {
        Self { len, kept: Bytes::new() }
    }

    /// Returns its length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the body as JSON; `None` for files, for more than 64 KiB, and once the log holds 32 MiB of newer bodies.
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
