//! Parts for the other crates of this project: the words of the protocol that the client and the server share, the
//! history of a key, which the client keeps, and what the server reads and answers. Not covered by semantic versioning:
//! those crates name this one's exact version. So are the hidden methods of public types, such as the constructors of
//! responses.

#[cfg(feature = "utoipa")]
pub use crate::{
    model::schema::closed_enum,
    rules::openapi_limits::{LIMITS, Limit, TypeLimits, write_limits},
};
pub use crate::{
    model::{
        envelope::{Envelope, Meta},
        error_body::ErrorEnvelope,
        event::EventKind,
        fingerprint::{Fingerprint, fingerprint},
        hex::hex,
        key_state::{AttemptOutcome, Moment},
        label::LabelBatchRequest,
        lenient::rows,
        operation::{Auth, Idempotency, Method},
        secret_key::SecretKey,
        tracking::{BatchSummary, BatchTracking, BatchTrackingRequest},
    },
    rules::{
        address_formats::town_line,
        body::{parse_body, parse_json},
        contact::{meant_country, parse_country, parse_email},
        field_types::{Bounds, Text, is_blank},
        fields::{Fields, Kind},
        idempotency_key::{KeyReading, read_key},
        list_query::{ListQuery, check_list, parse_status},
        order::check_order_json,
        reader::{Object, validate},
        receiver::{check_supported, destination},
        requests::{check_batch, check_label_batch, check_manifest, check_reprint, check_void},
        text::{PRINTABLE, is_chinese, is_invisible, is_printable},
        texts::FaultText,
    },
    secret_text, wire_enum,
};

/// Decimals and the numbers of JSON.
pub mod decimal {
    pub use crate::model::decimal::{from_number, to_number};
}

/// Names of the HTTP headers that the API defines.
pub mod header {
    pub use crate::model::header::*;
}

/// JSON that borrows from the bytes of a body.
pub mod json {
    pub use crate::model::json::{Body, Json, Members};
}

/// Times in JSON.
pub mod time {
    pub use crate::model::time::{serialize, to_text};
}

/// Values that a spreadsheet would change.
pub mod spreadsheet {
    pub use crate::rules::spreadsheet::*;
}

/// Faults of fields that any request may have.
pub mod faults {
    pub use crate::rules::texts::faults::{REQUIRED, too_few};
}
