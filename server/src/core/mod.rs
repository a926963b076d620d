//! The core: what is decided, as pure functions of a request, loaded state, now and ids.
//!
//! No store, no HTTP, no clock, no randomness in here. A decision answers with one [`Changes`],
//! which the store commits whole or not at all.

pub mod changes;
pub mod idempotency;
pub mod keys;
pub mod scenario;
pub mod state;
pub mod tenant;

pub use changes::{Changes, Event, NewParcel, Op, ParcelKey, ParcelRow, Step, Version};
pub use idempotency::{IdempotencyRecord, RecordKey};
pub use keys::{Countries, KeyRecord, NewKey};
pub use scenario::Scenario;
pub use state::State;
pub use tenant::{AccountKey, Tenant};
