//! The guarantees of the client without the service: on a scripted transport in virtual time, and over real sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "a test that cannot go on fails, and a table of cases is as long as it is"
)]

mod api_keys;
mod call_loops;
mod calls;
mod errors;
mod guarantees;
#[cfg(feature = "gzip")]
mod gzip;
mod headers;
#[cfg(all(feature = "http2", feature = "reqwest"))]
mod http2;
mod key_age;
mod key_state;
mod keys;
mod kill_points;
mod labels;
mod layers;
mod next_step;
mod operations;
mod outage;
#[cfg(feature = "reqwest")]
mod own_http_client;
mod proxies;
mod raw;
#[cfg(feature = "reqwest")]
mod recording_server;
mod retries;
mod scripted_transport;
mod ship;
#[cfg(feature = "reqwest")]
mod socket;
mod spans;
#[cfg(feature = "rustls")]
mod tls;
mod unknown_values;
mod wire_bytes;
mod write_outcomes;
