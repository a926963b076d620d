//! The service of Parcelo, a cross-border parcel shipping service, with its HTTP API, its webhooks and its e-mails; and
//! [`mock`], which embeds it in tests.
//!
//! Programs use it through [`parcelo-server`](https://docs.rs/parcelo-server), which re-exports [`mock`]. The rest is for
//! the process, the benchmarks and the tests of this repository, and changes without notice.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod http;
pub mod mail;
pub mod mock;
pub mod service;
#[cfg(test)]
#[path = "../../tests/waiting/mod.rs"]
mod waiting;
pub mod webhook;
pub mod wording;
