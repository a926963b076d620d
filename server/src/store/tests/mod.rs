//! What every store must keep ([`conformance`]), and what a file must survive.

mod carriers;
pub(super) mod conformance;
mod durability;
mod erasure;
