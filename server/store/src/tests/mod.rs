//! Tests that apply to every engine.

pub(crate) mod conformance;
#[cfg(feature = "postgres")]
mod differences;
#[cfg(feature = "postgres")]
mod histories;
#[cfg(feature = "postgres")]
mod transfer;

/// Returns the seed of the random tests: `PARCELO_SEED`, else 1. `.ci/prove` draws one and prints it.
fn first_seed() -> u64 {
    std::env::var("PARCELO_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}
