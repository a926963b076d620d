//! Parts for the other crates of this project, so that the client keeps the history of a key, and the server reads what
//! operators and carriers say, by the same code. Not covered by semantic versioning: those crates name this one's exact
//! version.

#[cfg(feature = "utoipa")]
pub use crate::{
    model::schema::closed_enum,
    rules::openapi_limits::{LIMITS, Limit, TypeLimits, write_limits},
};
pub use crate::{
    model::{
        hex::hex,
        key_state::{AttemptOutcome, Moment},
        lenient::rows,
        secret_key::SecretKey,
    },
    rules::{
        contact::{parse_country, parse_email},
        field_types::{Bounds, Text, is_blank},
        fields::{Fields, Kind},
        list_query::parse_status,
        reader::{Object, validate},
        receiver::check_supported,
        text::is_chinese,
        texts::FaultText,
    },
    secret_text, wire_enum,
};

/// Faults of fields that any request may have.
pub mod faults {
    pub use crate::rules::texts::faults::{REQUIRED, too_few};
}
