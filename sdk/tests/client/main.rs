//! The client's promises without the service: on a scripted transport in virtual time, and over real sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "a test that cannot go on fails, and a table of cases is as long as it is"
)]

mod ages;
mod doubt;
mod errors;
#[cfg(feature = "gzip")]
mod gzip;
mod headers;
mod hook;
#[cfg(feature = "http2")]
mod http2;
mod keys;
mod labels;
mod layers;
mod loops;
mod memory;
mod next_step;
mod operations;
mod outage;
mod proxies;
mod raw;
mod retries;
mod script;
mod shapes;
mod ship;
mod socket;
mod spans;
mod tls;
mod words;
