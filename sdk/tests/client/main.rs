//! The guarantees of the client without the service: on a scripted transport in virtual time, and over real sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "a test that cannot go on fails, and a table of cases is as long as it is"
)]

mod call_loops;
mod errors;
mod guarantees;
#[cfg(feature = "gzip")]
mod gzip;
mod headers;
#[cfg(feature = "http2")]
mod http2;
mod http_hook;
mod key_age;
mod key_state;
mod keys;
mod labels;
mod layers;
mod next_step;
mod operations;
mod outage;
mod proxies;
mod raw;
mod retries;
mod scripted_transport;
mod ship;
mod socket;
mod spans;
mod tls;
mod unknown_values;
mod write_outcomes;
