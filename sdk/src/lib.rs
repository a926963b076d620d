//! SDK of Parcelo, a cross-border parcel shipping service: create an order with its label, track
//! the parcel, and never ship anything twice.
//!
#![doc = include_str!("../guide.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
// A struct that others may write as a literal could never get another field.
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
    Client, ClientBuilder, Error, ErrorKind, Outcome, RateLimit, Reply, Retry, Timeouts,
};
pub use model::{
    api_key::ApiKey,
    awb::Awb,
    country::CountryCode,
    currency::CurrencyCode,
    environment::Environment,
    error_code::ErrorCode,
    idempotency_key::IdempotencyKey,
    invalid::InvalidValue,
    label::{LabelFormat, ReprintRequest},
    language::Language,
    manifest::ManifestRequest,
    operation::Operation,
    order::{
        CustomsInfo, IdType, OrderRequest, Parcel, ParcelDetails, Product, Receiver,
        ReceiverAddress, Sender, SenderAddress,
    },
    status::ParcelStatus,
    tracking_number::TrackingNumber,
    void::{VoidManyRequest, VoidRequest},
};

// Of other crates, what stands in this one's signatures: in the versions that fit it.
#[cfg(feature = "client")]
pub use bytes;
pub use chrono;
#[cfg(any(feature = "client", feature = "webhooks"))]
pub use http;
#[cfg(feature = "client")]
pub use reqwest;
pub use rust_decimal::Decimal;
#[cfg(feature = "client")]
pub use url;

/// What a [`Client`]'s methods hand out: handles, questions, streams, and what is known about a call.
#[cfg(feature = "client")]
pub mod calls {
    pub use crate::client::{
        Attempt, CreateMany, FailureClass, GetTracking, Items, LabelDownload, LabelStream, Labels,
        ListParcels, Manifests, Orders, Page, Parcels, RateLimitStatus, RawAnswer, ReplyMeta,
        Sandbox, StopReason, TrackBatch, Tracking,
    };
}

/// What carries a client's requests: the trait [`Transport`](transport::Transport), for one of your own.
#[cfg(feature = "client")]
pub mod transport {
    pub use crate::client::{BodyStream, Phase, Transport, TransportError};
}

/// For the server: what operators and carriers say. Not part of this crate's promises.
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
                check_name, check_replay, check_webhook,
            },
            carrier::check_carrier_events,
        },
    };
}
