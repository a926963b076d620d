//! SDK of Parcelo, a cross-border parcel shipping service: create an order with its label, track
//! the parcel, and never ship anything twice.
//!
#![doc = include_str!("../guide.md")]

#[cfg(feature = "blocking")]
pub mod blocking;
#[cfg(feature = "client")]
pub mod client;
pub mod model;
pub mod rules;
#[cfg(any(feature = "client", feature = "webhooks"))]
mod wall_clock;
#[cfg(feature = "webhooks")]
pub mod webhook;

#[cfg(feature = "client")]
pub use client::*;
pub use model::*;
pub use rules::{OrderBuilder, Rejected};
pub use rust_decimal::Decimal;
#[cfg(feature = "client")]
pub use url::Url;
#[cfg(feature = "webhooks")]
pub use webhook::{Webhook, WebhookError};
