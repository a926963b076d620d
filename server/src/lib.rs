//! The service of Parcelo.

pub mod clock;
pub mod core;
pub mod http;
pub mod ids;
pub mod label;
pub mod mock;
pub mod process;
pub mod service;
pub mod store;
