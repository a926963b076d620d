//! The result of a check: the request with its warnings, or all its faults.

use std::fmt;

use super::text::Fonts;
use crate::model::{FieldFault, Warning};

/// A valid request; its warnings do not stop it from being executed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Accepted<T> {
    /// The request.
    pub value: T,
    /// The warnings, about values that look unlikely but are accepted.
    pub warnings: Vec<Warning>,
}

impl<T> Accepted<T> {
    /// Returns a valid request with these warnings.
    #[doc(hidden)]
    pub fn new(value: T, warnings: Vec<Warning>) -> Self {
        Self { value, warnings }
    }
}

/// An invalid request: every fault, in the order of the spec's tables.
///
/// `Display` is one line of paths and codes and shows no value of the request; the messages of
/// single faults may.
///
/// ```
/// use parcelo::{Language, OrderRequest};
///
/// let rejected = OrderRequest::builder().build().unwrap_err();
/// let line = rejected.to_string();
/// assert!(line.starts_with("the request breaks the rules: idempotencyKey REQUIRED, sender"));
/// for fault in &rejected.faults {
///     println!("{}: {}", fault.field, fault.text(Language::Es));
/// }
/// ```
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Rejected {
    /// The faults, which must be corrected.
    pub faults: Vec<FieldFault>,
    /// The warnings, about values that look unlikely.
    pub warnings: Vec<Warning>,
}

impl Rejected {
    /// Returns a request with these faults and without warnings.
    #[doc(hidden)]
    pub fn new(faults: Vec<FieldFault>) -> Self {
        Self { faults, warnings: Vec::new() }
    }
}

/// The faults and warnings that were found, for a service whose labels have these fonts.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) fonts: Fonts,
    pub(crate) faults: Vec<FieldFault>,
    pub(crate) warnings: Vec<Warning>,
}

/// Maximum number of faults that `Display` names, because long lines are of little use in logs and terminals.
const MAX_NAMED_FAULTS: usize = 5;

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request breaks the rules:")?;
        for (i, fault) in self.faults.iter().take(MAX_NAMED_FAULTS).enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma} {} {}", fault.field, fault.code)?;
        }
        match self.faults.len().saturating_sub(MAX_NAMED_FAULTS) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl fmt::Debug for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults = self.faults.iter().map(|fault| (&fault.field, &fault.code));
        let warnings = self.warnings.iter().map(|warning| (&warning.field, &warning.code));
        f.debug_struct("Rejected")
            .field("faults", &faults.collect::<Vec<_>>())
            .field("warnings", &warnings.collect::<Vec<_>>())
            .finish()
    }
}

impl std::error::Error for Rejected {}
