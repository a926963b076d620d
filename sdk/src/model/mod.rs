//! The vocabulary: what stands on the wire, each thing once. No clock, no randomness, no I/O.

mod account;
mod admin;
mod admin_token;
mod api_key;
mod awb;
mod carrier;
mod carrier_key;
mod countries;
mod country;
mod currency;
pub mod decimal;
mod envelope;
mod environment;
mod error_body;
mod error_code;
mod event;
mod fingerprint;
mod idempotency_key;
mod ids;
mod invalid;
mod key_state;
mod label;
mod language;
mod lenient;
mod macros;
mod manifest;
mod maybe_known;
mod operation;
mod order;
#[cfg(feature = "openapi")]
mod schema;
mod secret_key;
mod status;
pub mod time;
mod tracking;
mod tracking_number;
mod void;

pub use account::{Deleted, Health, PageMeta, ParcelSummary, SandboxReset};
pub use admin::{
    AccountRequest, AllowedCountries, CarrierKeyRequest, DEFAULT_ACCOUNT, KeyRequest,
    ReplayRequest, WebhookRequest,
};
pub use admin_token::AdminToken;
pub use api_key::ApiKey;
pub use awb::Awb;
pub use carrier::{
    CarrierEvent, CarrierEvents, CarrierOutcome, CarrierResult, CarrierResults, CarrierSummary,
};
pub use carrier_key::CarrierKey;
pub use country::CountryCode;
pub use currency::CurrencyCode;
pub use envelope::{Envelope, Meta, header};
pub use environment::Environment;
pub use error_body::{
    ErrorBody, ErrorEnvelope, FaultCode, FieldFault, ItemError, RejectedParcel, Warning,
    WarningCode,
};
pub use error_code::ErrorCode;
pub use event::{
    EventData, EventKind, ParcelCreated, ParcelVoided, StatusChange, UnknownEvent, WebhookEvent,
};
pub use fingerprint::{Fingerprint, fingerprint};
pub use idempotency_key::IdempotencyKey;
pub use ids::{EventId, ManifestId, ParcelId, RequestId};
pub use invalid::InvalidValue;
pub use key_state::KeyState;
#[cfg(feature = "client")]
pub(crate) use key_state::{Ended, Moment};
pub use label::{
    Barcode, Downloads, LabelFormat, LabelMetadata, LabelSize, LabelStatus, QrCode, ReprintRequest,
};
pub use language::Language;
#[cfg(feature = "client")]
pub(crate) use lenient::rows;
pub use lenient::{Row, Unreadable};
pub use manifest::{DeclaredValue, Manifest, ManifestRequest, ManifestStatus};
pub use maybe_known::MaybeKnown;
pub use operation::{Auth, Idempotency, Method, Operation};
pub use order::{
    CreatedOrder, CustomsInfo, IdType, OrderRequest, Parcel, ParcelDetails, Product, Receiver,
    ReceiverAddress, Sender, SenderAddress,
};
pub use status::ParcelStatus;
pub use tracking::{
    BatchResult, BatchSummary, BatchTracking, BatchTrackingRequest, HistoryEntry, TrackingRecord,
};
pub use tracking_number::TrackingNumber;
pub use void::{VoidManyRequest, VoidRequest, VoidResult, VoidSummary, VoidedOrders};
