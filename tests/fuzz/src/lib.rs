//! Fuzz targets. Each takes arbitrary bytes and asserts properties of the product's response to them.
//!
//! A target's corpus is `corpus/NAME/`, with one input per file, most of them readable. `cargo test` replays every file
//! and tries mutations of them, in which it inserts the words of `words/NAME.dict`; `just fuzz NAME SECONDS` searches
//! further, with the same words, guided by coverage. The inputs of `csv_import` are tried by a test of the command
//! line, whose modules no other crate can call; `just fuzz csv_import` runs that test by time.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    missing_debug_implementations,
    reason = "a target fails by panicking, and only tests use it"
)]

mod accept_language;
mod canonical_json;
mod carrier_events;
mod corpus;
mod dashboard_forms;
mod database_address;
mod http_packets;
mod idempotency_keys;
mod label_zpl;
mod mutation;
mod order_json;
mod parcel_pages;
mod retry_after;
mod secret_keys;
mod service;
mod tracking_number;
mod webhook_signature;

pub use corpus::{FuzzRun, corpus_folder};

/// A fuzz target: a property that every input must have.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name of its corpus.
    pub name: &'static str,
    /// Checks these bytes, and panics if the property does not hold.
    pub check: fn(&[u8]),
    /// The number of mutations of each seed. `cargo test` tries one seed, which takes about a second.
    pub cases: u32,
}

pub const TARGETS: &[Target] = &[
    accept_language::TARGET,
    canonical_json::TARGET,
    carrier_events::TARGET,
    dashboard_forms::TARGET,
    database_address::TARGET,
    http_packets::TARGET,
    idempotency_keys::TARGET,
    label_zpl::TARGET,
    order_json::TARGET,
    parcel_pages::TARGET,
    retry_after::TARGET,
    secret_keys::TARGET,
    tracking_number::TARGET,
    webhook_signature::TARGET,
];

impl Target {
    /// Returns the target with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        TARGETS.iter().copied().find(|target| target.name == name)
    }
}
