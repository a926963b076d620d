//! The command line as a process, whole journeys, and the rules of the repository.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod exits;
mod imports;
mod journey;
mod labels;
mod manifests;
mod orders;
mod parcels;
mod peer;
mod shop;
mod speech;
mod tidy;
mod tracking;
mod voids;
