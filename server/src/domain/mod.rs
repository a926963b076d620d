//! The domain: what is decided, as pure functions of a request, loaded state, now and ids.
//!
//! No store, no HTTP, no clock, no randomness in here. A decision answers with one [`Changes`],
//! which the store commits whole or not at all.

pub mod access;
pub mod activity;
#[cfg(feature = "server")]
pub mod admin;
pub mod carrier;
pub mod carrier_keys;
pub mod changes;
pub mod create;
pub mod delivery;
pub mod history;
pub mod idempotency;
pub mod keys;
pub mod labels;
pub mod legacy;
pub mod limit;
pub mod list;
#[cfg(feature = "server")]
pub mod login_throttle;
pub mod manifest;
pub mod refusal;
pub mod sample;
pub mod scenario;
pub mod secrets;
pub mod session;
pub mod site;
pub mod state;
pub mod tenant;
pub mod tokens;
pub mod void;
pub mod webhooks;

pub use carrier::{CarrierException, CarrierNumber, Report, Scan, SeenEvent};
pub use carrier_keys::{CarrierKeyRecord, NewCarrierKey};
pub use changes::{Changes, Event, NewParcel, Op, ParcelKey, ParcelRow, Step, Version};
pub use idempotency::{IdempotencyRecord, RecordKey};
pub use keys::{Countries, KeyRecord, NewKey};
pub use list::Listed;
pub use refusal::Refusal;
pub use scenario::Scenario;
pub use secrets::Secrets;
pub use site::Site;
pub use state::{Cause, State};
pub use tenant::{AccountKey, AccountRecord, Tenant};

/// An answer's body on the wire.
pub(crate) fn to_body(answer: &impl serde::Serialize) -> Vec<u8> {
    #[expect(
        clippy::expect_used,
        reason = "answers are structs of text and numbers, with text as keys"
    )]
    serde_json::to_vec(answer).expect("an answer can be written as JSON")
}
