//! What is asked of the outbox and what it answers, for both engines.

use std::sync::Arc;

use ulid::Ulid;

use crate::{
    clock::Millis,
    domain::{
        Tenant,
        webhooks::{DisabledBy, Endpoint, Lease},
    },
};

/// The events that are sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventsToReplay {
    /// This one, delivered or not.
    One(Ulid),
    /// All that failed or were held, and came about then or later.
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

/// The outcome of an attempt that was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// It counts.
    Counted,
    /// It counts, and the endpoint is off now.
    SwitchedOff(DisabledBy),
    /// Its event was replayed meanwhile, its endpoint replaced, or all of it deleted.
    Late,
}

/// The events that one commit leased.
#[derive(Debug, Default)]
pub struct LeasedBatch {
    /// The events, each with its endpoint as it was then.
    pub events: Vec<(Arc<Endpoint>, Lease)>,
    /// The tenants of events that could not be read: each has failed.
    pub unreadable: Vec<Tenant>,
    /// The tenants whose endpoint could not be read: each is off now.
    pub switched_off: Vec<Tenant>,
}

impl LeasedBatch {
    /// Returns true if nothing was found.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.unreadable.is_empty() && self.switched_off.is_empty()
    }
}
