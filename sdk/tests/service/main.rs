//! The client's promises with the real service, embedded.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

mod blocking;
mod clock;
mod conformance;
mod find;
mod limits;
mod many;
#[expect(dead_code, reason = "the tests of the client alone break more connections")]
#[path = "../client/script.rs"]
mod script;
mod sweep;
