//! The service over real HTTP, embedded and as a process: each endpoint accepts, refuses, repeats
//! and races.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "a test fails loudly"
)]

mod access;
mod api;
mod kill;
mod labels;
mod limits;
mod orders;
mod process;
mod running;
mod tracking;
