//! The service of Parcelo, a cross-border parcel shipping service: it creates orders with labels
//! and tracks parcels.
//!
//! The same service runs as a process (`parcelo-server serve`) and inside tests:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use parcelo_server::mock::MockServer;
//!
//! let server = MockServer::start().await;
//! let key = server.key().countries(["EC"]).issue();
//! println!("an API for {key:?} at {}", server.url());
//! # }
//! ```
//!
//! Where things are:
//!
//! - [`core`] decides: pure functions of a request, loaded state, now and ids;
//! - [`store`] keeps what was decided, whole or not at all;
//! - [`service`] loads, lets the core decide, and commits;
//! - [`label`] draws labels;
//! - [`webhook`] sends what the outbox holds;
//! - [`http`] is the shell of the API, [`process`] that of the command, [`mock`] that of tests;
//! - [`clock`] and [`ids`] are the only places that read time and randomness.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(all(doctest, feature = "sdk"))]
#[doc = include_str!("../../docs/testing.md")]
mod testing {}

pub mod clock;
pub mod domain;
pub mod http;
pub mod ids;
pub mod label;
pub mod mock;
#[cfg(feature = "server")]
pub mod process;
pub mod service;
pub mod store;
pub mod webhook;
