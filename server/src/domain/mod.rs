//! The domain: decisions as pure functions of a request, loaded state, the time and ids.
//!
//! Nothing in here uses the store, HTTP, a clock or randomness. A decision returns one [`Changes`],
//! which the store commits as a whole or not at all.

pub(crate) mod access;
pub(crate) mod activity;
#[cfg(feature = "server")]
pub(crate) mod admin;
pub(crate) mod arrival;
pub(crate) mod audit;
pub(crate) mod carrier;
mod carrier_event;
pub(crate) mod changes;
mod country_language;
pub(crate) mod create;
#[cfg(feature = "server")]
pub(crate) mod credential_views;
pub(crate) mod credentials;
pub(crate) mod delivery;
pub(crate) mod history;
pub(crate) mod idempotency;
pub(crate) mod key_uses;
pub(crate) mod labels;
pub(crate) mod legacy;
pub(crate) mod limit;
pub(crate) mod list;
#[cfg(feature = "server")]
pub(crate) mod login_throttle;
pub(crate) mod mail;
pub(crate) mod manifest;
mod parcel;
pub(crate) mod refusal;
pub mod sample;
pub(crate) mod scenario;
pub(crate) mod search;
pub(crate) mod secrets;
pub(crate) mod session;
pub(crate) mod shared_limit;
pub(crate) mod shop;
pub(crate) mod site;
pub(crate) mod state;
mod stored_order;
pub(crate) mod tenant;
pub(crate) mod tracking_numbers;
pub(crate) mod unsubscribe;
pub(crate) mod void;
pub(crate) mod webhooks;

use parcelo::model::{Envelope, Meta, RequestId};

pub(crate) use carrier_event::{
    AcceptedCarrierEvent, CarrierException, CarrierReport, CarrierRowId, Scan,
};
pub(crate) use changes::{Changes, Decision, NewManifest, NewParcel, StoreOp};
pub(crate) use country_language::country_language;
pub(crate) use credentials::{
    AdminTokenRecord, ApiKeyRecord, CarrierKeyRecord, Countries, NewCredential,
};
pub(crate) use idempotency::{IdempotencyRecord, RecordKey};
pub(crate) use list::ParcelListRow;
pub(crate) use parcel::{Event, ParcelRow, ParcelRowId, Step, Version};
pub(crate) use refusal::Refusal;
pub(crate) use scenario::Scenario;
pub(crate) use secrets::Secrets;
pub(crate) use shop::Shop;
pub(crate) use site::Site;
pub(crate) use state::{Cause, State};
pub(crate) use stored_order::{Layout, StoredOrder};
pub(crate) use tenant::{AccountRecord, AccountRowId, Tenant};
pub(crate) use tracking_numbers::TrackingNumberGenerator;

/// Writes a response's body as JSON.
pub(crate) fn to_body(answer: &impl serde::Serialize) -> Vec<u8> {
    #[expect(
        clippy::expect_used,
        reason = "answers are structs of text and numbers, with text as keys"
    )]
    serde_json::to_vec(answer).expect("an answer can be written as JSON")
}

/// Writes a response's body as JSON, with its data in the envelope that has the request's id.
pub(crate) fn to_enveloped_body<T: serde::Serialize>(data: T, request_id: &str) -> Vec<u8> {
    to_body(&Envelope::new(data, Meta::new(RequestId::unchecked(request_id))))
}
