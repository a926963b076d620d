//! The Rust SDK of Parcelo, a cross-border parcel shipping service: create an order with its label, track
//! the parcel, and never ship anything twice.
//!
#![doc = include_str!("../guide.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
// A struct that other crates may write as a literal could not get another field in a minor version.
#![warn(clippy::exhaustive_structs)]

#[cfg(feature = "blocking")]
pub mod blocking;
#[cfg(feature = "client")]
mod client;
pub mod model;
pub mod rules;
#[cfg(any(feature = "client", feature = "webhooks"))]
mod wall_clock;
#[cfg(feature = "webhooks")]
pub mod webhook;

#[cfg(feature = "client")]
pub use client::{
    Client, ClientBuilder, Error, ErrorKind, IfAbsent, NextStep, Outcome, RateLimit, Reply, Retry,
    Timeouts,
};
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
#[cfg(feature = "client")]
pub use bytes;
pub use chrono;
#[cfg(feature = "client")]
pub use futures_util;
#[cfg(any(feature = "client", feature = "webhooks"))]
pub use http;
#[cfg(feature = "client")]
pub use reqwest;
pub use rust_decimal::Decimal;
pub use serde_json;
#[cfg(feature = "client")]
pub use url;

/// The types that a [`Client`]'s methods return: handles, requests, streams, and metadata of calls.
#[cfg(feature = "client")]
pub mod calls {
    pub use crate::client::{
        Attempt, CreateMany, FailureClass, GetTracking, ItemStream, LabelDownload, LabelStream,
        Labels, ListParcels, Manifests, Orders, Page, Parcels, RateLimitStatus, RawResponse,
        ReplyMeta, Sandbox, StopReason, TrackBatch, Tracking,
    };
}

/// The trait [`Transport`](transport::Transport), which sends a client's requests: implement your own, or wrap the
/// client's.
#[cfg(feature = "client")]
pub mod transport {
    pub use crate::client::{BodyStream, Phase, Transport, TransportError};
}

/// Requests of operators and carriers, for the server. Not covered by semantic versioning.
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod admin {
    #[cfg(feature = "openapi")]
    pub use crate::rules::openapi_limits::{limit_length, write_limits};
    pub use crate::{
        model::{
            admin::{
                AccountRequest, AllowedCountries, CarrierKeyRequest, DEFAULT_ACCOUNT, KeyRequest,
                ReplayRequest, WebhookRequest,
            },
            admin_token::AdminToken,
            carrier::{
                CarrierEvent, CarrierEvents, CarrierOutcome, CarrierResult, CarrierResults,
                CarrierSummary,
            },
            carrier_key::CarrierKey,
        },
        rules::{
            admin::{
                MAX_IP_ADDRESSES, check_account, check_account_name, check_carrier_key, check_key,
                check_name, check_replay, check_webhook, is_email,
            },
            carrier::check_carrier_events,
        },
    };
}
