//! The types of requests and responses. They use no clock, no randomness and no I/O.
//!
//! Types that every program needs, such as [`OrderRequest`] and [`TrackingNumber`], are at the root of the crate; all
//! others are here. Later versions may add fields to structs, so requests are built with `new` and `with_…`. Responses
//! are read from JSON, in your own tests too; every field can be changed.
//!
//! ```
//! use parcelo::{ParcelStatus, model::CreatedOrder};
//! use serde_json::json;
//!
//! let mut created: CreatedOrder = serde_json::from_value(json!({"success": true, "parcel": {
//!     "id": "par_1", "trackingNumber": "EC7K2M9QX4T8WD0", "status": "LABEL_GENERATED",
//!     "labelUrl": "https://labels.example/EC7K2M9QX4T8WD0.pdf", "createdAt": "2026-01-10T15:05:00.000Z"}}))?;
//! created.parcel.status = ParcelStatus::Ordered;
//! assert_eq!(created.parcel.tracking_number.as_str(), "EC7K2M9QX4T8WD0");
//! # Ok::<(), serde_json::Error>(())
//! ```

mod account;
pub(crate) mod api_key;
mod arrival;
pub(crate) mod awb;
mod countries;
pub(crate) mod country;
pub(crate) mod currency;
pub(crate) mod decimal;
pub(crate) mod envelope;
pub(crate) mod environment;
pub(crate) mod error_body;
pub(crate) mod error_code;
pub(crate) mod event;
pub(crate) mod fingerprint;
pub(crate) mod goods;
pub(crate) mod header;
pub(crate) mod hex;
pub(crate) mod idempotency_key;
mod ids;
pub(crate) mod invalid;
mod item_error;
pub(crate) mod json;
pub(crate) mod key_state;
pub(crate) mod label;
mod label_link;
pub(crate) mod language;
pub(crate) mod lenient;
pub(crate) mod macros;
pub(crate) mod manifest;
mod maybe_known;
pub(crate) mod operation;
pub(crate) mod order;
mod order_setters;
mod same_text;
mod saved;
#[cfg(feature = "utoipa")]
pub(crate) mod schema;
pub(crate) mod secret_key;
pub(crate) mod status;
pub(crate) mod time;
pub(crate) mod tracking;
pub(crate) mod tracking_number;
pub(crate) mod void;

pub use account::{Deleted, Health, PageMeta, ParcelSummary, SandboxReset};
pub use arrival::{Arrival, ArrivalKind};
pub use error_body::{ErrorBody, FaultCode, FieldFault, RejectedParcel, Warning, WarningCode};
pub use event::{EventData, ParcelCreated, ParcelVoided, StatusChange, WebhookEvent};
pub use ids::{EventId, LabelId, ManifestId, ParcelId, RequestId};
pub use item_error::ItemError;
pub use key_state::KeyState;
pub use label::{Barcode, Downloads, LabelMetadata, LabelSize, LabelStatus, QrCode};
pub use label_link::LabelLink;
pub use lenient::{Row, Unreadable};
pub use manifest::{DeclaredValue, Manifest, ManifestStatus};
pub use maybe_known::MaybeKnown;
pub use order::CreatedOrder;
pub use saved::{KeyedRequest, Saved};
pub use tracking::{BatchResult, HistoryEntry, TrackingRecord};
pub use void::{VoidResult, VoidSummary, VoidedOrders};

// Other crates find these at the root, or in `internal`.
pub(crate) use awb::Awb;
pub(crate) use country::CountryCode;
pub(crate) use currency::CurrencyCode;
pub(crate) use environment::Environment;
pub(crate) use error_code::ErrorCode;
pub(crate) use goods::{ContentsCategory, CustomsInfo, Incoterm, Product};
pub(crate) use idempotency_key::IdempotencyKey;
pub(crate) use invalid::InvalidValue;
pub(crate) use label::{LabelBatchRequest, LabelFormat, ReprintRequest};
pub(crate) use language::Language;
pub(crate) use manifest::ManifestRequest;
pub(crate) use order::{
    IdType, OrderRequest, ParcelDetails, Receiver, ReceiverAddress, Sender, SenderAddress,
};
pub(crate) use status::ParcelStatus;
pub(crate) use tracking::BatchTrackingRequest;
pub(crate) use tracking_number::TrackingNumber;
pub(crate) use void::{VoidManyRequest, VoidRequest};
