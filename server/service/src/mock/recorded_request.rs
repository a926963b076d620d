//! A record of the log: a request and its response.

use std::{borrow::Cow, fmt};

use axum::{
    body::Bytes,
    http::{HeaderMap, HeaderName, HeaderValue},
};
use chrono::{DateTime, Utc};
use parcelo_types::{ApiKey, Operation, internal::time};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{key_mask::mask_keys, order_names::OrderNames};

/// Maximum size of a body that is kept.
pub(super) const MAX_BODY_BYTES: usize = 64 * 1024;

/// A request and its response.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RecordedRequest {
    /// The time of its arrival, by the server's clock.
    #[serde(serialize_with = "time::serialize")]
    pub at: DateTime<Utc>,
    /// The operation; a request such as that of a label link has none.
    #[serde(serialize_with = "serialize_name")]
    #[cfg_attr(test, schema(value_type = Option<String>, required))]
    pub operation: Option<Operation>,
    /// The HTTP method.
    pub method: String,
    /// The path's pattern, such as `/api/v1/tracking/{trackingNumber}`; empty if no route matched.
    pub path: String,
    /// The path's parameter: what matched the braces.
    #[cfg_attr(test, schema(required))]
    pub parameter: Option<String>,
    /// The API key's prefix and last four characters.
    #[cfg_attr(test, schema(required))]
    pub api_key: Option<String>,
    /// The idempotency key, from body or header.
    #[cfg_attr(test, schema(required))]
    pub idempotency_key: Option<String>,
    /// The request's headers by their names in lower case. `authorization`, `proxy-authorization`, `cookie`,
    /// `x-api-key` and `x-carrier-key` are `…` if they hold no key. Keys are shortened wherever they stand in the record.
    #[cfg_attr(test, schema(value_type = std::collections::BTreeMap<String, String>))]
    pub(super) headers: Headers,
    /// The request's body; JSON `null` if it is not kept or not JSON.
    #[cfg_attr(test, schema(value_type = Value))]
    pub request: Body,
    /// The status of the service's response, whether or not a fault suppressed it; none if the operation was not
    /// executed, or the client left early.
    #[cfg_attr(test, schema(required))]
    pub status: Option<u16>,
    /// The body of the service's response, like that of the request.
    #[cfg_attr(test, schema(value_type = Value))]
    pub answer: Body,
    /// Descriptions of the planned faults that were injected.
    pub faults: Vec<String>,
    #[serde(skip)]
    pub(super) key: Option<ApiKey>,
    /// The orders that the request is about.
    #[serde(skip)]
    pub(super) orders: OrderNames,
}

impl RecordedRequest {
    /// Returns the value of a header of the request, by its name in any case. The values of a header that was sent
    /// several times are joined by commas.
    ///
    /// `None` also once the log holds 32 MiB of newer requests. API keys and carrier keys are shortened to their prefix
    /// and last four characters; what else is in `authorization`, `proxy-authorization`, `cookie`, `x-api-key` and
    /// `x-carrier-key` is `…`. Credentials of your own in other headers are in the log.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), parcelo::Error> {
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::start().await;
    /// let client = server.client(&server.key().issue());
    /// client.orders().create(&MockServer::order("SB-SUCCESS-0001")).await?;
    /// let sent = server.requests().all().remove(0);
    /// assert_eq!(sent.header("Content-Type"), Some("application/json"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().find(|(one, _)| one.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Returns the request's headers as names in lower case and values, as [`header`](Self::header) describes them.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter()
    }

    /// Returns the number of bytes that its headers and bodies take in the log.
    pub(super) fn kept_bytes(&self) -> usize {
        self.headers.0.len() + self.request.kept.len() + self.answer.kept.len()
    }

    /// Drops its headers and bodies.
    pub(super) fn drop_contents(&mut self) {
        self.headers = Headers::default();
        self.request.kept.clear();
        self.answer.kept.clear();
    }
}

/// The headers of a logged request: a line `name: value` for each, in one text because most requests are never looked
/// at. `Debug` shows only its length, since values may be personal data.
#[derive(Clone, Default)]
pub(super) struct Headers(String);

impl Headers {
    /// Copies the headers. `redact` returns the value to show instead of a secret.
    pub(super) fn new(
        headers: &HeaderMap,
        redact: impl Fn(&HeaderName, &HeaderValue) -> Option<String>,
    ) -> Self {
        let mut lines = String::new();
        for name in headers.keys() {
            lines.push_str(name.as_str());
            let mut separator = ": ";
            for value in headers.get_all(name) {
                let shown = redact(name, value)
                    .map_or_else(|| String::from_utf8_lossy(value.as_bytes()), Cow::Owned);
                lines.extend([separator, &*shown]);
                separator = ", ";
            }
            lines.push('\n');
        }
        Self(lines)
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.lines().filter_map(|line| line.split_once(": "))
    }
}

impl Serialize for Headers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Headers({} bytes)", self.0.len())
    }
}

#[expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "serde gives a reference to the field"
)]
fn serialize_name<S: Serializer>(
    operation: &Option<Operation>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    operation.map(Operation::name).serialize(serializer)
}

/// A logged body. `Debug` shows only its length, since it may hold personal data.
#[derive(Clone, Default)]
pub struct Body {
    len: usize,
    kept: Bytes,
}

impl Body {
    /// Keeps a body's length, and its bytes, with keys shortened, if it is JSON of at most [`MAX_BODY_BYTES`].
    pub(super) fn from_bytes(bytes: &Bytes) -> Self {
        let is_json = bytes.trim_ascii_start().first() == Some(&b'{');
        let is_kept = is_json && bytes.len() <= MAX_BODY_BYTES;
        let kept = if is_kept { shorten_keys(bytes) } else { Bytes::new() };
        Self { len: bytes.len(), kept }
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

    /// Returns the body as JSON; `None` for files, for more than 64 KiB, and once the log holds 32 MiB of newer requests.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.kept).ok()
    }

    pub(super) fn kept(&self) -> &[u8] {
        &self.kept
    }
}

fn shorten_keys(json: &Bytes) -> Bytes {
    match str::from_utf8(json).map(mask_keys) {
        Ok(Cow::Owned(masked)) => masked.into(),
        Ok(Cow::Borrowed(_)) | Err(_) => json.clone(),
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({} bytes)", self.len)
    }
}
