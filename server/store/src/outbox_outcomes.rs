//! Requests to the outbox and their outcomes, for both engines.

use std::sync::Arc;

use parcelo_domain::{
    Millis, Tenant,
    webhooks::{DeliveryLease, DisabledBy, Endpoint},
};
use ulid::Ulid;

/// The events to send again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventsToReplay {
    /// This event, delivered or not, unless it is being sent or due already.
    One(Ulid),
    /// All events since this time that failed, were held or wait for their next attempt.
    MissedSince(Millis),
}

/// A tenant's undelivered events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// The tenant.
    pub tenant: Tenant,
    /// `true` if its endpoint is off and the events are held for it; otherwise they are still to be sent.
    pub is_held: bool,
    /// Number of events.
    pub events: i64,
    /// The time at which the oldest event was written.
    pub since: Millis,
}

/// The effect of settling an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The attempt counts.
    Counted,
    /// The attempt counts, and the endpoint is off now.
    EndpointDisabled(DisabledBy),
    /// The attempt is late: its event was replayed, its endpoint replaced, or everything deleted.
    Late,
}

/// The events leased by one commit.
#[derive(Debug, Default)]
pub struct LeasedBatch {
    /// The events, each with its endpoint at that time.
    pub events: Vec<(Arc<Endpoint>, DeliveryLease)>,
    /// The tenants of the events that could not be read. Each such event has failed.
    pub unreadable: Vec<Tenant>,
    /// The tenants whose endpoint could not be read. Each such endpoint is off now.
    pub disabled_endpoints: Vec<Tenant>,
}

impl LeasedBatch {
    /// Returns `true` if the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.unreadable.is_empty() && self.disabled_endpoints.is_empty()
    }
}
