//! Webhooks: the events, their bodies, the retries, and the addresses that are allowed (docs/api.md, Webhooks).
//! The store keeps the outbox, and the webhook dispatcher sends.

mod body;
pub(crate) mod delivery_slots;
pub(crate) mod endpoint;
pub(crate) mod kinds;
mod outbox_event;
pub(crate) mod retry;
pub(crate) mod target;

pub(crate) use body::{EventPayload, EventSubject, body};
pub(crate) use delivery_slots::DeliverySlots;
pub(crate) use endpoint::{
    DeliveryStatus, DisabledBy, Endpoint, Lease, LoggedAttempt, LoggedDelivery,
};
pub(crate) use kinds::{Kind, Kinds};
pub(crate) use outbox_event::{
    OutboxEvent, creation_events, is_manifest_event, manifest_event, move_events,
};
pub(crate) use retry::{
    Attempt, AttemptResult, DeliveryError, EndpointAnswer, RetryDecision, UNBLOCKED_AFTER_FAILURES,
    decide_retry,
};
pub(crate) use target::{Allowance, AllowedHosts, InvalidUrl, check_url};

use crate::clock::Millis;

/// The `User-Agent` that endpoints see.
pub(crate) const USER_AGENT: &str = concat!("Parcelo/", env!("CARGO_PKG_VERSION"));

/// Time that a replaced secret signs together with the new one.
pub(crate) const OLD_SECRET_LIFETIME: i64 = Millis::DAY;

/// Maximum number of replaced secrets that sign: the SDK checks sixteen signatures.
pub(crate) const MAX_OLD_SECRETS: u32 = 15;

/// Time that events and the log of their deliveries are kept.
pub(crate) const RETENTION: i64 = 30 * Millis::DAY;

/// Maximum number of deliveries in flight to one endpoint.
pub const MAX_IN_FLIGHT_PER_ENDPOINT: usize = 10;

/// Maximum number of deliveries in flight to all endpoints together: each holds a socket and its message.
pub(crate) const MAX_IN_FLIGHT: usize = 1_024;

/// Maximum number of events leased in one commit, so that other writes do not wait long.
pub(crate) const MAX_LEASED_AT_ONCE: usize = 256;

/// Time that a delivery is leased to its sender; longer than any attempt may take.
pub(crate) const LEASE: i64 = Millis::MINUTE;
