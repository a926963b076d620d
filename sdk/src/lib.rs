//! SDK of Parcelo, a cross-border parcel shipping service.

pub mod model;
pub mod rules;

pub use model::*;
pub use rules::{OrderBuilder, Rejected};
pub use rust_decimal::Decimal;
