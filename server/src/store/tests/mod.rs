//! What every store must keep, whatever its engine.

pub(in crate::store) mod conformance;
