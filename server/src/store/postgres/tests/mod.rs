//! Tests of this engine, and the PostgreSQL that every test of it runs on.

pub(in crate::store) mod cluster;
mod plans;
mod races;
mod keys;
mod cuts;
mod dropped;
mod encrypted;
mod pooler;
mod proxy;
mod servers;
mod snapshots;
pub(super) mod statements;
