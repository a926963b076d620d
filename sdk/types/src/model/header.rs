//! Names of the HTTP headers that the API defines (spec: Common headers).

/// The API key.
pub const API_KEY: &str = "x-api-key";
/// The carrier key.
pub const CARRIER_KEY: &str = "x-carrier-key";
/// The idempotency key, as an alternative to the body's `idempotencyKey`.
pub const IDEMPOTENCY_KEY: &str = "x-idempotency-key";
/// The idempotency key in the header of the IETF draft, with or without quotation marks.
pub const STANDARD_IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Present with the value `true` on a replayed response.
pub const IDEMPOTENT_REPLAYED: &str = "idempotent-replayed";
/// The id to quote to support.
pub const REQUEST_ID: &str = "x-request-id";
/// The maximum number of requests in a window.
pub const RATE_LIMIT: &str = "x-ratelimit-limit";
/// The number of requests left in the window.
pub const RATE_REMAINING: &str = "x-ratelimit-remaining";
/// The Unix second in which the window ends.
pub const RATE_RESET: &str = "x-ratelimit-reset";
