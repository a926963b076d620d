//! Names of the headers that the API adds to HTTP (spec: Common headers).

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
