//! The domain: decisions as pure functions of a request, loaded state, the time and ids.
//!
//! Nothing in here uses the store, HTTP, a clock or randomness. A decision returns one [`Changes`],
//! which the store commits as a whole or not at all.

pub mod access;
pub mod activity;
pub mod admin;
pub mod arrival;
pub mod audit;
pub mod carrier;
mod carrier_event;
pub mod changes;
mod country_language;
pub mod create;
pub mod credential_views;
pub mod credentials;
pub mod delivery;
pub mod history;
pub mod idempotency;
pub mod ids;
pub mod key_uses;
pub mod labels;
pub mod legacy;
pub mod limit;
pub mod list;
pub mod login_throttle;
pub mod mail;
pub mod manifest;
mod millis;
mod parcel;
pub mod refusal;
pub mod sample;
pub mod scenario;
pub mod search;
pub mod secrets;
pub mod session;
pub mod shared_limit;
pub mod shop;
pub mod site;
pub mod state;
mod stored_order;
pub mod tenant;
mod trace_context;
pub mod tracking_numbers;
pub mod unsubscribe;
pub mod void;
pub mod webhooks;

use parcelo_types::{
    internal::{Envelope, Meta},
    model::RequestId,
};

pub use carrier_event::{
    AcceptedCarrierEvent, CarrierException, CarrierReport, CarrierRowId, Scan,
};
pub use changes::{Changes, Decision, NewManifest, NewParcel, StoreOp};
pub use country_language::country_language;
pub use credentials::{AdminTokenRecord, ApiKeyRecord, CarrierKeyRecord, Countries, NewCredential};
pub use idempotency::{IdempotencyRecord, RecordKey};
pub use list::ParcelListRow;
pub use millis::Millis;
pub use parcel::{Event, ParcelRow, ParcelRowId, Step, Version};
pub use refusal::Refusal;
pub use scenario::Scenario;
pub use secrets::Secrets;
pub use shop::Shop;
pub use site::Site;
pub use state::{Cause, State};
pub use stored_order::{Layout, StoredOrder};
pub use tenant::{AccountRecord, AccountRowId, Tenant};
pub use trace_context::TraceContext;
pub use tracking_numbers::TrackingNumberGenerator;

/// Writes a response's body as JSON.
#[expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "responses are structs of text and numbers, with text as keys"
)]
pub fn to_body(response: &impl serde::Serialize) -> Vec<u8> {
    // Most responses fit, and are not moved while they are written.
    let mut body = Vec::with_capacity(512);
    serde_json::to_writer(&mut body, response).expect("a response can be serialized as JSON");
    body
}

/// Writes a response's body as JSON, with its data in the envelope that has the request's id.
pub fn to_enveloped_body<T: serde::Serialize>(data: T, request_id: &str) -> Vec<u8> {
    to_body(&Envelope::new(data, Meta::new(RequestId::unchecked(request_id))))
}
