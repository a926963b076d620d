//! What every store must keep ([`conformance`]), and what a file must survive.

pub(super) mod conformance;
mod durability;
mod erasure;
