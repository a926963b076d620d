//! The vocabulary of Parcelo, a cross-border parcel shipping service: ids, requests, responses, error bodies, and the rules
//! that the service checks orders by. No HTTP, no clock, no runtime.
//!
//! The SDK, `parcelo`, re-exports all of it under the same paths, which the examples here have too.
#![cfg_attr(docsrs, feature(doc_cfg))]
// A struct that other crates may write as a literal could not get another field in a minor version.
#![warn(clippy::exhaustive_structs)]

#[doc(hidden)]
pub mod internal;
pub mod model;
pub mod rules;

pub use model::{
    api_key::ApiKey,
    awb::Awb,
    country::CountryCode,
    currency::CurrencyCode,
    environment::Environment,
    error_code::ErrorCode,
    goods::{ContentsCategory, CustomsInfo, Incoterm, Product},
    idempotency_key::IdempotencyKey,
    invalid::InvalidValue,
    label::{LabelFormat, ReprintRequest},
    language::Language,
    manifest::ManifestRequest,
    operation::Operation,
    order::{
        IdType, OrderRequest, Parcel, ParcelDetails, Receiver, ReceiverAddress, Sender,
        SenderAddress,
    },
    status::ParcelStatus,
    tracking_number::TrackingNumber,
    void::{VoidManyRequest, VoidRequest},
};

// The crates whose types appear in this one's signatures, in the matching versions.
pub use chrono;
pub use rust_decimal::Decimal;
pub use serde_json;
