//! The error of one item of a list, in the response to the whole list (spec: Errors).

use serde::{Deserialize, Serialize};

#[cfg(feature = "utoipa")]
use super::ErrorCode;
use super::lenient;

/// An error of one item of a list, in the response to the whole list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct ItemError {
    /// The error code; a newer server may have further ones.
    #[cfg_attr(feature = "utoipa", schema(value_type = ErrorCode))]
    pub code: String,
    /// A description of the error, in English.
    #[serde(default, deserialize_with = "lenient::word")]
    #[cfg_attr(feature = "utoipa", schema(required = true))]
    pub message: String,
    /// The description in Spanish.
    #[serde(default, deserialize_with = "lenient::word")]
    #[cfg_attr(feature = "utoipa", schema(required = true))]
    pub message_es: String,
}

#[doc(hidden)]
impl ItemError {
    /// Returns an error with a code and messages in English and Spanish.
    pub fn new(code: impl Into<String>, (en, es): (impl Into<String>, impl Into<String>)) -> Self {
        Self { code: code.into(), message: en.into(), message_es: es.into() }
    }
}
