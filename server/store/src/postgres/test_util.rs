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

use std::sync::atomic::{AtomicBool, Ordering};

/// Set once a test of this process has made a database. In its stores, leases begin and end by the time that the test
/// passes.
static MAKES_TEST_DATABASES: AtomicBool = AtomicBool::new(false);

/// Returns `true` if this process makes databases for tests, as the tests of this crate do. A program that has the
/// feature `test-util` only because tests were built with it does not.
pub(crate) fn makes_test_databases() -> bool {
    cfg!(test) || MAKES_TEST_DATABASES.load(Ordering::Relaxed)
}
