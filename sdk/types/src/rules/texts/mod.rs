//! The messages of faults and warnings: a constant for each, or a function if it has a value in it, in English and
//! Spanish. Each message says what to do.
//!
//! The messages never repeat a value of the request, since callers log them and values are personal data.
//! Postal codes and the names of unknown fields are the exceptions: the message is useless without them.

pub(crate) mod countries;
pub(crate) mod faults;
pub(crate) mod warnings;

use std::borrow::Cow;

use crate::model::{FaultCode, FieldFault, Warning, WarningCode};

/// A message, usually a constant.
type Message = Cow<'static, str>;

/// The code and message of a fault, without the field's path, which the rules do not know.
#[derive(Debug, Clone)]
pub struct FaultText {
    code: FaultCode,
    en: Message,
    es: Message,
    suggestion: Option<String>,
}

impl FaultText {
    fn new(code: FaultCode, en: String, es: String) -> Self {
        Self { code, en: Cow::Owned(en), es: Cow::Owned(es), suggestion: None }
    }

    /// Returns a fault with this code.
    pub const fn constant(code: FaultCode, en: &'static str, es: &'static str) -> Self {
        Self { code, en: Cow::Borrowed(en), es: Cow::Borrowed(es), suggestion: None }
    }

    const fn missing(en: &'static str, es: &'static str) -> Self {
        Self::constant(FaultCode::Required, en, es)
    }

    /// Returns the fault of a malformed value.
    pub const fn invalid(en: &'static str, es: &'static str) -> Self {
        Self::constant(FaultCode::InvalidFormat, en, es)
    }

    /// Returns the fault of an unknown word.
    pub const fn unknown(en: &'static str, es: &'static str) -> Self {
        Self::constant(FaultCode::UnknownValue, en, es)
    }

    /// Returns the fault of fields that contradict each other.
    pub const fn mismatch(en: &'static str, es: &'static str) -> Self {
        Self::constant(FaultCode::Mismatch, en, es)
    }

    const fn unsupported(en: &'static str, es: &'static str) -> Self {
        Self::constant(FaultCode::NotSupported, en, es)
    }

    /// Adds the value that the caller probably meant.
    pub(crate) fn suggest(mut self, value: Option<impl Into<String>>) -> Self {
        self.suggestion = value.map(Into::into);
        self
    }

    /// Returns the fault of the field at `path`.
    pub fn at(self, path: &(impl ToString + ?Sized)) -> FieldFault {
        FieldFault {
            field: path.to_string(),
            code: self.code,
            message: self.en.into_owned(),
            message_es: self.es.into_owned(),
            suggestion: self.suggestion,
        }
    }
}

/// The code and message of a warning, without the field's path.
#[derive(Clone)]
pub(crate) struct WarningText {
    code: WarningCode,
    en: Message,
    es: Message,
}

impl WarningText {
    fn new(code: WarningCode, en: String, es: String) -> Self {
        Self { code, en: Cow::Owned(en), es: Cow::Owned(es) }
    }

    const fn constant(code: WarningCode, en: &'static str, es: &'static str) -> Self {
        Self { code, en: Cow::Borrowed(en), es: Cow::Borrowed(es) }
    }

    /// Returns the warning about the field at `path`.
    pub(crate) fn at(self, path: &(impl ToString + ?Sized)) -> Warning {
        Warning {
            code: self.code,
            field: path.to_string(),
            message: self.en.into_owned(),
            message_es: self.es.into_owned(),
        }
    }
}
