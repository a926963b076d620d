//! The guarantees of the client with the real service, embedded in the test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

mod blocking;
mod bulk;
mod clock;
mod conformance;
mod fault_sweep;
mod find;
mod limits;
mod own_thread;
mod production;
#[path = "../../../sdk/tests/client/scripted_transport.rs"]
mod scripted_transport;
mod tls;
