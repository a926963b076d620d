//! Tests of the command line as a process, alone and with the SDK, and of what the guides say about both.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::too_many_lines,
    reason = "a test fails by panicking, and a table of cases is as long as it is"
)]

#[path = "../../server/tests/cluster/mod.rs"]
mod cluster;
mod completions_and_man;
mod day;
mod doctor;
mod dry_runs;
mod embedded;
mod exit_codes;
mod fake_servers;
mod guides;
mod imports;
mod journey;
mod labels;
mod manifests;
mod newer_service;
mod orders;
#[cfg(unix)]
#[path = "../../server/tests/pages/mod.rs"]
mod pages;
mod parcels;
mod profiles;
mod reference;
mod shop;
mod terminal_picture;
mod texts;
mod tracking;
mod voids;
#[path = "../../server/tests/waiting/mod.rs"]
mod waiting;
#[cfg(unix)]
mod watches;
#[cfg(unix)]
mod webhook_listen;
