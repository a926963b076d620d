//! What the client promises: on a scripted transport in virtual time, and over real sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

mod blocking;
mod conformance;
mod keys;
mod labels;
mod limits;
mod many;
mod operations;
mod outage;
mod raw;
mod retries;
mod script;
mod socket;
mod spans;
mod sweep;
