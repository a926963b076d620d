//! Webhooks: what is sent, with which body, when it is tried again, and where it may be sent
//! (docs/api.md, Webhooks). The store keeps the outbox, the webhook shell sends.

mod body;
pub(crate) mod endpoint;
pub(crate) mod kinds;
mod outbox_event;
pub(crate) mod places;
pub(crate) mod retry;
pub(crate) mod target;

pub(crate) use body::{About, EventPayload, body};
pub(crate) use endpoint::{
    DeliveryStatus, DisabledBy, Endpoint, Lease, LoggedAttempt, LoggedDelivery,
};
pub(crate) use kinds::{Kind, Kinds};
pub(crate) use outbox_event::{OutboxEvent, is_of_manifest, of_creation, of_manifest, of_move};
pub(crate) use places::Places;
pub(crate) use retry::{
    Attempt, AttemptResult, DeliveryError, EndpointAnswer, RELEASED_AFTER, RetryDecision, judge,
};
pub(crate) use target::{Allowance, AllowedHosts, InvalidUrl, check_url};

use crate::clock::Millis;

/// What endpoints see in `User-Agent`.
pub(crate) const AGENT: &str = concat!("Parcelo/", env!("CARGO_PKG_VERSION"));

/// How long a replaced secret signs beside the new one.
pub(crate) const OLD_SECRET: i64 = Millis::DAY;

/// At most so many replaced secrets sign: the SDK looks at sixteen signatures.
pub(crate) const OLD_SECRETS: u32 = 15;

/// How long events and the log of their deliveries are kept.
pub(crate) const RETENTION: i64 = 30 * Millis::DAY;

/// At most so many deliveries are on their way to one endpoint.
pub const IN_FLIGHT: usize = 10;

/// At most so many are on their way to all endpoints together: each holds a socket and its message.
pub(crate) const IN_FLIGHT_IN_ALL: usize = 1_024;

/// At most so many events are leased in one commit, which others wait for.
pub(crate) const LEASED_AT_ONCE: usize = 256;

/// How long a delivery that is being made belongs to its sender; longer than any attempt may take.
pub(crate) const LEASE: i64 = Millis::MINUTE;
