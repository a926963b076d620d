//! SDK of Parcelo, a cross-border parcel shipping service.

#[cfg(feature = "client")]
pub mod client;
pub mod model;
pub mod rules;

#[cfg(feature = "client")]
pub use client::*;
pub use model::*;
pub use rules::{OrderBuilder, Rejected};
pub use rust_decimal::Decimal;
#[cfg(feature = "client")]
pub use url::Url;
