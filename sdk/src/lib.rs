//! SDK of Parcelo, a cross-border parcel shipping service.

pub mod model;

pub use model::*;
pub use rust_decimal::Decimal;
