//! Tests of this engine, and the PostgreSQL that every test of it runs on.

pub(in crate::store) mod cluster;
mod outbox;
mod servers;
mod snapshots;
