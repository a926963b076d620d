//! The machine's clock and randomness. No other crate reads them: all other code receives the time and ids as
//! arguments.
//!
//! It is a part of `parcelo-server` and has no stability guarantees of its own.

pub mod clock;
pub mod ids;
