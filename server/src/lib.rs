//! The service of Parcelo.

pub mod clock;
pub mod core;
pub mod ids;
pub mod store;
