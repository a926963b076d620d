//! The requests, responses and keys of operators and carriers, and the rules for them.
//!
//! This crate is a part of `parcelo-server` and has no stability guarantees of its own.

mod admin;
mod admin_token;
mod carrier;
mod carrier_key;
mod faults;
mod invalid;
#[cfg(feature = "utoipa")]
mod openapi_limits;
#[cfg(test)]
mod tests;

#[cfg(feature = "utoipa")]
pub use openapi_limits::{limit_length, write_limits};
pub use {
    admin::{
        AccountRequest, AllowedCountries, CarrierKeyRequest, DEFAULT_ACCOUNT, KeyRequest,
        MAX_IP_ADDRESSES, ReplayRequest, WebhookRequest, check_account, check_account_name,
        check_carrier_key, check_key, check_name, check_replay, check_webhook, is_email,
    },
    admin_token::AdminToken,
    carrier::{
        CarrierEvent, CarrierEvents, CarrierOutcome, CarrierResult, CarrierResults, CarrierSummary,
        check_carrier_events,
    },
    carrier_key::CarrierKey,
    invalid::InvalidCredential,
};
