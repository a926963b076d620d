//! What the client promises alone: on a scripted transport in virtual time, and over real sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

mod ages;
mod doubt;
mod keys;
mod labels;
mod loops;
mod operations;
mod outage;
mod raw;
mod retries;
mod script;
mod shapes;
mod socket;
mod spans;
mod words;
