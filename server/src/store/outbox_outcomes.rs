//! Requests to the outbox and their outcomes, for both engines.

use std::sync::Arc;

use ulid::Ulid;

use crate::{
    clock::Millis,
    domain::{
        Tenant,
        webhooks::{DisabledBy, Endpoint, Lease},
    },
};

/// The events to send again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventsToReplay {
    /// This one, delivered or not.
    One(Ulid),
    /// All events since then that failed or were held.
    MissedSince(Millis),
}

/// A tenant's events that have not arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// The tenant.
    pub tenant: Tenant,
    /// True if its endpoint is off and they are held for it; otherwise they are still to be sent.
    pub held: bool,
    /// Number of events.
    pub events: i64,
    /// The time at which the oldest was written.
    pub since: Millis,
}

/// The effect of settling an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The attempt counts.
    Counted,
    /// The attempt counts, and the endpoint is off now.
    SwitchedOff(DisabledBy),
    /// Its event was replayed meanwhile, its endpoint replaced, or everything deleted.
    Late,
}

/// The events leased by one commit.
#[derive(Debug, Default)]
pub struct LeasedBatch {
    /// The events, each with its endpoint at that time.
    pub events: Vec<(Arc<Endpoint>, Lease)>,
    /// The tenants of events that could not be read: each has failed.
    pub unreadable: Vec<Tenant>,
    /// The tenants whose endpoint could not be read: each is off now.
    pub switched_off: Vec<Tenant>,
}

impl LeasedBatch {
    /// Returns true if the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.unreadable.is_empty() && self.switched_off.is_empty()
    }
}
