//! Tests of the service over real HTTP, embedded and as a process: what each endpoint accepts,
//! refuses and replays, and how requests race.
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
mod backups;
mod bodies;
mod browser;
mod carrier;
mod clock;
#[path = "../cluster/mod.rs"]
mod cluster;
mod completions;
mod config;
mod controls;
mod dashboard;
mod deliveries;
mod disk;
mod docs_backup;
mod docs_guide;
mod document;
mod drain;
mod embedded;
mod failed_checks;
mod faults;
mod isolation;
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
#[path = "../pages/mod.rs"]
mod pages;
mod parallel_servers;
mod parcels;
mod process;
mod races;
mod raw;
mod reprint;
mod request_heads;
mod requests;
mod reset;
mod restarts;
mod rotation;
mod running;
mod scenarios;
mod screenshots;
mod socket_activation;
mod state;
mod supervisor;
mod tracking;
mod tracking_page;
mod unread_bodies;
mod vacuum;
mod verify;
mod void;
#[path = "../waiting/mod.rs"]
mod waiting;
mod webhook_chaos;
mod webhooks;
