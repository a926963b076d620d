//! Tests of this engine, and the PostgreSQL that they run on.

pub(in crate::store) mod cluster;
mod cuts;
mod dropped;
mod encrypted;
mod generations;
mod held;
mod hosts;
mod keys;
mod limits;
mod outbox;
mod plans;
mod pooler;
pub(in crate::store) mod proxy;
mod races;
mod rows;
mod servers;
mod snapshots;
pub(super) mod statements;
mod terms;
mod upgrades;
