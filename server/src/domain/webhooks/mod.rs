//! Webhooks: the events, their bodies, the retries, and the addresses that are allowed (docs/api.md, Webhooks).
//! The store keeps the outbox, and the webhook dispatcher sends.

mod body;
pub(crate) mod delivery_slots;
pub(crate) mod endpoint;
pub(crate) mod kinds;
mod outbox_event;
pub(crate) mod retry;
pub(crate) mod target;

pub(crate) use body::{EventPayload, EventSubject, event_body};
pub(crate) use delivery_slots::DeliverySlots;
pub(crate) use endpoint::{
    DeliveryLease, DeliveryStatus, DisabledBy, Endpoint, LoggedAttempt, LoggedDelivery,
};
pub(crate) use kinds::{WebhookEventKind, WebhookEventKinds};
pub(crate) use outbox_event::{
    OutboxEvent, creation_events, is_manifest_event, manifest_event, move_events,
};
pub(crate) use retry::{
    AttemptResult, DeliveryAttempt, DeliveryError, EndpointResponse, RetryDecision,
    UNBLOCKED_AFTER_FAILURES, decide_retry,
};
pub(crate) use target::{AllowedHosts, InvalidWebhookUrl, WebhookAllowance, check_url};

use crate::clock::Millis;

/// The `User-Agent` that endpoints see.
pub(crate) const USER_AGENT: &str = concat!("Parcelo/", env!("CARGO_PKG_VERSION"));

/// Time for which a replaced secret signs together with the new one, in milliseconds.
pub(crate) const OLD_SECRET_LIFETIME_MILLIS: i64 = Millis::DAY;

/// Maximum number of replaced secrets that sign: the SDK checks sixteen signatures.
pub(crate) const MAX_OLD_SECRETS: u32 = 15;

/// Time for which events and the log of their deliveries are kept, in milliseconds.
pub(crate) const RETENTION_MILLIS: i64 = 30 * Millis::DAY;

/// Maximum number of deliveries in flight to one endpoint.
pub const MAX_IN_FLIGHT_PER_ENDPOINT: usize = 10;

/// Maximum number of deliveries in flight to all endpoints together: each holds a socket and its message.
pub(crate) const MAX_IN_FLIGHT: usize = 1_024;

/// Maximum number of events leased in one commit, so that other writes do not wait long.
pub(crate) const MAX_LEASED_AT_ONCE: usize = 256;

/// Time for which a delivery is leased to one server, in milliseconds; longer than any attempt may take.
pub(crate) const LEASE_MILLIS: i64 = Millis::MINUTE;
