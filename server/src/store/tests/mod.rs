//! What every store must keep, whatever its engine.

pub(in crate::store) mod conformance;
#[cfg(feature = "postgres")]
mod differences;
#[cfg(feature = "postgres")]
mod histories;
#[cfg(feature = "postgres")]
mod transfer;
