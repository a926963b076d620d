//! The types of requests and responses. They use no clock, no randomness and no I/O.
//!
//! Types that every program needs, such as [`OrderRequest`] and [`TrackingNumber`], are at the root of the crate; all
//! others are here. Later versions may add fields to structs, so requests are built with `new` and `with_…`, and so are
//! responses, in your own tests.
//!
//! ```
//! use parcelo::model::{CreatedOrder, ParcelId};
//! use parcelo::{Parcel, TrackingNumber};
//!
//! let number = TrackingNumber::parse("EC7K2M9QX4T8WD0")?;
//! let id = ParcelId::unchecked("par_1");
//! let parcel = Parcel::new(id, number, "https://labels.example/EC7K2M9QX4T8WD0.pdf");
//! let created = CreatedOrder::new(parcel);
//! assert_eq!(created.parcel.status.code(), "LABEL_GENERATED");
//! # Ok::<(), parcelo::InvalidValue>(())
//! ```

mod account;
pub(crate) mod api_key;
mod arrival;
pub(crate) mod awb;
mod countries;
pub(crate) mod country;
pub(crate) mod currency;
pub mod decimal;
mod envelope;
pub(crate) mod environment;
mod error_body;
pub(crate) mod error_code;
mod event;
mod fingerprint;
pub(crate) mod goods;
pub mod header;
pub(crate) mod hex;
pub(crate) mod idempotency_key;
mod ids;
pub(crate) mod invalid;
mod item_error;
#[doc(hidden)]
pub mod json;
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
mod saved;
#[cfg(feature = "utoipa")]
pub(crate) mod schema;
pub(crate) mod secret_key;
pub(crate) mod status;
pub mod time;
mod tracking;
pub(crate) mod tracking_number;
pub(crate) mod void;

pub use account::{Deleted, Health, PageMeta, ParcelSummary, SandboxReset};
pub use arrival::{Arrival, ArrivalKind};
pub use envelope::{Envelope, Meta};
pub use error_body::{
    ErrorBody, ErrorEnvelope, FaultCode, FieldFault, RejectedParcel, Warning, WarningCode,
};
pub use event::{
    EventData, EventKind, ParcelCreated, ParcelVoided, StatusChange, UnknownEvent, WebhookEvent,
};
pub use fingerprint::{Fingerprint, fingerprint};
pub use ids::{EventId, ManifestId, ParcelId, RequestId};
pub use item_error::ItemError;
pub use key_state::KeyState;
pub use label::{
    Barcode, Downloads, LabelBatchRequest, LabelMetadata, LabelSize, LabelStatus, QrCode,
};
pub use label_link::LabelLink;
pub use lenient::{Row, Unreadable};
pub use manifest::{DeclaredValue, Manifest, ManifestStatus};
pub use maybe_known::MaybeKnown;
pub use operation::{Auth, Idempotency, Method};
pub use order::CreatedOrder;
pub use saved::{KeyedRequest, Saved};
pub use tracking::{
    BatchResult, BatchSummary, BatchTracking, BatchTrackingRequest, HistoryEntry, TrackingRecord,
};
pub use void::{VoidResult, VoidSummary, VoidedOrders};

// Other crates find these at the root.
pub(crate) use awb::Awb;
pub(crate) use country::CountryCode;
pub(crate) use currency::CurrencyCode;
pub(crate) use environment::Environment;
pub(crate) use error_code::ErrorCode;
pub(crate) use goods::{ContentsCategory, CustomsInfo, Incoterm, Product};
pub(crate) use idempotency_key::IdempotencyKey;
pub(crate) use invalid::InvalidValue;
pub(crate) use label::{LabelFormat, ReprintRequest};
pub(crate) use language::Language;
pub(crate) use manifest::ManifestRequest;
pub(crate) use order::{
    IdType, OrderRequest, ParcelDetails, Receiver, ReceiverAddress, Sender, SenderAddress,
};
pub(crate) use status::ParcelStatus;
pub(crate) use tracking_number::TrackingNumber;
pub(crate) use void::{VoidManyRequest, VoidRequest};
