//! The examples in the documentation of the SDK and the mock server, and in a guide, for `cargo test` to run. Only they
//! use `reqwest`, `proptest`, `serde`, `tower` and `wiremock` here.
#![allow(
    non_camel_case_types,
    missing_debug_implementations,
    reason = "generated names of files and lines"
)]

#[cfg(doctest)]
#[doc = include_str!("../../../docs/start/rust.md")]
mod first_order {}

include!(concat!(env!("OUT_DIR"), "/doc_examples.rs"));
