//! Tests of this engine, and the PostgreSQL that every test of it runs on.

pub(in crate::store) mod cluster;
mod cuts;
mod dropped;
mod encrypted;
mod pooler;
mod proxy;
mod servers;
