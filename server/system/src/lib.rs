//! The machine below the service: the only crate that reads its clock and its randomness. All other code receives the
//! time and ids as arguments.
//!
//! It is a part of `parcelo-server` and makes no promises of its own.

pub mod clock;
pub mod ids;
