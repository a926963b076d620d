//! The envelope around most answers (spec: Response envelope).

use serde::{Deserialize, Serialize};

use super::RequestId;

/// `{"success": true, "data": …, "meta": {"requestId": …}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Envelope<T, M = Meta> {
    /// Always true.
    pub success: bool,
    /// The answer itself.
    pub data: T,
    /// About the answer.
    pub meta: M,
}

impl<T, M> Envelope<T, M> {
    /// The envelope of a success.
    pub fn new(data: T, meta: M) -> Self {
        Self { success: true, data, meta }
    }
}

/// About an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Meta {
    /// The id to quote to support.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub request_id: RequestId,
}

impl Meta {
    /// About an answer with this request id.
    pub fn new(request_id: RequestId) -> Self {
        Self { request_id }
    }
}

/// Names of the headers that the API adds to HTTP (spec: Common headers).
pub mod header {
    /// The API key.
    pub const API_KEY: &str = "x-api-key";
    /// The carrier key.
    pub const CARRIER_KEY: &str = "x-carrier-key";
    /// The header that stands in for the body's `idempotencyKey`.
    pub const IDEMPOTENCY_KEY: &str = "x-idempotency-key";
    /// The header of the IETF draft, with quotes or without.
    pub const STANDARD_IDEMPOTENCY_KEY: &str = "idempotency-key";
    /// `true` on a replayed answer.
    pub const IDEMPOTENT_REPLAYED: &str = "idempotent-replayed";
    /// The id to quote to support.
    pub const REQUEST_ID: &str = "x-request-id";
    /// The maximum of requests in a window.
    pub const RATE_LIMIT: &str = "x-ratelimit-limit";
    /// Requests left in the window.
    pub const RATE_REMAINING: &str = "x-ratelimit-remaining";
    /// The Unix second in which the window ends.
    pub const RATE_RESET: &str = "x-ratelimit-reset";
}
