//! What the rules say: one function for each failure, in English and Spanish, each with what to do.
//!
//! The texts never repeat what a caller wrote, except postal codes, which explain nothing without
//! themselves, and the names of unknown fields.

pub(crate) mod countries;
pub(crate) mod faults;
pub(crate) mod warnings;

use std::borrow::Cow;

use crate::model::{FaultCode, FieldFault, Warning, WarningCode};

/// A text that is often the same for everybody.
type Words = Cow<'static, str>;

/// What is wrong with a field, before it is known which field.
#[derive(Clone)]
pub(crate) struct FaultText {
    code: FaultCode,
    en: Words,
    es: Words,
    suggestion: Option<String>,
}

impl FaultText {
    fn new(code: FaultCode, en: impl Into<Words>, es: impl Into<Words>) -> Self {
        Self { code, en: en.into(), es: es.into(), suggestion: None }
    }

    fn missing(en: &'static str, es: &'static str) -> Self {
        Self::new(FaultCode::Required, en, es)
    }

    fn invalid(en: &'static str, es: &'static str) -> Self {
        Self::new(FaultCode::InvalidFormat, en, es)
    }

    fn unknown(en: &'static str, es: &'static str) -> Self {
        Self::new(FaultCode::UnknownValue, en, es)
    }

    fn mismatch(en: &'static str, es: &'static str) -> Self {
        Self::new(FaultCode::Mismatch, en, es)
    }

    fn unsupported(en: &'static str, es: &'static str) -> Self {
        Self::new(FaultCode::NotSupported, en, es)
    }

    /// The same with the value that was probably meant.
    pub(crate) fn suggest(mut self, value: Option<impl Into<String>>) -> Self {
        self.suggestion = value.map(Into::into);
        self
    }

    /// The fault of the field at `path`.
    pub(crate) fn at(self, path: &(impl ToString + ?Sized)) -> FieldFault {
        FieldFault {
            field: path.to_string(),
            code: self.code,
            message: self.en.into_owned(),
            message_es: self.es.into_owned(),
            suggestion: self.suggestion,
        }
    }
}

/// What is odd about a field, before it is known which field.
#[derive(Clone)]
pub(crate) struct WarningText {
    code: WarningCode,
    en: Words,
    es: Words,
}

impl WarningText {
    fn new(code: WarningCode, en: impl Into<Words>, es: impl Into<Words>) -> Self {
        Self { code, en: en.into(), es: es.into() }
    }

    /// The warning about the field at `path`.
    pub(crate) fn at(self, path: &(impl ToString + ?Sized)) -> Warning {
        Warning {
            code: self.code,
            field: path.to_string(),
            message: self.en.into_owned(),
            message_es: self.es.into_owned(),
        }
    }
}
