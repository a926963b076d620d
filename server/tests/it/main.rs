//! The service over real HTTP, embedded and as a process: each endpoint accepts, refuses, repeats
//! and races.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::too_many_lines,
    reason = "a test fails loudly, has long tables, and watches real processes in real time"
)]

mod access;
mod admin;
mod api;
mod bodies;
mod browser;
mod carrier;
mod clock;
#[path = "../cluster/mod.rs"]
mod cluster;
mod controls;
mod crowd;
mod dashboard;
mod deliveries;
mod disk;
mod document;
mod drain;
mod embedded;
mod faults;
mod guide;
mod heads;
mod isolation;
mod kept;
mod kill;
mod label_batches;
mod labels;
mod legacy;
mod limits;
mod mails;
mod manifests;
mod metrics;
mod mock;
mod openapi;
mod orders;
mod output;
mod parcels;
mod pictures;
mod process;
mod public;
mod races;
mod raw;
mod reprint;
mod requests;
mod reset;
mod restarts;
mod rotation;
mod running;
mod state;
mod tracking;
mod vacuum;
mod void;
#[path = "../waiting/mod.rs"]
mod waiting;
mod webhooks;
