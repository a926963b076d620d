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
#[cfg(feature = "test-util")]
pub mod testing;
#[cfg(any(feature = "client", feature = "webhooks"))]
mod wall_clock;
#[cfg(feature = "webhooks")]
pub mod webhook;

#[cfg(feature = "client")]
pub use client::{
    Client, ClientBuilder, Error, ErrorKind, IfAbsent, NextStep, Outcome, RateLimit, Reply, Retry,
    Timeouts,
};
#[doc(inline)]
pub use parcelo_types::{
    ApiKey, Awb, ContentsCategory, CountryCode, CurrencyCode, CustomsInfo, Environment, ErrorCode,
    IdType, IdempotencyKey, Incoterm, InvalidValue, LabelFormat, Language, ManifestRequest,
    Operation, OrderRequest, Parcel, ParcelDetails, ParcelStatus, Product, Receiver,
    ReceiverAddress, ReprintRequest, Sender, SenderAddress, TrackingNumber, VoidManyRequest,
    VoidRequest, model, rules,
};

// The crates whose types a program names to call this one, in the matching versions.
#[cfg(feature = "client")]
pub use bytes;
#[cfg(any(feature = "client", feature = "webhooks"))]
pub use http;
pub use parcelo_types::{Decimal, chrono, serde_json};

/// The types that a [`Client`]'s methods return: handles, requests, streams, and metadata of calls.
#[cfg(feature = "client")]
pub mod calls {
    #[doc(hidden)]
    pub use crate::client::RawResponse;
    pub use crate::client::{
        Attempt, Call, CreateMany, FailureClass, GetTracking, ItemStream, LabelDownload,
        LabelStream, Labels, ListParcels, Manifests, Orders, Page, Parcels, RateLimitStatus,
        ReplyMeta, Resume, Sandbox, Ship, Shipped, StopReason, TrackBatch, Tracking,
    };
}

/// The trait [`Journal`](journal::Journal), in which orders survive a crash, and a journal in a file: for
/// [`Orders::ship`](calls::Orders::ship).
#[cfg(feature = "client")]
pub mod journal {
    pub use crate::client::{Entry, Journal, JournalError, JournalFile};
}

/// The trait [`Transport`](transport::Transport), which sends a client's requests: implement your own, or wrap the
/// client's.
#[cfg(feature = "client")]
pub mod transport {
    #[cfg(feature = "reqwest")]
    pub use crate::client::Reqwest;
    pub use crate::client::{BodyStream, Phase, ResponseFuture, Transport, TransportError};
}
