//! Databases, cut connections and the list of statements, for tests.
#![cfg_attr(not(test), allow(dead_code, reason = "tests of other crates use a part of it"))]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    reason = "what tests use fails by panicking"
)]

pub(crate) mod cluster;
pub(crate) mod proxy;
pub(crate) mod statements;
