//! Tests of this engine on a real PostgreSQL.

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
mod races;
mod rows;
mod servers;
mod snapshots;
mod statements;
mod terms;
mod upgrades;
