//! Webhooks: the events, their bodies, the retries, and the addresses that are allowed (docs/api.md, Webhooks).
//! The store keeps the outbox, and the webhook dispatcher sends.

mod body;
pub mod delivery_slots;
pub mod endpoint;
pub mod kinds;
mod outbox_event;
pub mod retry;
pub mod target;

pub use body::{EventPayload, EventSubject, event_body};
pub use delivery_slots::DeliverySlots;
pub use endpoint::{
    DeliveryLease, DeliveryStatus, DisabledBy, Endpoint, LoggedAttempt, LoggedDelivery,
};
pub use kinds::{WebhookEventKind, WebhookEventKinds};
pub use outbox_event::{
    OutboxEvent, creation_events, is_manifest_event, manifest_event, move_events,
};
pub use retry::{
    AttemptResult, DeliveryAttempt, DeliveryError, EndpointResponse, RetryDecision,
    UNBLOCKED_AFTER_FAILURES, decide_retry,
};
pub use target::{AllowedHosts, InvalidWebhookUrl, WebhookAllowance, check_url};

use crate::Millis;

/// The `User-Agent` that endpoints see.
pub const USER_AGENT: &str = concat!("Parcelo/", env!("CARGO_PKG_VERSION"));

/// Time for which a replaced secret signs together with the new one, in milliseconds.
pub const OLD_SECRET_LIFETIME_MILLIS: i64 = Millis::DAY;

/// Maximum number of replaced secrets that sign: the SDK checks sixteen signatures.
pub const MAX_OLD_SECRETS: u32 = 15;

/// Time for which events and the log of their deliveries are kept, in milliseconds.
pub const RETENTION_MILLIS: i64 = 30 * Millis::DAY;

/// Maximum number of deliveries in flight to one endpoint.
pub const MAX_IN_FLIGHT_PER_ENDPOINT: usize = 10;

/// Maximum number of deliveries in flight to all endpoints together: each holds a socket and its message.
pub const MAX_IN_FLIGHT: usize = 1_024;

/// Maximum number of events leased in one commit, so that other writes do not wait long.
pub const MAX_LEASED_AT_ONCE: usize = 256;

/// Time for which a delivery is leased to one server, in milliseconds; longer than any attempt may take.
pub const LEASE_MILLIS: i64 = Millis::MINUTE;
